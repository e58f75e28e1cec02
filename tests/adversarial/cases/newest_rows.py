"""Rows and copies under masks, early returns with assignments, clamps of new tensors, flags, and gradients taken by forward."""

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
_Z = "torch.zeros(2, 3)"
_NAN = "torch.tensor([[1.0, nan, 3.0], [4.0, 0.5, inf]])"

copies = Group("copies under a mask")
for _name, _body in {
    "into a view of what is read": "y = x[:, 1:]\nz = x[:, :-1]\nm = z > 0\ny[m] = z[m]\nreturn x",
    "into its own mask": "y = x > 0\nm = y\nz = x > 9\ny[m] = z[m]\nreturn y, m",
    "from its own mask": "m = x > 0\ny = torch.zeros(2, 3, dtype=torch.bool)\ny[m] = m[m]\nreturn y",
    "under a view of a turned mask": "m = (x > 0).t()\ny = torch.zeros_like(x)\ny[m.view(2, 3)] = x[m.view(2, 3)]\nreturn y",
    "under a view that may copy": "m = (x > 0).t()\ny = torch.zeros_like(x)\ny[m.reshape(2, 3)] = x[m.reshape(2, 3)]\nreturn y",
    "under a view of rows": "m = (x > 0).any(1)[:, None]\ny = torch.zeros_like(x)\ny[m.view(-1)] = x[m.view(-1)]\nreturn y",
    "under uint8": "m = (x > 0).byte()\ny = torch.zeros_like(x)\ny[m] = x[m]\nreturn y",
    "under uint8 in a view": "m = (x > 0).byte()\ny = torch.zeros_like(x)\ny[m.view(2, -1)] = x[m.view(2, -1)]\nreturn y",
    "under positions": "m = torch.tensor([1, 0])\ny = torch.zeros_like(x)\ny[m.view(-1)] = x[m.view(-1)]\nreturn y",
    "under one element": "m = x.sum() > 0\ny = torch.zeros_like(x)\ny[m] = x[m]\nreturn y",
    "of a wider tensor": "m = x > 0\ny = torch.zeros(2, 3)\nz = x.double()\ny[m] = z[m]\nreturn y",
    "of a tensor with more rows": "m = x > 0\ny = torch.zeros(4, 3)\ny[:2][m] = x[m]\nreturn y",
    "into an expanded tensor": "m = x > 0\ny = torch.zeros(1, 3).expand(2, 3)\ny[m] = x[m]\nreturn y",
    "into a leaf": "m = x > 0\ny = torch.zeros(2, 3, requires_grad=True)\ny[m] = x[m]\nreturn y",
    "into what was saved": "m = x > 0\ny = x.exp()\nz = y.sum()\ny[m] = x[m]\nreturn y + z",
    "of an index below zero": "t = torch.arange(4.0)\ni = x.nan_to_num().long()\nm = x > 0\ny = torch.zeros(2, 3)\ny[m] = t[i[m].clamp(0, 3)]\nreturn y",
    "of a row out of range": "t = torch.arange(2.0)\ni = x.nan_to_num().long()\nm = x > 0\ny = torch.zeros(2, 3)\ny[m] = t[i[m]]\nreturn y",
    "of a row from the end": "t = torch.arange(5.0)\ni = x.nan_to_num().long()\nm = x < 0\ny = torch.zeros(2, 3)\ny[m] = t[i[m]]\nreturn y",
    "of a tensor that is written": "m = x > 0\ny = torch.zeros_like(x)\ny[m] = x.mul_(2)[m]\nreturn y, x",
    "twice": "m = x > 0\ny = torch.zeros_like(x)\ny[m] = x[m]\nm = ~m\ny[m] = y[m]\nreturn y",
    "into an attribute": "m = x > 0\nself.state = torch.zeros_like(x)\ny = self.state\ny[m] = x[m]\nreturn self.state * 2",
    "into a buffer": "m = x > 0\ny = self.kept\ny[m] = x[m]\nreturn y.clone()",
    "under a mask that the write changes": "y = torch.zeros(2, 3)\nm = y == 0\nb = m.view(torch.uint8)\ny[m] = x[m]\nb.zero_()\nreturn y, m",
    "of nan and inf": "m = x > 0\ny = torch.full((2, 3), float('nan'))\ny[m] = x[m] \nreturn y",
}.items():
    copies.add(
        _name, _body, init='self.register_buffer("kept", torch.zeros(2, 3))', inputs=(_X, _N, _Z, _NAN), varied=False
    )

