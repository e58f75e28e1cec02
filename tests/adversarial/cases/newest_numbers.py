"""Queues, lists behind tensors, arrays of NumPy, and elements chosen by a tensor: what only looks like the known form."""

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
_THREE = "torch.arange(9.0).reshape(3, 3) - 4"
_INPUTS = (_X, _THREE, _N, _X)

queues = Group("queues")
_INIT = """
self.size = 4
self.register_buffer("queue", torch.arange(12.0).reshape(4, 3))
self.register_buffer("second", torch.zeros(4, 3))
self.register_buffer("labels", torch.zeros(4, dtype=torch.long))
self.register_buffer("at", torch.zeros(1, dtype=torch.long))
"""
_CUT = """
if at + n >= self.size:
    self.queue[at:] = keys[: self.size - at]
    self.at.zero_()
else:
    self.queue[at : at + n] = keys
    self.at[0] = at + n
"""
_OVER = """
if at + n > self.size:
    over = at + n - self.size
    self.queue[at:] = keys[: n - over]
    self.queue[:over] = keys[n - over :]
else:
    self.queue[at : at + n] = keys
self.at[0] = (at + n) % self.size
"""
_TURNED = """
if at + n > self.size:
    first = self.size - at
    self.queue[:, at:] = keys[:first].T
    self.queue[:, : n - first] = keys[first:].T
else:
    self.queue[:, at : at + n] = keys.T
self.at[0] = (at + n) % self.size
"""
_END = "\nreturn self.queue.clone(), self.second.clone(), self.at.clone(), self.labels.clone()"
for _form, _body in {"cut off": _CUT, "over the end": _OVER}.items():
    for _name, (_before, _old, _new, _after) in {
        "rows are a view of the queue": ("keys = self.queue[1:3]", "", "", ""),
        "rows overlap the queue, one more": ("keys = self.queue[1:4]", "", "", ""),
        "rows are the queue": ("keys = self.queue", "", "", ""),
        "rows are a turned view of the queue": ("keys = self.queue.flatten()[3:9].view(2, 3)", "", "", ""),
        "rows of another queue": ("keys = self.second[:2]", "", "", ""),
        "rows cut along another axis": ("keys = keys[:, :3]", "", "", ""),
        "rows were cut before": ("keys = keys[:2]", "", "", ""),
        "rows are a number": ("n = 1\nkeys = 7.0", "", "", ""),
        "rows are one row": ("keys = keys[:1].expand(2, 3)", "", "", ""),
        "rows of another width": ("keys = keys[:, :1]", "", "", ""),
        "rows are integers": ("keys = keys.long()", "", "", ""),
        "rows are an array": ("keys = keys.detach().numpy()", "", "", ""),
        "rows are a list": ("keys = keys.tolist()", "", "", ""),
        "the position is bound before": ("at = int(self.at)", "", "", ""),
        "the position is read later": ("", "", "", "self.labels[0] = at"),
        "the number is read later": ("", "", "", "self.labels[0] = n"),
        "the position is printed": ("", "", "", "logger.warning('%s', at)"),
        "a second queue": (
            "",
            "self.queue[at : at + n] = keys",
            "self.queue[at : at + n] = keys\n    self.second[at : at + n] = keys",
            "",
        ),
        "labels beside": (
            "",
            "self.queue[at : at + n] = keys",
            "self.queue[at : at + n] = keys\n    self.labels[at : at + n] = at",
            "",
        ),
        "a log between": ("", "else:", "    logger.info('full')\nelse:", ""),
        "raises at the end": ("", "else:", "    raise ValueError('full')\nelse:", ""),
    }.items():
        _text = _body.replace(_old, _new) if _old else _body
        if _before.startswith("at ="):
            _text = f"at = 0\nn = keys.shape[0]\n{_before}\n{_text}"
        elif _before.startswith("n ="):
            _text = f"{_before}\nat = int(self.at)\n{_text}"
        else:
            _text = f"{_before}\nn = keys.shape[0]\nat = int(self.at)\n{_text}"
        queues.add(
            f"{_form}, {_name}",
            f"{_text}\n{_after}{_END}",
            args="keys: torch.Tensor",
            init=_INIT,
            decorator="@torch.no_grad()",
            inputs=_INPUTS,
            training=(False,),
            varied=False,
        )
