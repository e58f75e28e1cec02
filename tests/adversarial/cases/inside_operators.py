"""Functions, methods and layers that run as operators with `--opaque`: results, modes, gradients, later writes."""

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0], [0.5, 2.0, -3.0], [-4.0, -0.5, 1.0]])"
_INPUTS = (_X, f"-{_X}", f"{_X}[:2]", "torch.zeros(4, 3)")
_SORTED = "k = x > 0\nq = torch.zeros_like(x)\nq[k] = x[k].sort().values\n"

functions = Group("functions as operators")
for _name, _result, _use in (
    ("two results", "x - q, q * 2", "a, b = spread(x)\nreturn a * 2, b"),
    ("one result twice", "q, q", "a, b = spread(x)\na.add_(1)\nreturn a, b"),
    ("a result and a view of it", "q, q[0]", "a, b = spread(x)\na.add_(1)\nreturn a, b"),
    ("two parts of one tensor", "q[:1], q[1:]", "a, b = spread(x)\na.add_(1)\nreturn a, b"),
    ("a result without a gradient", "x - q, q.detach()", "a, b = spread(x)\nreturn a * b"),
    ("a result that is expanded", "q[:1].expand(5, 3)", "return spread(x) * 2"),
    ("a result with steps", "q.repeat(1, 2)[:, ::2]", "return spread(x) * 2"),
    ("a result that is saved and written", "(q * x).exp()", "r = spread(x)\nr.mul_(2)\nreturn r"),
    ("random numbers", "F.dropout(x * 2, 0.5) + q", "return spread(x)"),
    ("the gradient mode", "q * 2 if torch.is_grad_enabled() else q", "return spread(x)"),
    ("what needs a gradient", "q * 2 if x.requires_grad else q", "return spread(x)"),
    ("a leaf made inside", "q.requires_grad_() * x", "return spread(x)"),
    ("a number that changes", "q * calls", "r = spread(x)\ncount()\nreturn r"),
    ("an infinite gradient", "x.abs().sqrt() * q", "return spread(x)"),
    ("in a loop", "q", "for i in range(3):\n    x = x + spread(x * i)\nreturn x"),
    ("through map", "q", "return torch.stack(list(map(spread, [x, -x])))"),
    ("under inference mode", "q", "with torch.inference_mode():\n    r = spread(x)[0] + 1\nreturn r + 0, x * 2"),
):
    functions.add(
        _name,
        _use,
        args="x: torch.Tensor",
        top="calls = 1\n\n\ndef count():\n    global calls\n    calls += 1\n\n\ndef spread(x):\n    "
        + f"{_SORTED}return {_result}".replace("\n", "\n    "),
        inputs=_INPUTS,
        varied=False,
    )

layers = Group("recurrent layers as operators")
_S = "torch.linspace(-1, 1, 24).view(2, 4, 3)"
for _name, _use, _init in (
    ("input written later", "z = x * 1\ny = self.rnn(z)[0]\nz.zero_()\nreturn y, z", ""),
    ("state written later", "h = x.new_zeros(1, 2, 4)\ny, s = self.rnn(x, (h, h))\nh.add_(1)\nreturn y, h", ""),
    ("one parameter frozen", "return self.rnn(x)[0]", "self.rnn.weight_hh_l0.requires_grad = False"),
    ("a forward hook", "return self.rnn(x)[0]", "self.rnn.register_forward_hook(lambda m, a, r: (r[0] * 2, r[1]))"),
    ("a hook of a parameter", "return self.rnn(x)[0]", "self.rnn.weight_ih_l0.register_hook(lambda g: g * 2)"),
    ("detached", "return self.rnn(x.detach())[0]", ""),
    ("without gradients first", "with torch.no_grad():\n    a = self.rnn(x)[0]\nreturn a + self.rnn(x)[0]", ""),
    (
        "weights that change",
        "y = self.rnn(x)[0]\nwith torch.no_grad():\n    self.rnn.weight_ih_l0.mul_(0.5)\nreturn y",
        "",
    ),
    ("turned", "return self.rnn(x.transpose(0, 1))[0]", ""),
):
    layers.add(
        _name,
        _use,
        args="x: torch.Tensor",
        init=f"self.rnn = nn.LSTM(3, 4, batch_first=True)\n{_init}",
        inputs=(_S, f"-{_S}"),
        varied=False,
    )
modes = Group("inference mode inside")
for _name, _body in {
    "around a branch": "with torch.inference_mode():\n    y = x[0]\n    if y.sum() > 0:\n        y = y + 1\nreturn y + 0, x * 2",
    "around a log": "with torch.inference_mode():\n    y = x[0] * 2\n    logger.warning('twice')\nreturn y + 0, x * 2",
    "around a number": "with torch.inference_mode():\n    y = x.detach()[0] * x.max().item()\nreturn y + 0, x * 2",
    "around a method": "y = self.inner(x)\nreturn y + 0, x * 2",
    "switched off": "with torch.inference_mode(False):\n    y = x[0]\n    if y.sum() > 0:\n        y = y + 1\nreturn y + 0, x * 2",
}.items():
    modes.add(
        _name,
        _body,
        methods="@torch.inference_mode()\ndef inner(self, x):\n    y = x[0]\n    if y.sum() > 0:\n        y = y + 1\n    return y",
        inputs=_INPUTS,
        varied=False,
    )