sums = Group("sums and losses of rows")
for _name, _body in {
    "mean of bfloat16": "m = x > 0\nreturn x.bfloat16()[m].mean()",
    "mean of double": "m = x > 0\nreturn x.double()[m].mean()",
    "mean of complex numbers": "m = x > 0\nreturn x.to(torch.complex64)[m].mean()",
    "mean in half of much": "m = x > -9\nreturn (x * 2e4).half()[m].mean()",
    "sum of a view": "m = x > 0\nreturn x.t()[m.t()].sum()",
    "sum under one element": "m = x.sum() > 0\nreturn x[m].sum()",
    "sum under more dimensions": "m = (x > 0)[None]\nreturn x[m].sum()",
    "sum of rows, gradient of nan": "m = x > 0\nreturn x.sqrt()[m].sum()",
    "mean of rows, gradient of nan": "m = (x > 0).all(1)\nreturn x.log()[m].mean()",
    "rows of a function that checks": "m = x > 0\ny = torch.zeros_like(x)\ny[m] = checked(x[m])\nreturn y",
    "rows of a function with a global": "m = x > 0\ny = torch.zeros_like(x)\ny[m] = scaled(x[m])\nreturn y",
    "rows of a function that draws": "m = x > 0\ny = torch.zeros_like(x)\ny[m] = noisy(x[m])\nreturn y",
    "rows of a function in place": "m = x > 0\ny = torch.zeros_like(x)\ny[m] = doubled(x[m])\nreturn y, x",
    "rows, in place between": "m = x > 0\ny = torch.zeros_like(x)\nr = x[m]\nr.clamp_(max=1.0)\ny[m] += r\nreturn y, x",
    "rows, counted between": "m = x > 0\ny = torch.zeros_like(x)\nr = x[m]\ny[m] += r / len(r)\nreturn y",
    "rows, their shape between": "m = x > 0\ny = torch.zeros_like(x)\nr = x[m]\ny[m] += r * r.shape[0]\nreturn y",
    "rows, returned too": "m = x > 0\ny = torch.zeros_like(x)\nr = x[m]\ny[m] += r * 2\nreturn y, r",
    "rows, kept": "m = x > 0\ny = torch.zeros_like(x)\nr = x[m]\nself.last = r.detach()\ny[m] += r * 2\nreturn y",
    "rows of an alias": "m = x > 0\ny = x * 1\nz = y\ny[m] *= z[m] + 1\nreturn y, z",
    "rows of an overlap": "h = x * 1\ny, z = h[:, 1:], h[:, :-1]\nm = z > 0\ny[m] += z[m] * 2\nreturn h",
    "rows, mask written between": "m = x > 0\ny = torch.zeros_like(x)\nr = x[m]\nm[0, 0] = False\ny[m] = r[:1] * 2\nreturn y",
    "rows, mask bound between": "m = x > 0\ny = torch.zeros_like(x)\nr = x[m]\nm = m & (x > 2)\ny[m] = r.max() * 2\nreturn y",
    "rows over which the largest is taken": "m = x > 0\nreturn x[m].max() - x[m].min()",
    "rows divided by what may be nothing": "m = x > 9\ny = torch.zeros_like(x)\ny[m] = 1 / x[m]\nreturn y",
    "rows of a logarithm": "m = x > 0\ny = torch.zeros_like(x)\ny[m] = x[m].log()\nreturn y",
    "loss of layers": "m = x > 0\nreturn self.loss(x[m], x[m] * 2 + 1)",
    "loss of a layer without reduction": "m = x > 0\nreturn nn.L1Loss(reduction='none')(x[m], x[m] * 2).sum()",
    "loss of nothing": "m = x > 99\nreturn F.l1_loss(x[m], x[m] * 2)",
    "loss of half": "m = x > 0\nh = x.half()\nreturn F.mse_loss(h[m], h[m] * 2)",
    "loss of huber": "m = x > 0\nreturn F.smooth_l1_loss(x[m], x[m] * 2, beta=0.5)",
    "loss of a mask among labels": "m = x.argmax(1) > 0\nreturn F.cross_entropy(x[m], x.argmax(1)[m], label_smoothing=0.1)",
    "loss with weights": "m = x.argmax(1) > 0\nreturn F.cross_entropy(x[m], x.argmax(1)[m], weight=torch.tensor([1.0, 2.0, 3.0]))",
    "loss of ignored labels": "m = x.argmax(1) > 0\nt = torch.tensor([-100, 1])\nreturn F.cross_entropy(x[m], t[m])",
    "loss of a label that is no class": "m = x.argmax(1) > 9\nt = torch.tensor([7, 8])\nreturn F.cross_entropy(x[m], t[m])",
    "loss of a label outside of the mask": "m = torch.tensor([True, False])\nt = torch.tensor([1, 77])\nreturn F.cross_entropy(x[m], t[m])",
    "loss of probabilities": "m = torch.tensor([True, False])\nt = x.softmax(1)\nreturn F.cross_entropy(x[m], t[m])",
    "loss of logs": "m = x > 0\nreturn F.binary_cross_entropy_with_logits(x[m], (x[m] > 1).float())",
    "loss outside of its range": "m = x > 0\nreturn F.binary_cross_entropy(x[m].sigmoid(), (x[m] > 1).float())",
}.items():
    sums.add(
        _name,
        _body,
        top="""
        FACTOR = [2.0]

        def checked(x):
            if x.numel() > 0 and x.min() < 0.6:
                raise ValueError("small")
            return x * 2

        def scaled(x):
            FACTOR[0] += 1
            return x * FACTOR[0]

        def noisy(x):
            return x + torch.rand_like(x)

        def doubled(x):
            x *= 2
            return x.tanh()
        """,
        init="self.loss = nn.MSELoss()\nself.last = None",
        inputs=(_X, _N, _Z, _NAN),
        varied=False,
    )