for _form, _body in {"over the end": _OVER, "turned": _TURNED}.items():
    for _name, _made in {
        "an int32 position": "made.at = torch.zeros(1, dtype=torch.int32)",
        "a floating position": "made.at = torch.zeros(1)",
        "a position of no dimensions": "made.at = torch.tensor(2)",
        "a position of two numbers": "made.at = torch.zeros(2, dtype=torch.long)",
        "a position below zero": "made.at = torch.tensor([-2])",
        "a position behind the end": "made.at = torch.tensor([5])",
        "a position among the labels": "made.at = made.labels[1:2]",
        "a queue of another length": "made.queue = torch.zeros(3, 3)",
        "a queue of integers": "made.queue = made.queue.long()",
        "a queue of half": "made.queue = made.queue.half()",
        "a queue of complex numbers": "made.queue = made.queue.to(torch.complex64)",
        "a queue with one row in memory": "made.queue = torch.zeros(1, 1).expand(4, 4)",
        "a turned queue": "made.queue = torch.zeros(4, 4).t()[:, :]",
        "a queue that requires a gradient": "made.queue = torch.zeros(4, 4, requires_grad=True)",
        "a queue that is a parameter": "del made.queue\n    made.queue = torch.nn.Parameter(torch.zeros(4, 4))",
        "a size of NumPy": "import numpy\n    made.size = numpy.int64(4)",
        "a size that is a float": "made.size = 4.0",
        "a size that is a tensor": "made.size = torch.tensor(4)",
        "a size of one": "made.size = True\n    made.queue = torch.zeros(1, 1)",
    }.items():
        queues.add(
            f"{_form}, {_name}",
            f"n = keys.shape[0]\nat = int(self.at)\n{_body}{_END}",
            args="keys: torch.Tensor",
            init=_INIT,
            decorator="" if "gradient" in _name else "@torch.no_grad()",
            outside=f"import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n"
            f"    made.queue = torch.zeros(4, 4)\n    {_made}\n    return made\n",
            inputs=(
                "torch.ones(2, 4)",
                "torch.ones(3, 4) * 2",
                "torch.ones(1, 1)",
                "torch.ones(5, 4)",
                "torch.ones(0, 4)",
            ),
            training=(False,),
            varied=False,
        )

lists = Group("lists behind tensors")
for _name, _made in {
    "bools": "[True, False]",
    "a bool and a number": "[True, 0]",
    "numbers of NumPy": "[np.int64(2), 3]",
    "its own property": "self.sizes",
    "large numbers": "[2**62, 2**62]",
    "an enum": "[Kind.ONE, Kind.TWO]",
    "a subclass of int": "[Own(2), Own(3)]",
    "tensors": "[x.shape[0], torch.tensor(3)]",
    "a tuple": "(2, 3)",
    "a range": "range(2, 4)",
    "an array": "np.array([2, 3])",
    "nothing": "[]",
}.items():
    for _read, _text in {
        "largest": "n = int(t.max())\nreturn x * torch.arange(n % 7).sum(), n, str(n)",
        "sum": "n = t.sum().item()\nreturn x * n, n, str(n)",
        "all": "n = t.tolist()\nn.append(1)\nreturn x * n[0], n, str(n), t.tolist()",
    }.items():
        lists.add(
            f"{_name}, {_read}",
            f"given = {_made}\nt = torch.tensor(given)\n{_text}",
            top="""
            import enum

            class Kind(enum.IntEnum):
                ONE = 1
                TWO = 2

            class Own(int):
                def __str__(self):
                    return "own"
            """,
            init="self.asked = 0",
            methods="@property\ndef sizes(self):\n    self.asked += 1\n    return [self.asked, 3]",
            inputs=(_X, _THREE),
            training=(False,),
            varied=False,
        )
