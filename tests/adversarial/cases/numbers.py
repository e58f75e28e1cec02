"""Numbers, sizes and lists that are read out of tensors, and what happens to them before their last use."""

from tests.adversarial.case import Group

items = Group("numbers of tensors")
for name, body in {
    "written before the last use": "m = x.max()\ns = m.item()\nm.mul_(0.0)\nreturn x / s",
    "source written before the last use": "h = x * 2.0\nm = h[0, 0]\ns = m.item()\nh.zero_()\nreturn x - s",
    "source written through a view": "h = x * 2.0\nv = h.view(-1)\nm = v[0]\ns = m.item()\nh.add_(5.0)\nreturn x - s",
    "source written by a method": "h = x * 2.0\nm = h[0, 0]\ns = m.item()\nself.clear(h)\nreturn x - s",
    "source written by a layer": "h = x * 2.0\nm = h[0, 0]\ns = m.item()\nself.act(h)\nreturn x - s",
    "source written in a loop": "h = x * 2.0\nt = x * 0\nfor i in range(2):\n    s = h[0, 0].item()\n    h += 1.0\n    t = t + s\nreturn t",
    "parameter written": "s = self.weight.max().item()\nwith torch.no_grad():\n    self.weight.mul_(0.5)\nreturn x * s",
    "buffer written": "s = self.table[0, 0].item()\nself.table.add_(1.0)\nreturn x * s",
    "returned": "return x.max().item()",
    "returned in a tuple": "s = x.max().item()\nreturn x / s, s",
    "stored": "self.scale = x.max().item()\nreturn x / self.scale",
    "in a list": "found = [x.max().item()]\nreturn x / found[0]",
    "in a dict": "found = {'s': x.max().item()}\nreturn x / found['s']",
    "as a key": "d = {}\nd[x.max().item()] = 1\nreturn x * len(d)",
    "in an f-string": "s = x.max().item()\nself.said = f'{s:.2f}'\nreturn x / s",
    "in a format": "s = x.max().item()\nself.said = '%.2f' % s\nreturn x / s",
    "isinstance": "s = x.max().item()\nif isinstance(s, float):\n    return x / s\nreturn x",
    "type": "s = x.max().item()\nreturn x / s, type(s).__name__",
    "is": "s = x.max().item()\nreturn x if s is None else x / s",
    "bool in Python": "s = x.max().item()\nreturn x / s if s else x",
    "round": "s = round(x.max().item(), 1)\nreturn x / s",
    "math": "s = math.sqrt(abs(x.max().item()))\nreturn x * s",
    "max with a number": "s = max(x.max().item(), 1e-3)\nreturn x / s",
    "power": "s = x.max().item()\nreturn x ** s",
    "power of a number": "s = x.max().item()\nreturn x * 2 ** s",
    "floor division": "s = x.max().item() + 1.5\nreturn x // s",
    "modulo": "s = x.max().item() + 1.5\nreturn x % s",
    "division by zero": "s = x.max().item()\nt = 1.0 / s\nreturn x * t",
    "int division by zero": "s = int(x.max().item())\nt = 6 // s\nreturn x * t",
    "half and a number": "h = x.half()\ns = h.max().item()\nreturn h / s, h.float() * s",
    "half with a large number": "h = x.half()\ns = (x.max() * 1e6).item()\nreturn h / s",
    "integers and a number": "i = x.nan_to_num(0.0, 0.0, 0.0).long()\ns = x.max().item()\nreturn i * s",
    "integer number of floats": "s = x.nan_to_num(0.0, 0.0, 0.0).long().max().item()\nreturn x * s",
    "number of double against float": "s = x.double().mean().item()\nreturn x * s",
    "number of a bool": "s = (x > 0).any().item()\nreturn x * s",
    "add_ of a number": "s = x.max().item()\ny = x * 1.0\ny.add_(s)\nreturn y",
    "alpha of a number": "s = x.max().item()\nreturn torch.add(x, x, alpha=s)",
    "fill of a number": "s = x.max().item()\nreturn x.masked_fill(x < 0, s)",
    "full of a number": "s = x.max().item()\nreturn torch.full((2,), s)",
    "full_like": "s = x.max().item()\nreturn torch.full_like(x, s)",
    "clamp": "s = x.max().item()\nreturn x.clamp(max=s / 2)",
    "clamp with both": "s = x.max().item()\nreturn x.clamp(0, s)",
    "torch.tensor of a number": "s = x.max().item()\nreturn x * torch.tensor(s)",
    "linspace": "s = x.max().item()\nreturn torch.linspace(0, s, 3)",
    "where": "s = x.max().item()\nreturn torch.where(x > s / 2, x, s)",
    "comparison": "s = x.max().item()\nreturn x > s",
    "comparison in Python": "s = x.max().item()\nif s > 3:\n    return x / s\nreturn x",
    "chain of comparisons": "s = x.max().item()\nif 0 < s < 3:\n    return x / s\nreturn x",
    "float()": "s = float(x.max())\nreturn x / s",
    "int()": "s = int(x.max())\nreturn x * s",
    "int() of a negative": "s = int(x.min() - 0.5)\nreturn x * s",
    "bool()": "s = bool(x.max())\nreturn x * s",
    "complex()": "s = complex(x.max())\nreturn x * s",
    "tolist": "s = x.max().tolist()\nreturn x / s",
    "numpy": "s = x.max().detach().numpy()\nreturn x / torch.from_numpy(np.asarray(s))",
    "gradient cut by item": "s = x.max().item()\nreturn (x * s).sum()",
    "gradient cut by item twice": "s = x.max().item()\nt = s * s\nreturn (x * t).sum()",
    "gradient cut by float of a parameter": "s = float(self.weight.sum())\nreturn x * s",
    "more than one element": "s = x[0].item()\nreturn x * s",
    "number in two arms": "s = x.max().item()\nt = s if self.training else -s\nreturn x * t",
    "number augmented": "s = x.max().item()\ns += 1\ns *= 2\nreturn x * s",
    "number added to a list of numbers": "s = x.max().item()\nreturn x * sum([s, 1, 2])",
    "number reused by a nested function": "s = x.max().item()\ndef f():\n    return s * 2\nreturn x * f()",
    "number default argument": "def f(t, s=x.max().item()):\n    return t * s\nreturn f(x)",
    "number in an attribute compared": "s = x.max().item()\nif s != self.seen:\n    self.seen = s\nreturn x",
    "sum of numbers": "t = 0.0\nfor row in x:\n    t += row.max().item()\nreturn x * t",
    "list of numbers": "t = [row.max().item() for row in x]\nreturn x * max(t)",
    "tolist, indexed": "t = x.sum(-1).tolist()\nreturn x * t[0]",
    "slice by a number": "n = int((x > 0).sum())\nreturn x.view(-1)[:n]",
    "size by a number": "n = int((x > 0).sum())\nreturn torch.zeros(n)",
    "range by a number": "n = int((x > 0).sum())\nreturn sum(range(n)) + x",
    "index by a number": "n = x.sum(0).argmax().item()\nreturn x[:, n]",
    "index by a 0-dim tensor": "n = x.sum(0).argmax()\nreturn x[:, n]",
    "shape by a number": "n = x.sum(0).argmax().item()\nreturn x.view(-1, 3)[n % 2]",
    "repeat by a number": "n = int((x > 0).sum())\nreturn x.repeat(n, 1)",
    "dtype of a result kept": "s = x.max().item()\nreturn torch.tensor([1, 2]) * s",
    "bfloat16 result": "h = x.bfloat16()\ns = h.sum().item()\nreturn h * s, s * h.float()",
    "two numbers divided": "a, b = x.max().item(), x.min().item()\nreturn x * (a / (b + 10.0))",
    "two numbers subtracted": "a = x.max().item()\nb = x.min().item()\nreturn x * (a - b)",
    "number and list of sizes": "n = x.shape[0]\ns = x.max().item()\nreturn x * (s / n)",
    "nan number": "s = x.max().item()\nif s != s:\n    raise ValueError('nan')\nreturn x * s",
    "guard on a number": "s = x.min().item()\nif s < 0:\n    raise ValueError(f'{s} is negative')\nreturn x * s",
    "number given to a layer": "s = x.max().item()\nreturn self.scaled(x, s)",
    "number given to a layer of another class": "s = x.max().item()\nreturn self.part(x, s)",
}.items():
    for form, prefix in {"": "", ", detached": "x = x.detach()\n"}.items():
        if form and "gradient" not in name and name not in {"parameter written", "written before the last use"}:
            continue
        items.add(
            name + form,
            prefix + body,
            init="""
            self.weight = nn.Parameter(torch.tensor([0.5, 1.5, 2.0]))
            self.register_buffer("table", torch.ones(2, 2))
            self.act = nn.ReLU(inplace=True)
            self.said = None
            self.seen = 0.0
            self.part = Part()
            """,
            methods="""
            def clear(self, t):
                t.zero_()

            def scaled(self, t, s):
                if isinstance(s, float):
                    return t * s
                return t - 1.0
            """,
            top="""
            class Part(nn.Module):
                def forward(self, t, s):
                    return t * s if type(s) is float else t
            """,
            varied=name in {"written before the last use", "float()", "int()", "comparison", "gradient cut by item"},
        )