returns = Group("early returns behind which something is assigned")
for _name, _body in {
    "in place": "h = x * 1\nif x.sum() > 0:\n    return h\nh += 1\nk = h * 2\nreturn k",
    "a view that is written": "h = x * 1\nif x.sum() > 0:\n    return h\nv = h[0]\nv = v.add_(1)\nk = h * 2\nreturn k",
    "of what was given": "if x.sum() > 0:\n    return x\ny = x * 2\nk = y + 1\nreturn k",
    "a view of what was given": "if x.sum() > 0:\n    return x[:, :]\ny = x * 2\nk = y + 1\nreturn k",
    "and the other is what was given": "if x.sum() > 0:\n    return x * 2\ny = x\nreturn y",
    "by zero": "if x.sum() > 0:\n    return x * 2\nn = x.abs().sum()\nk = x / n\nreturn k",
    "a root": "if x.sum() > 0:\n    return x * 2\nn = (-x).sqrt()\nk = n * 3\nreturn k",
    "a draw": "if x.sum() > 0:\n    return x * 2\nn = torch.rand_like(x)\nk = x + n\nreturn k",
    "dropout": "if x.sum() > 0:\n    return x * 2\nn = F.dropout(x, 0.5, self.training)\nk = x + n\nreturn k",
    "a batch norm": "if x.sum() > 0:\n    return x * 2\nn = self.bn(x)\nk = x + n\nreturn k",
    "another dtype": "if x.sum() > 0:\n    return x * 2\nn = x.double()\nk = n + 1\nreturn k",
    "integers": "if x.sum() > 0:\n    return x.nan_to_num().long()\nn = x.nan_to_num().long() * 2\nk = n // 3\nreturn k",
    "another shape": "if x.sum() > 0:\n    return x * 2\nn = x.sum(0, keepdim=True)\nk = n + 1\nreturn k",
    "a shape that differs": "if x.sum() > 0:\n    return x * 2\nn = x.sum(0)\nk = n + 1\nreturn k",
    "tuples": "if x.sum() > 0:\n    return x * 2, x\nn = x.exp()\nk = n + 1\nreturn k, n",
    "a global": "global LAST\nif x.sum() > 0:\n    return x * 2\nLAST = x.exp()\nk = LAST + 1\nreturn k",
    "a name that the test reads": "s = x.sum()\nif s > 0:\n    return x * s\ns = x.exp()\ns = s + 1\nreturn s * 2",
    "the argument": "if x.sum() > 0:\n    return x.clone()\nx = x * 2\nx = x + 1\nreturn x",
    "an argument that the result reads": "if x.sum() > 0:\n    return x * 3\nx = x * 2\ny = x.sqrt()\nreturn y + x",
    "in a loop": "for i in range(2):\n    if x.sum() > i:\n        return x * 2\n    y = x + i\n    x = y * 2\nreturn x",
    "in try": "try:\n    if x.sum() > 0:\n        return x * 2\n    y = x + 1\n    return y * 2\nfinally:\n    self.count += 1",
    "under no_grad": "with torch.no_grad():\n    if x.sum() > 0:\n        return x * 2\n    y = x + 1\n    return y * 2",
    "under autocast": "with torch.autocast('cpu', dtype=torch.bfloat16):\n    if x.sum() > 0:\n        return x.float()\n    y = x @ x.t() @ x\n    return y.float()",
    "a logarithm of a negative number": "if x.min() < 0:\n    return x * 2\ny = x.log()\nz = y * x\nreturn z",
    "by position": "if x.sum() > 0:\n    return x * 2\ny = x[torch.tensor([1, 0])]\nz = y * 2\nreturn z",
    "an attribute": "if x.sum() > 0:\n    return x * 2\nself.count = 3\nz = x * self.count\nreturn z",
    "a property": "if x.sum() > 0:\n    return x * 2\nz = x * self.counted\nk = z + 1\nreturn k",
    "a walrus": "if (s := x.sum()) > 0:\n    return x * s\nz = x * 2\nk = z + s\nreturn k",
    "a test of nan": "if torch.isnan(x).any():\n    return torch.nan_to_num(x)\ny = x / x.norm()\nz = y.acos()\nreturn z",
    "an equal test": "if torch.equal(x, x * 1):\n    return x * 2\ny = x.nan_to_num()\nz = y * 3\nreturn z",
    "a raise behind": "if x.sum() > 0:\n    return x * 2\ny = x.view(3, 2)\nz = y.view(2, 3) + self.wrong.sum()\nreturn z",
}.items():
    returns.add(
        _name,
        _body,
        top="LAST = None",
        init="self.bn = nn.BatchNorm1d(3)\nself.count = 0\nself.wrong = torch.ones(2)",
        methods="@property\ndef counted(self):\n    self.count += 1\n    return self.count",
        inputs=(_X, _N, _Z, _NAN),
        varied=False,
    )