for _name, _between in {
    "through NumPy": "t.numpy()[0] = 9",
    "through an array": "np.asarray(t)[0] = 9",
    "in a tuple": "t[0], y = 9, x",
    "by a loop": "for t[0] in [9]:\n    pass",
    "by a function": "touch(t)",
    "by its list": "held = [t]\nheld[0][0] = 9",
    "by a closure": "def f():\n    t[0] = 9\nf()",
    "by set_": "t.set_(torch.tensor([9, 9]))",
    "by data": "t.data = torch.tensor([9, 9])",
    "by a swap": "t, u = torch.tensor([9]), t",
    "by del": "u = t\ndel t\nt = u + 1",
    "by a comprehension": "[t.add_(k) for k in (1, 2)]",
    "by setattr": "setattr(t, 'data', torch.tensor([9]))",
    "not at all": "u = t + 1",
    "its list alone": "given[0] = 9",
}.items():
    lists.add(
        f"written {_name}",
        f"given = [2, 3]\nt = torch.tensor(given)\n{_between}\nn = t.max().item()\nreturn x * n, n",
        top="def touch(t):\n    t[0] = 9",
        inputs=(_X, _THREE),
        training=(False,),
        varied=False,
    )

arrays = Group("tests of arrays")
for _name, (_sizes, _patch) in {
    "bools": ("(True, True)", "True"),
    "bools and numbers": ("(True, 2)", "2"),
    "large": ("(2**40, 2**41)", "2**40"),
    "too large": ("(2**70, 1)", "2"),
    "below zero": ("(-3, 5)", "2"),
    "by zero": ("(4, 6)", "0"),
    "by a negative number": ("(4, 6)", "-4"),
    "by a float": ("(4, 6)", "2.0"),
    "by NumPy": ("(4, 6)", "np.int8(100)"),
    "by a tensor": ("(4, 6)", "torch.tensor(4)"),
    "of tensors": ("(torch.tensor(4), 6)", "4"),
    "of nothing": ("()", "4"),
    "of lists": ("[[4, 6], [8, 2]]", "4"),
    "of texts": ("('a', 'b')", "4"),
    "of one": ("7", "4"),
    "of uint8": ("np.array([200, 100], dtype=np.uint8)", "100"),
}.items():
    for _kind, _test in {
        "sum": "(np.array(self.sizes) + self.patch > 1).any()",
        "product": "np.all(np.asarray(self.sizes) * self.patch > 300)",
        "rest": "np.any(np.array(self.sizes) % self.patch != 0)",
    }.items():
        arrays.add(
            f"{_name}, {_kind}",
            f"if {_test}:\n    x = x + 1\nreturn x",
            init=f"self.sizes = {_sizes}\nself.patch = {_patch}",
            inputs=(_X, _THREE),
            training=(False,),
            varied=False,
        )