flags = Group("flags of tensors")
for name, body in {
    "used once": "flag = (x > 0).any().item()\nif flag:\n    raise ValueError('positive')\nreturn x",
    "mask written before the use": "m = x > 0\nflag = m.any().item()\nm.fill_(False)\nif flag:\n    raise ValueError('positive')\nreturn x",
    "0-dim mask written before the use": "m = (x > 0).any()\nflag = bool(m)\nm.logical_not_()\nif flag:\n    raise ValueError('positive')\nreturn x",
    "flag of an element, source written": "m = x > 0\nflag = bool(m[0, 0])\nm[0, 0] = False\nif flag:\n    raise ValueError('positive')\nreturn x",
    "flag returned": "flag = bool((x > 0).any())\nreturn x, flag",
    "flag stored": "self.flag = bool((x > 0).any())\nreturn x",
    "flag is True": "flag = bool((x > 0).any())\nif flag is True:\n    raise ValueError('positive')\nreturn x",
    "flag in arithmetic": "flag = bool((x > 0).any())\nreturn x * flag",
    "flag indexes a list": "flag = bool((x > 0).any())\nreturn x * [1.0, 2.0][flag]",
    "flag in a dict": "flag = bool((x > 0).any())\nreturn x * {True: 1.0, False: 2.0}[flag]",
    "flag and flag": "a, b = bool((x > 0).any()), bool((x < 0).any())\nif a and b:\n    raise ValueError('both')\nreturn x",
    "flag or a string": "flag = bool((x > 0).any()) or 'none'\nreturn x if flag == 'none' else x * 2",
    "not flag": "flag = not (x > 0).any().item()\nif flag:\n    raise ValueError('none')\nreturn x",
    "flag of uint8": "m = (x > 0).to(torch.uint8)\nflag = bool(m.any())\nif not flag:\n    raise ValueError('none')\nreturn x",
    "flag of uint8 item": "m = (x > 0).to(torch.uint8) * 2\nflag = m.max().item()\nif flag == 2:\n    raise ValueError('two')\nreturn x",
    "flag to a layer": "flag = bool((x > 0).any())\nreturn self.part(x, flag)",
    "flag to a layer of a subclass": "flag = bool((x > 0).any())\nreturn self.other(x, flag)",
    "flag under a select": "flag = bool((x > 0).any())\nif flag:\n    x = x.sqrt()\nreturn x",
    "flag early return": "flag = bool((x > 0).all())\nif flag:\n    return x.sqrt()\nreturn x",
    "flag message": "flag = bool((x > 0).any())\nprint('flag', flag)\nreturn x",
    "flag repr": "flag = bool((x > 0).any())\nself.said = f'{flag}'\nreturn x",
    "flag counted": "flags = [bool((r > 0).any()) for r in x]\nreturn x * sum(flags)",
    "flag in a while": "flag = bool((x > 1).any())\nn = 0\nwhile flag and n < 4:\n    x = x / 2\n    flag = bool((x > 1).any())\n    n += 1\nreturn x",
    "flag in a closure": "flag = bool((x > 0).any())\nf = lambda t: t.sqrt() if flag else t\nreturn f(x)",
    "flag by keyword": "flag = bool((x > 0).any())\nreturn self.part(x, flag=flag)",
    "flag by **": "flag = bool((x > 0).any())\nreturn self.part(x, **{'flag': flag})",
}.items():
    flags.add(
        name,
        body,
        init="self.flag = False\nself.said = None\nself.part = Part()\nself.other = Child()",
        top="""
        class Part(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 3)
                self.last = None

            def forward(self, t, flag):
                if flag:
                    t = self.linear(t)
                return t


        class Child(Part):
            def forward(self, t, flag):
                self.last = flag
                return t[t > 0].sum() if flag else t
        """,
        varied=False,
    )
    if "part" in name or "layer" in name or "by " in name:
        flags.add(
            f"{name}, part replaced in another file",
            body,
            init="self.flag = False\nself.said = None\nself.part = Part()\nself.other = Part()",
            top="""
            class Part(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.linear = nn.Linear(3, 3)

                def forward(self, t, flag):
                    if flag:
                        t = self.linear(t)
                    return t
            """,
            files={
                "child.py": """
                import model
                import torch


                class Other(model.Part):
                    def forward(self, t, flag):
                        print("flag", type(flag).__name__)
                        if flag is True:
                            return t[:1]
                        return t


                class Child(model.Model):
                    def __init__(self):
                        super().__init__()
                        self.part = Other()
                        self.other = Other()
                """
            },
            make="child.Child()",
            varied=False,
        )