clamps = Group("clamps of new tensors")
for _name, (_before, _after) in {
    "an alias is written": ("h = x + 1\nk = h", "k += 1\nreturn h, k"),
    "itself is written": ("h = x + 1", "h += 1\nreturn h, x"),
    "a view is written": ("h = x + 1\nk = h[0]", "k.zero_()\nreturn h"),
    "the same tensor under to": ("h = x.to(torch.float32)", "h += 1\nreturn h, x"),
    "the same tensor under float": ("h = x.float()", "h += 1\nreturn h, x"),
    "the same tensor under contiguous": ("h = x.contiguous()", "h.mul_(2)\nreturn h, x"),
    "the same tensor under reshape": ("h = x.reshape(2, 3)", "h.mul_(2)\nreturn h, x"),
    "dropout that does nothing": ("h = F.dropout(x, 0.0, False)", "h.mul_(2)\nreturn h, x"),
    "a layer that keeps": ("h = self.keep(x)", "self.keep.last.add_(1)\nreturn h"),
    "a layer that gives what it got": ("h = self.same(x)", "h.add_(1)\nreturn h, x"),
    "kept before": ("h = x + 1\nself.last = h", "self.last.add_(1)\nreturn h"),
    "kept in a list": ("h = x + 1\nheld = [h]", "held[0].add_(1)\nreturn h"),
    "kept by a closure": ("h = x + 1\nf = lambda: h", "f().add_(1)\nreturn h"),
    "kept by a default": ("h = x + 1\ndef f(k=h):\n    return k.add_(1)", "f()\nreturn h"),
    "kept by a hook": ("h = x + 1\nif h.requires_grad:\n    h.register_hook(lambda g: g * 2)", "return h * 3"),
    "kept by retain_grad": ("h = x * 2\nif h.requires_grad:\n    h.retain_grad()", "self.last = h\nreturn h * 3"),
    "a buffer": ("h = self.state", "h.add_(1)\nreturn h.clone(), self.state.clone()"),
    "an element of a tuple": ("h, k = (x + 1).chunk(2, 0)", "k.add_(1)\nreturn h, k"),
    "an addition in place": ("h = x * 1\nh += x", "h.add_(1)\nreturn h"),
    "another branch": ("h = x + 1 if self.flag else x", "h.add_(1)\nreturn h, x"),
    "a loop": ("h = x\nfor i in range(2):\n    h = h + i", "h.add_(1)\nreturn h, x"),
    "with limits that are tensors": ("h = x + 1\nlimit = h.abs().max()", "return h * limit"),
}.items():
    clamps.add(
        _name,
        f"{_before}\nif torch.isinf(h).any() or torch.isnan(h).any():\n    h = torch.clamp(h, min=-9.0, max=9.0)\n{_after}",
        top="""
        class Keep(nn.Module):
            def forward(self, x):
                self.last = x + 1
                return self.last
        """,
        init='self.keep = Keep()\nself.same = nn.Identity()\nself.flag = False\nself.last = None\nself.register_buffer("state", torch.zeros(2, 3))',
        inputs=(_X, _NAN, "torch.full((2, 3), float('inf'))"),
        varied=False,
    )

