"""Tests whose Python parts act when they are asked, names that others read, and memory that methods write."""

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_N = "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])"

asked = Group("asked twice")
_BRANCHES = {
    "assignment": "if {test} and x.sum() > 0:\n    x = x + 1\nreturn x",
    "assignment, behind": "if x.sum() > 0 and {test}:\n    x = x + 1\nreturn x",
    "return": "if {test} and x.sum() > 0:\n    return x + 1\nreturn x",
    "expression": "return x + 1 if {test} and x.sum() > 0 else x",
    "clamp": "if {test} and torch.isinf(x).any():\n    x = torch.clamp(x, -1, 1)\nreturn x",
    "masked write": "if {test} and (x < 0).any():\n    x[x < 0] = 0\nreturn x",
    "raise": "if {test} and (x < -3).any():\n    raise ValueError('low')\nreturn x",
    "raise, behind": "if (x < -3).any() and {test}:\n    raise ValueError('low')\nreturn x",
    "before a flag": "if x.max() > 0 and {test} and self.off:\n    x = self.linear(x)\nreturn x",
}
for _kind, _test in {
    "property": "self.counted > 1",
    "method": "self.ask()",
    "negated method": "not self.ask()",
    "pop": "self.todo.pop()",
    "draw": "random.random() < 0.5",
    "object": "self.answer",
}.items():
    for _name, _body in _BRANCHES.items():
        asked.add(
            f"{_kind}, {_name}",
            _body.format(test=_test),
            top="""
            import random

            class Answer:
                asked = 0

                def __bool__(self):
                    Answer.asked += 1
                    return Answer.asked > 1
            """,
            init="self.asked = 0\nself.todo = [0, 1] * 20\nself.answer = Answer()\nself.off = False\nself.linear = nn.Linear(3, 3)",
            methods="@property\ndef counted(self):\n    self.asked += 1\n    return self.asked\n\n"
            "def ask(self):\n    self.asked += 1\n    return self.asked > 1",
            inputs=(_X, _N, _X, _X),
            training=(False,),
            varied=False,
        )

seen = Group("names that others read")
_SITES = {
    "select": "if x.sum() > 0:\n    y = x * 2",
    "fill": "for y, length in enumerate(lengths):\n    mask[y, :length] = 1",
    "rows": "y = x[x > 0]\nz = y * 2\nx = x.clone()\nx[x > 0] = z",
    "places": "y, columns = torch.where(ids == 2)\nends[y] = columns",
}
_BEFORE = (
    "y = x + 0\nmask = torch.zeros(2, 3)\nids = torch.tensor([[0, 2, 1], [2, 2, 2]])\n"
    "ends = torch.zeros(2, dtype=torch.long)\n"
)
for _kind, _site in _SITES.items():
    _inner = "\n".join(f"    {line}" for line in _site.splitlines())
    for _name, _body in {
        "closure": f"def f():\n    return y\n{_site}\nreturn f(), mask, x",
        "generator": f"g = (y for _ in range(1))\n{_site}\nreturn list(g), mask, x",
        "finally": f"try:\n{_inner}\n    return x, mask\nfinally:\n    self.last = y",
        "handler": f"try:\n{_inner}\n    x.view(7)\nexcept RuntimeError:\n    return x, mask, y\nreturn x",
        "break": f"while True:\n{_inner}\n    if self.flag:\n        break\n    y = 0\nreturn y, x, mask",
        "suppress": f"{_site}\nwith contextlib.suppress(RuntimeError):\n    x.view(7)\n    y = 0\nreturn y, x, mask",
        "locals": f"{_site}\nheld = locals()\nreturn held['y'], x, mask",
    }.items():
        seen.add(
            f"{_kind}, {_name}",
            _BEFORE + _body,
            args="x: torch.Tensor, lengths: torch.LongTensor",
            init="self.flag = True",
            inputs=(f"({_X}, torch.tensor([1, 2]))", f"({_N}, torch.tensor([3, 0]))"),
            training=(False,),
            varied=False,
        )
seen.add(
    "early return before a global",
    "global LAST\nif x.sum() > 0:\n    return x * 2\nLAST = x + 1\nreturn LAST",
    top="LAST = 0",
    inputs=(_X, _N),
    varied=False,
)

elements = Group("elements chosen by a tensor")
for _name, _body in {
    "relu in place by position": "y = F.relu(x[:, best], True)\nreturn y, x",
    "dropout in place by position": "y = F.dropout(x[:, best], 0.5, True, True)\nreturn y, x",
    "a method writes the buffer": "y = self.state[best]\nself.touch()\nreturn y * x.sum()",
    "a part writes its buffer": "y = self.part.state[best]\nself.part(x)\nreturn y * x.sum()",
    "classes, then written": "n = max(best + 1, 3)\nbest.add_(1)\nreturn F.one_hot(best, n)[..., :3] * 1.0",
    "classes, then another bound": "n = max(best + 1, self.n)\nself.n += 1\nreturn F.one_hot(best, n)[..., : self.n] * 1.0",
}.items():
    elements.add(
        _name,
        f"best = x.mean(0).argmax()\n{_body}",
        top="""
        class Part(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("state", torch.arange(3.0))

            def forward(self, x):
                self.state += 1
                return x
        """,
        init='self.register_buffer("state", torch.arange(3.0))\nself.part = Part()\nself.n = 3',
        methods="def touch(self):\n    self.state += 1",
        inputs=(_X, _N),
        varied=False,
    )