sizes = Group("sizes and lists")
for name, body in {
    "sizes of a list": "s = torch.tensor([[a.shape[0], a.shape[1]] for a in (x, x)])\nout = []\nfor h, w in s:\n    out.append(torch.arange(h) * w)\nreturn torch.cat(out)",
    "sizes that an alias reverses": "l = [[1, 2], [3, 4]]\nsame = l\ns = torch.tensor(l)\nsame.reverse()\nout = []\nfor h, w in s:\n    out.append(torch.arange(h) * w)\nreturn torch.cat(out)",
    "split by a list": "l = [1, 2]\ns = torch.tensor(l)\nreturn x.split(s.tolist(), dim=1)",
    "split by a list that an alias reverses": "l = [1, 2]\nsame = l\ns = torch.tensor(l)\nsame.reverse()\nreturn x.split(s.tolist(), dim=1)",
    "split by a list that a method sorts": "l = [2, 1]\ns = torch.tensor(l)\nself.order(l)\nreturn x.split(s.tolist(), dim=1)",
    "split by a list of self": "s = torch.tensor(self.parts)\nself.parts = self.parts[::-1]\nreturn x.split(s.tolist(), dim=1)",
    "split by a list, item assigned": "l = [1, 2]\ns = torch.tensor(l)\nl[0], l[1] = 2, 1\nreturn x.split(s.tolist(), dim=1)",
    "split by a list, del": "l = [1, 2, 0]\ns = torch.tensor(l)\ndel l[2]\nreturn x.split(s.tolist(), dim=1)",
    "split by a list, +=": "l = [1, 2]\ns = torch.tensor(l)\nl += [3]\nreturn x.split(s.tolist(), dim=1)",
    "split by a list, pop in a call": "l = [1, 2, 0]\ns = torch.tensor(l)\nn = l.pop()\nreturn x.split(s.tolist(), dim=1), n",
    "split by a list, loop variable": "l = [1, 2]\ns = torch.tensor(l)\nfor i, l[0] in enumerate([7]):\n    pass\nreturn x.split(s.tolist(), dim=1)",
    "split by a list, alias in a tuple": "l = [1, 2]\nt = (l,)\ns = torch.tensor(l)\nt[0].reverse()\nreturn x.split(s.tolist(), dim=1)",
    "split by a list, alias in an attribute": "l = [1, 2]\nself.parts = l\ns = torch.tensor(l)\nself.parts.reverse()\nreturn x.split(s.tolist(), dim=1)",
    "split by a list, alias by walrus": "l = [1, 2]\n(m := l).reverse()\ns = torch.tensor(l)\nm.reverse()\nreturn x.split(s.tolist(), dim=1)",
    "split by a list, alias by match": "l = [1, 2]\ns = torch.tensor(l)\nmatch l:\n    case m:\n        m.reverse()\nreturn x.split(s.tolist(), dim=1)",
    "split by a tensor that was written": "l = [1, 2]\ns = torch.tensor(l)\ns[0], s[1] = 2, 1\nreturn x.split(s.tolist(), dim=1)",
    "split by a tensor written in place": "l = [1, 2]\ns = torch.tensor(l)\ns.copy_(s.flip(0))\nreturn x.split(s.tolist(), dim=1)",
    "split by a tensor written through a view": "l = [1, 2]\ns = torch.tensor(l)\nv = s[:1]\nv.fill_(2)\nw = s[1:]\nw.fill_(1)\nreturn x.split(s.tolist(), dim=1)",
    "split by floats": "l = [1.0, 2.0]\ns = torch.tensor(l)\nreturn x.split([int(n) for n in s.tolist()], dim=1)",
    "repeat_interleave": "l = [1, 2]\ns = torch.tensor(l)\nreturn torch.repeat_interleave(x, s, dim=0)",
    "repeat_interleave of data": "s = (x > 0).sum(1)\nreturn torch.repeat_interleave(x, s, dim=0)",
    "joined sizes": "shape = torch.cat([torch.as_tensor([-1]), torch.as_tensor([3], dtype=torch.long)], dim=0)\nreturn x.reshape(shape.tolist())",
    "joined sizes, list changed": "inner = [3]\nshape = torch.cat([torch.as_tensor([-1]), torch.as_tensor(inner, dtype=torch.long)], dim=0)\ninner[0] = 2\nreturn x.reshape(shape.tolist())",
    "joined sizes, tensor changed": "shape = torch.cat([torch.as_tensor([-1]), torch.as_tensor([2], dtype=torch.long)], dim=0)\nshape[1] = 3\nreturn x.reshape(shape.tolist())",
    "joined sizes with a bool": "shape = torch.cat([torch.as_tensor([-1]), torch.as_tensor([True])], dim=0)\nreturn x.reshape(shape.tolist())",
    "joined sizes with a float": "shape = torch.cat([torch.as_tensor([-1]), torch.as_tensor([3.7]).long()], dim=0)\nreturn x.reshape(shape.tolist())",
    "shifted range": "start = (x > 0).sum()\nreturn torch.arange(start, start + x.shape[0])",
    "shifted range of floats": "start = x.sum()\nreturn torch.arange(start, start + x.shape[0])",
    "shifted range of int32": "start = (x > 0).sum().to(torch.int32)\nreturn torch.arange(start, start + x.shape[0])",
    "shifted range with a step": "start = (x > 0).sum()\nreturn torch.arange(start, start + x.shape[0], 2)",
    "shifted range with a dtype": "start = (x > 0).sum()\nreturn torch.arange(start, start + x.shape[0], dtype=torch.float32)",
    "shifted range, start written": "start = (x > 0).sum()\nend = start + x.shape[0]\nstart.add_(1)\nreturn torch.arange(start, end)",
    "shifted range of a vector": "start = (x > 0).sum().view(1)\nreturn torch.arange(start, start + x.shape[0])",
    "shifted range by a bool": "start = (x > 0).any()\nreturn torch.arange(start, start + x.shape[0])",
    "end of range": "p = None\nif p is None:\n    p = torch.arange(x.shape[0])\nn = p[-1] + 1\nreturn torch.arange(n) > p.reshape(-1, 1)",
    "end of range, written": "p = None\nif p is None:\n    p = torch.arange(x.shape[0])\np[-1] = 4\nn = p[-1] + 1\nreturn torch.arange(n)[None] > p.reshape(-1, 1)",
    "end of range, shifted": "p = None\nif p is None:\n    p = torch.arange(x.shape[0])\np = p + 1\nn = p[-1] + 1\nreturn torch.arange(n)[None] > p.reshape(-1, 1)",
    "end of range with a start": "p = None\nif p is None:\n    p = torch.arange(1, x.shape[0])\nn = p[-1] + 1\nreturn torch.arange(n)",
    "end of range, empty": "p = None\nif p is None:\n    p = torch.arange(x.shape[0] - 2)\nn = p[-1] + 1 if p.numel() else 0\nreturn torch.arange(n)",
    "number of range": "p = torch.arange(0, self.width)\nif p[0] > 0:\n    return x\nreturn x + 1.0",
    "number of range, written": "p = torch.arange(0, self.width)\np[0] = 5\nif p[0] > 0:\n    return x\nreturn x + 1.0",
    "number of range, out of it": "p = torch.arange(0, self.width)\nif p[7] > 0:\n    return x\nreturn x + 1.0",
    "number of range, negative index": "p = torch.arange(0, self.width)\nif p[-1] > 1:\n    return x\nreturn x + 1.0",
    "number of range of a bool attribute": "p = torch.arange(0, self.on)\nif p[0] > 0:\n    return x\nreturn x + 1.0",
    "number in tensor": "c = torch.IntTensor([self.width])\nreturn x[:, : c[0]]",
    "number in tensor, written": "c = torch.IntTensor([self.width])\nc[0] = 1\nreturn x[:, : c[0]]",
    "number in tensor, wraps": "c = torch.IntTensor([self.width + 2**31 - 4])\nreturn x[:, : c[0]]",
    "number in tensor of a float": "c = torch.IntTensor([2.7])\nreturn x[:, : c[0]]",
    "cut to the last": "p = x.abs().nan_to_num(0.0, 0.0, 0.0).long()\nlast = p.max().item()\nt = self.table[:, : last + 1]\nreturn torch.stack([torch.index_select(t[0], 0, r.clamp(max=last)) for r in p])",
    "numpy on sizes": "n = int(np.ceil(x.shape[1] / 2))\nreturn x[:, :n]",
    "numpy item": "n = np.ceil(x.shape[1] / 2).astype(int).item()\nreturn x[:, :n]",
    "numpy log of zero": "n = np.log(x.shape[0] - 2)\nreturn x * float(n)",
    "numpy sqrt of a negative": "n = np.sqrt(x.shape[0] - 5)\nreturn x * float(n)",
    "numpy exp that overflows": "n = np.exp(x.shape[1] * 1000.0)\nreturn x * float(n)",
    "numpy prod that wraps": "n = np.prod([2**40, 2**40, x.shape[0]])\nreturn x * float(n)",
    "numpy prod of nothing": "n = np.prod(x.shape[2:])\nreturn x.reshape(-1, int(n))",
    "numpy type of the result": "n = np.ceil(x.shape[1] / 2)\nreturn x * n, type(n).__name__",
    "numpy int division by zero": "n = np.floor_divide(x.shape[1], x.shape[0] - 2)\nreturn x * float(n)",
    "numpy gcd": "n = np.gcd(x.shape[1], 6)\nreturn x[:, : int(n)]",
    "torch.div of sizes": "n = torch.div(x.shape[1], 2, rounding_mode='floor')\nreturn x[:, :n]",
    "torch.div of a negative size": "n = torch.div(-x.shape[1], 2, rounding_mode='trunc')\nreturn x[:, n:]",
    "torch.div by zero": "n = torch.div(x.shape[1], x.shape[0] - 2, rounding_mode='floor')\nreturn x * n",
    "torch.div without rounding": "n = torch.div(x.shape[1], 2)\nreturn x * n",
    "torch.div, a tensor needed": "n = torch.div(x.shape[1], 2, rounding_mode='floor')\nreturn x * n.float()",
    "assert of a multiple": "n = x.shape[1]\nassert n % 3 == 0\nrows = torch.div(n, 3, rounding_mode='trunc')\nreturn x.view(x.size(0), rows, 3).sum()",
    "mark static": "torch._dynamo.mark_static_address(x)\nreturn x * 2.0",
    "mark dynamic of a result": "torch._dynamo.mark_dynamic(x, 0) if False else None\ny = x * 2.0\ntorch._dynamo.maybe_mark_dynamic(y, 0)\nreturn y",
    "number that grows": "n = 1\nif (x > 2).any():\n    n = n + 1\nreturn x * n",
    "number that grows, range": "n = 1\nif (x > 2).any():\n    n = n + 1\nreturn x * len(range(n))",
    "number that grows, bool": "n = True\nif (x > 2).any():\n    n = n + 1\nreturn x * n",
    "number that grows, returned": "n = 1\nif (x > 2).any():\n    n = n + 1\nreturn x, n",
    "number that grows, half": "n = 1\nif (x > 2).any():\n    n = n + 1\nreturn x.half() * n, x.bool() * n",
    "number that grows by a float": "n = 1\nif (x > 2).any():\n    n = n + 0.5\nreturn x * n",
    "number that grows twice": "n = 1\nif (x > 2).any():\n    n = n + 1\nif (x < 0).any():\n    n = n * 2\nreturn x * n",
    "number that grows, power": "n = 1\nif (x > 2).any():\n    n = n + 1\nreturn x * 2 ** n",
    "number that grows, floor division by it": "n = 1\nif (x > 2).any():\n    n = n - 1\nreturn x * (6 // n)",
    "number that grows, compared": "n = 1\nif (x > 2).any():\n    n = n + 1\nif n == 2:\n    return x\nreturn x + 1.0",
    "number that grows, stored": "self.n = 1\nif (x > 2).any():\n    self.n = self.n + 1\nreturn x * self.n",
}.items():
    sizes.add(
        name,
        body,
        init="""
        self.parts = [1, 2]
        self.width = 2
        self.on = True
        self.register_buffer("table", torch.arange(60.0).view(1, 20, 3))
        """,
        methods="""
        def order(self, parts):
            parts.sort()
        """,
        varied=False,
    )