flags = Group("flags in forward")
for _name, _body in {
    "returned": "t = torch.tensor(0.0, requires_grad=True, device=x.device)\nreturn t, x * t",
    "kept": "t = torch.tensor(0.0, requires_grad=True, device=x.device)\nself.last = t\nreturn x + t",
    "asked": "t = torch.tensor(0.0, requires_grad=True, device=x.device)\nreturn x + t, t.requires_grad, t.is_leaf",
    "asked later": "t = torch.tensor(0.0, requires_grad=True, device=x.device)\ny = t * 2\nreturn x + t, y.requires_grad",
    "asked by another function": "t = torch.tensor(0.0, requires_grad=True, device=x.device)\nreturn x + t, asks(t)",
    "with a double": "t = torch.zeros(3, requires_grad=True, dtype=torch.float64, device=x.device)\nreturn x + t",
    "with a half": "t = torch.zeros(3, requires_grad=True, dtype=torch.float16, device=x.device)\nreturn x + t",
    "on by a function": "t = torch.tensor(0.0, requires_grad=True, device=x.device)\nturn_on()\ny = t * 1\nturn_off()\nreturn x + y, y.requires_grad",
    "on by a decorator": "t = torch.tensor(0.0, requires_grad=True, device=x.device)\ny = tripled(t)\nreturn x + y, y.requires_grad",
    "of nothing": "x = x[:0]\nt = torch.zeros_like(x).requires_grad_()\nreturn x + t * 2",
    "of integers": "i = x.nan_to_num().long()\nt = torch.zeros(2, requires_grad=True, device=i.device)\nreturn i[:, :1] + t",
    "like, kept": "t = torch.zeros_like(x).requires_grad_()\nself.last = t\nreturn x + t",
    "like, written": "t = torch.zeros_like(x).requires_grad_()\nwith torch.no_grad():\n    t += 1\nreturn x + t",
    "like, detached": "t = torch.zeros_like(x).requires_grad_()\nreturn x + t.detach(), t.detach().requires_grad",
    "twice": "self.scale.requires_grad = False\nself.scale.requires_grad = True\nreturn x * self.scale",
    "of a method": "self.scale.requires_grad_(False)\nreturn x * self.scale",
    "of all": "for p in self.parameters():\n    p.requires_grad = False\nreturn x * self.scale",
    "of a view": "h = x[:, None]\nh.requires_grad = True\nreturn self.linear(h)",
    "of nan": "t = torch.tensor(float('nan'), requires_grad=True, device=x.device)\nreturn x + t",
}.items():
    flags.add(
        _name,
        _body,
        top="""
        def asks(t):
            return t.requires_grad

        def turn_on():
            torch.set_grad_enabled(True)

        def turn_off():
            torch.set_grad_enabled(False)

        @torch.enable_grad()
        def tripled(t):
            return t * 3
        """,
        init="self.scale = nn.Parameter(torch.ones(3))\nself.linear = nn.Linear(3, 3)\nself.last = None",
        inputs=(_X, _N),
        varied=False,
    )