chosen = Group("forms of a fixed size")
for _name, (_body, _given) in {
    "roll by more than the size": ("return torch.roll(x, int(t[0]), 1) * 2", ("torch.tensor([-99, 1])", "torch.tensor([7, 1])")),
    "roll by the smallest number": ("return torch.roll(x, -int(t[0]), 1) * 2", ("torch.tensor([-2**63])", "torch.tensor([2**63 - 1])")),
    "roll nothing": ("x = x[:, :0]\nreturn torch.roll(x, int(t[0]), 1) * 2", ("torch.tensor([1])", "torch.tensor([0])")),
    "roll of bools": ("return torch.roll(x > 0, int(t[0]), 0)", ("torch.tensor([1])", "torch.tensor([0])")),
    "roll of a turned tensor": ("return torch.roll(x.t(), int(t[0]), 0)", ("torch.tensor([1])", "torch.tensor([0])")),
    "roll by a float": ("return torch.roll(x, int(t[0]), 1) * 2", ("torch.tensor([1.7])", "torch.tensor([-1.7])")),
    "roll by int32": ("return torch.roll(x, int(t[0]), 1) * 2", ("torch.tensor([1], dtype=torch.int32)", "torch.tensor([True])")),
    "roll, then written": ("y = torch.roll(x, int(t[0]), 1)\ny += 1\nreturn y, x", ("torch.tensor([1])", "torch.tensor([0])")),
    "roll by a row": ("return torch.roll(x, int(t[0]), 1)", ("torch.tensor([[1]])", "torch.tensor([1])")),
    "roll out of range": ("return torch.roll(x, int(t[5]), 1)", ("torch.tensor([1])",)),
    "roll along no dimension": ("return torch.roll(x, int(t[0]), 5)", ("torch.tensor([1])",)),
    "a class below zero": ("n = max(t.max() + 1, 3)\nreturn F.one_hot(t, n)[..., :3] * 1.0", ("torch.tensor([-1, 1])", "torch.tensor([1, 9])")),
    "classes of uint8": ("n = max(t.max() + 1, 3)\nreturn F.one_hot(t, n)[..., :3] * 1.0", ("torch.tensor([0, 1], dtype=torch.uint8)",)),
    "classes of nothing": ("n = max(t.max() + 1, 3)\nreturn F.one_hot(t, n)[..., :3] * 1.0", ("torch.zeros(0, dtype=torch.long)",)),
    "classes of one": ("n = max(t.max() + 1, 3)\nreturn F.one_hot(t, n)[..., :3] * 1.0", ("torch.tensor(2)", "torch.tensor(8)")),
    "no classes": ("n = max(t.max() + 1, self.n)\nreturn F.one_hot(t, n)[..., : self.n] * 1.0", ("torch.tensor([2])",)),
    "element out of range": ("best = t.max()\nreturn x * x[:, best].unsqueeze(1)", ("torch.tensor([2])", "torch.tensor([5])")),
    "element from the end": ("best = t.max()\nreturn x * x[:, best].unsqueeze(1)", ("torch.tensor([-1])", "torch.tensor([-3])")),
    "element of int32": ("best = t.max()\nreturn x * x[:, best].unsqueeze(1)", ("torch.tensor([1], dtype=torch.int32)",)),
    "element by a bool": ("best = t.max()\nreturn x * x[:, best].sum()", ("torch.tensor([True])", "torch.tensor([False])")),
    "element by uint8": ("best = t.max()\nreturn x * x[:, best].sum()", ("torch.tensor([1], dtype=torch.uint8)",)),
    "element returned": ("best = t.argmax()\nreturn x[:, best], x", ("torch.tensor([1, 2])",)),
    "element of a list": ("xs = [x, x + 1, x + 2]\nbest = t.argmax()\nreturn xs[best] * 2", ("torch.tensor([1, 2])",)),
    "element, then the tensor is written": ("best = t.argmax()\ny = x[:, best]\nx[:, 0] = 9\nreturn y * 2", ("torch.tensor([1, 2])", "torch.tensor([2, 1])")),
    "element of a slice by a number": ("best = t.argmax()\nreturn x[1, best] * 2, x[best, :1] * 3", ("torch.tensor([1, 2])",)),
    "element of an expanded tensor": ("best = t.argmax()\nreturn x[:1].expand(4, 3)[:, best] * 2", ("torch.tensor([1, 2])",)),
    "not the diagonal of one": ("e = torch.eye(self.one, dtype=torch.bool)\nreturn x[:1, :1][~e].view(1, -1) * 2", ("torch.tensor([1])",)),
    "not the diagonal of what is no square": ("e = torch.eye(3, dtype=torch.bool)\nreturn x[~e] * 2", ("torch.tensor([1])",)),
    "the diagonal, written before": ("e = torch.eye(2, dtype=torch.bool)\ne[0, 1] = True\nreturn x[:2, :2][e] * 2", ("torch.tensor([1])",)),
    "repeated by a list": ("k = [1, 2, 0]\nreturn x[0].repeat_interleave(torch.tensor(k)) * 2", ("torch.tensor([1])",)),
    "repeated by a list below zero": ("k = [1, -2, 0]\nreturn x[0].repeat_interleave(torch.tensor(k)) * 2", ("torch.tensor([1])",)),
    "dimensions in a list": ("d = torch.arange(1, x.dim()).tolist()\nd.append(0)\nreturn x.sum(d), d", ("torch.tensor([1])",)),
}.items():  # fmt: skip
    chosen.add(
        _name,
        _body,
        args="x: torch.Tensor, t: torch.Tensor",
        init="self.n = 0\nself.one = 1",
        inputs=tuple(f"({x}, {each})" for x in (_X, _N) for each in _given),
        training=(False,),
        varied=False,
    )