slopes = Group("gradients that forward takes")
_LEAF = "with torch.enable_grad():\n    x = x.clone().requires_grad_()\n    y = {made}\n"
_TAKEN = "g = torch.autograd.grad(y, x, torch.ones_like(y), create_graph={graph})[0]\nreturn y, g"
for _name, (_made, _net) in {
    "dropout": ("self.net(x)", "nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))"),
    "batch norm": ("self.net(x)", "nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))"),
    "in place": ("self.net(x)", "nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))"),
    "in place on the leaf": ("self.net(x)", "nn.ReLU(inplace=True)"),
    "a layer of its own": ("self.net(x)", "Keeps()"),
    "a script": ("self.net(x)", "torch.jit.script(nn.Linear(3, 3))"),
    "frozen": ("self.net(x)", "nn.Linear(3, 3).requires_grad_(False)"),
    "the leaf itself": ("self.net(x)", "nn.Identity()"),
    "of what is not used": ("self.net(torch.ones(2, 3))", "nn.Linear(3, 3)"),
    "random numbers": ("self.net(x + torch.rand_like(x))", "nn.Linear(3, 3)"),
    "twice": ("self.net(self.net(x)) * x", "nn.Linear(3, 3)"),
    "a double": ("self.net(x.double()).float()", "nn.Linear(3, 3).double()"),
    "integers": ("self.net(x.abs().floor())", "nn.Linear(3, 3)"),
    "parametrized": ("self.net(x)", "nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))"),
}.items():
    for _graph in (True, False):
        slopes.add(
            f"{_name}, {'with' if _graph else 'without'} a graph",
            _LEAF.format(made=_made) + _TAKEN.format(graph=_graph),
            top="""
            import torch.nn.utils.parametrizations

            class Keeps(nn.Module):
                def forward(self, x):
                    self.last = x * 2
                    return self.last
            """,
            init=f"self.net = {_net}",
            inputs=(_X, _N, _Z),
            varied=False,
        )

tested = Group("rows of a mask that is tested")
_TESTS = {
    "plain": "if m.any():\n    y[m] = twice(x[m])",
    "two": "if m.any():\n    y[m], z[m] = pair(x[m])",
    "twice": "if m.any():\n    y[m] = twice(x[m])\n    z[m] = y[m].log()",
    "added": "if m.any():\n    y[m] += x[m] * 2",
    "added integers": "h = x.nan_to_num(0, 9, -9).long()\nk = h * 0\nif m.any():\n    k[m] += h[m] // h[m]\ny = y + k",
    "remainder of integers": "h = x.nan_to_num(0, 9, -9).long()\nk = h * 0\nif m.any():\n    k[m] = torch.fmod(h[m], h[m])\ny = y + k",
    "division in a function": "h = x.nan_to_num(0, 9, -9).long()\nk = h * 0\nif m.any():\n    k[m] = part(h[m], h[m])\ny = y + k",
    "rounded division": "h = x.nan_to_num(0, 9, -9).long()\nk = h * 0\nif m.any():\n    k[m] = torch.div(h[m], h[m], rounding_mode='floor')\ny = y + k",
    "by a sum": "if m.sum() > 0:\n    y[m] = twice(x[m])",
    "by all": "if not m.all():\n    y[~m] = twice(x[~m])",
    "by any of another": "if (x > -100).any():\n    y[m] = twice(x[m])",
    "by none": "if not m.any():\n    y[m] = twice(x[m])",
    "inverse in the branch": "if m.any():\n    y[~m] = twice(x[~m])",
    "sure": "if m.any():\n    y[m] = sure(x[m])",
    "sure that fails": "if (x == x).any():\n    m = x == x\n    y[m] = sure(x[m])",
    "above a bound below zero": "if m.any():\n    y[m] = above(x[m], -1.0)",
    "above a bound over zero": "if m.any():\n    y[m] = above(x[m], 0.5)",
    "above a bound that is a tensor": "low = x.new_tensor(0.5)\nif m.any():\n    y[m] = above(x[m], low)",
    "above a bound, integers": "h = x.nan_to_num(0, 9, -9).abs().to(torch.uint8)\nk = h * 0\nif m.any():\n    k[m] = above(h[m], -1)\ny = y + k",
    "sizes": "if m.any():\n    y[m] = few(x[m], 3)",
    "sizes that pass": "if m.any():\n    y[m] = few(x[m], 2)",
    "size of an attribute": "if m.any():\n    y[m] = few(x[m], self.count)",
    "raises always": "if m.any():\n    y[m] = never(x[m])",
    "prints": "if m.any():\n    y[m] = noisy(x[m])",
    "draws": "if m.any():\n    y[m] = drawn(x[m])",
    "draws for itself": "if m.any():\n    y[m] = x[m] * torch.rand(())",
    "draws beside": "if m.any():\n    k = torch.rand(())\n    y[m] = twice(x[m])\ny = y + torch.rand(())",
    "counts calls": "if m.any():\n    self.count += 1\n    y[m] = twice(x[m])\ny = y + self.count",
    "counts calls in a call": "if m.any():\n    y[m] = x[m] * self.counted()\ny = y + self.count",
    "counts calls in a list": "if m.any():\n    k = [self.counted()]\n    y[m] = twice(x[m])\ny = y + self.count",
    "looked up": "w = torch.tensor([-1.0, 0.0, 1.0]).expand(*x.shape, 3)\nif m.any():\n    y[m] = taken(x[m], w[m, :])",
    "looked up from one": "w = torch.tensor([0.5, 2.0]).expand(*x.shape, 2)\nif m.any():\n    y[m] = taken(x[m], w[m, :])",
    "looked up without a test": "w = torch.tensor([0.5, 2.0]).expand(*x.shape, 2)\ny[m] = taken(x[m], w[m, :])",
    "looked up under its bound": "w = torch.tensor([-0.5, 2.0]).expand(*x.shape, 2)\nm = (x >= -0.5) & (x <= 3.0)\nif m.any():\n    y[m] = taken(x[m], w[m, :])",
    "kept name": "k = 1\nif m.any():\n    k = 2\n    y[m] = twice(x[m])\ny = y * k",
    "kept rows": "r = x\nif m.any():\n    r = x[m]\n    y[m] = r * 2\ny = y + r.sum()",
    "mask bound in the branch": "if m.any():\n    m = ~m\n    y[m] = twice(x[m])",
    "mask bound after": "if m.any():\n    y[m] = twice(x[m])\n    m = ~m\ny = y * m",
    "tensor bound in the branch": "if m.any():\n    x = x * 2\n    y[m] = twice(x[m])\ny = y + x",
    "fill beside": "if m.any():\n    y[m] = twice(x[m])\n    z[m] = 7.0",
    "fill of a tensor beside": "if m.any():\n    y[m] = twice(x[m])\n    z[m] = x.max()",
    "fill elsewhere": "if m.any():\n    y[m] = twice(x[m])\n    z[0] = 7.0",
    "alias": "z = y\nif m.any():\n    y[m] = twice(x[m])\n    z[m] += x[m]",
    "into the argument": "if m.any():\n    x[m] = twice(x[m])\ny = y + x",
    "into a view": "v = y[:1]\nif m[:1].any():\n    v[m[:1]] = twice(x[:1][m[:1]])",
    "with a flag": "if self.training and m.any():\n    y[m] = twice(x[m])",
    "with a flag that changes": "if self.counted() > 1 and m.any():\n    y[m] = twice(x[m])\ny = y + self.count",
    "or": "if self.training or m.any():\n    y[m] = twice(x[m])",
    "behind another": "if self.training:\n    y = y + 1\nelif m.any():\n    y[m] = twice(x[m])",
    "with another way": "if m.any():\n    y[m] = twice(x[m])\nelse:\n    y = y - 1",
    "both ways of a flag": "if m.any():\n    if self.training:\n        y[m] = twice(x[m])\n    else:\n        y[m] = x[m] - 1",
    "a flag around an effect": "if m.any():\n    if self.training:\n        self.count += 1\n    y[m] = twice(x[m])\ny = y + self.count",
    "returned": "if m.any():\n    y[m] = twice(x[m])\n    return y",
    "joined": "if m.any():\n    y[m] = joined(x[m])",
    "joined along rows": "if m.any():\n    y[m] = torch.cat([x[m]], dim=0) * 2",
    "nan of zeros and gradients": "if m.any():\n    y[m] = x[m].sqrt() / x[m]",
    "rows of layers": "h = self.linear(x)\nif m.any():\n    y[m] = h[m].exp()",
    "caught": "try:\n    if m.any():\n        y[m] = above(x[m], 0.5)\nexcept ValueError:\n    y = y - 5",
    "in a loop": "for k in range(2):\n    if m.any():\n        y[m] = y[m] + x[m] * k",
}
for _name, _body in _TESTS.items():
    for _when, _mask in {"some": "x > 0.7", "none": "x > 100"}.items():
        tested.add(
            f"{_name}, {_when}",
            f"m = {_mask}\ny, z = torch.zeros_like(x), x * 0.5\n{_body}\nreturn y, z",
            top="""
            def twice(x):
                return x * 2

            def pair(x):
                return x * 2, x - 1

            def sure(x):
                assert x.min() > 0
                return x.log()

            def above(x, low):
                if x.min() < low:
                    raise ValueError("low")
                return x - low

            def few(x, n):
                if n > 2:
                    raise ValueError("many")
                return x * n

            def never(x):
                raise ValueError("never")

            def noisy(x):
                print("rows")
                return x

            def drawn(x):
                return x + torch.rand(())

            def part(x, y):
                return x // y

            def taken(x, w):
                at = (x[..., None] >= w).sum(-1) - 1
                return w.gather(-1, at[..., None])[..., 0]

            def joined(x):
                return torch.cat([x[:, None], x[:, None] * 2], dim=-1).sum(-1)
            """,
            init="self.count = 1\nself.linear = nn.Linear(3, 3)",
            methods="""
            def counted(self):
                self.count += 1
                return self.count
            """,
            inputs=(_X, _N),
            varied=False,
        )
