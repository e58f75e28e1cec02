"""Flags that are read from a tensor and choose code two calls below, with rows packed by the mask they came from."""

from __future__ import annotations

import ast

import pytest
import torch

from graphmend_codemod.rules.proofs.cond import traceable
from graphmend_codemod.rules.proofs.cond.constant_floats import LAYER_FLOATS
from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed, noop
from tests.tools.observe import Scenario

_MODEL = '''
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.special = nn.Linear(4, 4)

    def forward(self, x, mask=None, is_special=None, output_attentions=False):
        """Rows that the mask chooses look at all rows, the others at themselves."""
        y = self.query(x) / math.sqrt(4)
        if is_special:
            count, chosen, places, free = self.indices(mask)
            y = y + self._from_special(y, count=count, chosen=chosen, places=places, free=free)
            probabilities, special = self._special(x, count, chosen, places, free)
            of_special = special[places[0], :, places[1]]
            y[chosen] = of_special.view(len(places[0]), -1)
        assert y.size() == x.size(), "Unexpected size"
        outputs = (y.contiguous(),)
        if output_attentions:
            outputs += (y.mean(),)
        return outputs + (probabilities,) if (is_special and output_attentions) else outputs

    @staticmethod
    def indices(mask):
        """Compute indices of special rows"""
        # helper
        counts = mask.long().sum(dim=1)
        count = counts.max()
        chosen = mask.nonzero(as_tuple=True)
        taken = torch.arange(count, device=mask.device) < counts.unsqueeze(dim=-1)
        places = taken.nonzero(as_tuple=True)
        free = (taken == 0).nonzero(as_tuple=True)
        return count, chosen, places, free

    def _from_special(self, y, count, chosen, places, free):
        keys = y.new_zeros(y.shape[0], count, y.shape[2])
        keys[places] = y[chosen]
        scores = torch.einsum("bld,bsd->bsl", (y, keys))
        scores[free[0], free[1], :] = torch.finfo(scores.dtype).min
        return torch.einsum("bsl,bsd->bld", (torch.softmax(scores, dim=1), keys))

    def _special(self, x, count, chosen, places, free):
        special = x.new_zeros(count, x.shape[0], x.shape[2])
        special[places[::-1]] = x[chosen]
        scores = torch.einsum("sbd,bld->bsl", (self.special(special), x))
        probabilities = torch.softmax(scores, dim=-1)
        return probabilities, torch.einsum("bsl,bld->bds", (probabilities, x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x, mask=None, is_special=None, output_attentions=False):
        outputs = self.attention(x, mask=mask, is_special=is_special, output_attentions=output_attentions)
        return (x + outputs[0],) + outputs[1:]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, x: torch.Tensor, marks: torch.Tensor, output_attentions: bool = False):
        mask = marks > 0
        is_special = mask.flatten().any().item()
        special = () if (output_attentions and is_special) else None
        for layer in self.layers:
            outputs = layer(x, mask=mask, is_special=is_special, output_attentions=output_attentions)
            x = outputs[0]
            if output_attentions:
                if is_special:
                    special = special + (outputs[2],)
        return x, special
'''
_RULES = ("GM106", "GM403", "GM506")
_NO_GRADIENTS = (Scenario(False, "off"), Scenario(False, "inference"))
_INPUTS = (
    "(torch.ones(2, 3, 4), torch.zeros(2, 3))",
    "(torch.randn(2, 3, 4), torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]))",
    "(torch.randn(2, 3, 4), torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))",
    "(torch.randn(2, 3, 4), torch.ones(2, 3))",
)


def test_a_flag_two_calls_up_leaves_one_graph() -> None:
    after, result = fixed(_MODEL, select=_RULES, unsafe_fixes=True)
    assert sorted(finding.code for fix in result.fixes for finding in fix.applied) == list(_RULES)
    compiles(after, _INPUTS, scenarios=_NO_GRADIENTS)


def test_eager_mode_cannot_tell() -> None:
    after, _ = fixed(_MODEL, select=_RULES, unsafe_fixes=True)
    behaves(_MODEL, after, [*_INPUTS, "(torch.ones(2, 3, 4), torch.ones(2, 3), True)"])


@pytest.mark.parametrize("scenario", [Scenario(False, "parameters"), Scenario(True, "leaves")])
def test_gradients_and_results_of_other_sizes_are_those_of_eager_mode(scenario: Scenario) -> None:
    after, _ = fixed(_MODEL, select=_RULES, unsafe_fixes=True)
    compiles(after, _INPUTS[1:2], scenarios=(scenario,), strict=False)
    compiles(after, ["(torch.ones(2, 3, 4), torch.ones(2, 3), True)"], scenarios=(scenario,), strict=False)


def test_a_cast_that_the_result_does_not_depend_on_is_no_other_dtype() -> None:
    source = _MODEL.replace("probabilities = torch.softmax(scores, dim=-1)", "probabilities = scores.double()")
    assert "torch.cond" in fixed(source, select=_RULES, unsafe_fixes=True)[0].replace("torch.einsum", "")


def test_autocast_keeps_the_flag_a_python_value() -> None:
    # The sum is float32 and the layer's result bfloat16 there, which `torch.cond` refuses.
    source = f"""{_PLAIN.replace("torch.tanh(x)", "x + x")}

class Cast(Model):
    def forward(self, x: torch.Tensor):
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(x)
"""
    after, _ = fixed(source, select=_RULES)
    assert "is_autocast_enabled(mask.device.type)" in after
    inputs = ("torch.ones(2, 4)", "torch.ones(2, 4) * 4")
    compiles(after, inputs, scenarios=_NO_GRADIENTS)
    compiles(after, inputs, scenarios=(Scenario(True, "parameters"),), strict=False)
    compiles(after, inputs, name="Cast", scenarios=_NO_GRADIENTS, strict=False)


def test_rows_packed_with_torch_by_another_name_are_packed_rows() -> None:
    source = (
        _MODEL.replace("import torch\n", "import torch as th\n").replace("torch.", "th.").replace("th.nn", "torch.nn")
    )
    source = source.replace("mask.nonzero(as_tuple=True)", "th.where(mask)").replace("from th ", "from torch ")
    assert "_static_places(mask)" in fixed(source, select=_RULES, unsafe_fixes=True)[0]
    other = source.replace("import torch as th\n", "import torch as th\nfrom . import torch\n")
    other = other.replace("th.where(mask)", "torch.where(mask)")
    assert "_static_places(mask)" not in fixed(other, select=_RULES, unsafe_fixes=True)[0]


@pytest.mark.parametrize("order", [_RULES, tuple(reversed(_RULES))])
def test_one_rule_at_a_time_comes_to_the_same(order: tuple[str, ...]) -> None:
    together, _ = fixed(_MODEL, select=_RULES, unsafe_fixes=True)
    after = _MODEL
    for code in order:
        after, _ = fixed(after, select=(code,), unsafe_fixes=True)
    # Helpers stand in the order in which they came.
    assert sorted(map(ast.dump, ast.parse(after).body)) == sorted(map(ast.dump, ast.parse(together).body))
    noop(after, select=_RULES, unsafe_fixes=True)


def test_another_break_in_the_function_that_decides_is_still_found() -> None:
    source = _MODEL.replace("        outputs = (y.con", "        n = mask.sum().item()\n        outputs = (y.con")
    after, _ = fixed(_MODEL, select=_RULES, unsafe_fixes=True)
    assert "_static_places(mask)" in after
    assert {finding.code for finding in checked(source).findings} >= {"GM106", "GM403", "GM506"}
    declined(
        source,
        because="`mask.sum().item()` in `Attention.forward` may not be traceable",
        select=_RULES,
    )


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("y = y + self._from", "print(count)\n            y = y + self._from", "may not be traceable"),
        ("y = y + self._from", "self.last = y\n            y = y + self._from", "writes an attribute"),
        ('        assert y.size() == x.size(), "Unexpected size"\n', "", "may have a different size"),
        ("special[places[::-1]] = x[chosen]", "special[places[::-1]] += x[chosen]", "does more with"),
        ("special[places[::-1]] = x[chosen]", "special[places[::-1]] = x[chosen].cumsum(0)", "does more with"),
        ("mask = marks > 0", "mask = marks", "is a bool mask"),
        ("mask=mask, is_special=is_special, output_attentions=output_attentions)\n            x =",
         "mask=~mask, is_special=is_special, output_attentions=output_attentions)\n            x =", "not be the mask"),
        ("        special = () if", "        x = x * int(is_special)\n        special = () if", "Python value"),
        ("            x = outputs[0]", "            x = outputs[0]\n            is_special = False", "several places"),
        ("        return x, sp", "        self.layers[0](x, mask, True)\n        return x, sp", "a different flag"),
        ("        return x, sp", "        self.layers[0](x, ~mask, is_special)\n        return x, sp", "several ways"),
        ("y[chosen] = of_special.view(len(places[0]), -1)", "y[chosen] += 1", "does more with"),
        ("y = y + self._from", "y = y.double() + self._from", "`y.double()` in `Attention.forward` may return"),
        ("keys = y.new_zeros(", "keys = y.double().new_zeros(", "may return a different dtype"),
        ("special = nn.Linear(4, 4)", "special = nn.BatchNorm1d(4)", "may not be traceable"),
        ("special = nn.Linear(4, 4)", "special = nn.LSTM(4, 4)", "may not be traceable"),
        ("y = self.query(x)", "x += 1\n        y = self.query(x)", "writes into an argument"),
        ("y = self.query(x)", "z = x.transpose(0, 1)\n        z[0] = 1\n        y = self.query(x)", "into an argument"),
        ("y = self.query(x)", "x.mul_(2)\n        y = self.query(x)", "writes into an argument"),
        ("y = self.query(x)", "y = self.query(x)\n        y = -y if x[: y.ndim].sum() > 0 else y", "depend on data"),
        ("assert y.size() == x.size()", "assert y.size() != (1,)", "may have a different size"),
        ("assert y.size() == x.size()", "assert y.size()[0] == x.size()[0]", "may have a different size"),
        ("y = y + self._from", "y: torch.Tensor = y.double() + self._from", "`y.double()` in `Attention.forward` may"),
        ("y = y + self._from", "y = y.div(2) + self._from", "`y.div(2)` in `Attention.forward` may"),
        ("special = x.new_zeros(", "x[0] = 1\n        special = x.new_zeros(", "in `Attention._special` writes into"),
    ],
)  # fmt: skip
def test_what_is_not_proven_is_declined(old: str, new: str, because: str) -> None:
    assert old in _MODEL
    declined(_MODEL.replace(old, new), because=because, select=_RULES)


_PLAIN = """
import torch
from torch import nn
from torch.nn import functional as F


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, masked=None):
        y = torch.tanh(x)
        if masked:
            y = F.relu(self.linear(y))
        assert y.size() == x.size()
        return y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor):
        mask = x > 3
        masked = torch.any(mask).item()
        return self.part(x, masked)
"""


@pytest.mark.parametrize("read", ["torch.any(mask).item()", "mask.view(-1).any().item()", "bool(mask.any())"])
def test_torch_by_another_name_is_torch(read: str) -> None:
    source = _PLAIN.replace("torch.any(mask).item()", read)
    source = (
        source.replace("import torch\n", "import torch as th\n")
        .replace("torch.", "th.")
        .replace("from th.", "from torch.")
    )
    after, _ = fixed(source, select=_RULES)
    assert "th.cond(" in after
    inputs = ("torch.ones(2, 4)", "torch.ones(2, 4) * 4")
    behaves(source, after, inputs)
    compiles(after, inputs, scenarios=_NO_GRADIENTS)


def test_a_function_of_the_project_called_like_one_of_torch_is_not_let_through() -> None:
    source = _PLAIN.replace("from torch.nn import functional as F", "from .layers import functional as F")
    declined(source, because="`F.relu(self.linear(y))` in `Part.forward` may not be traceable", select=_RULES)


_ARGUMENTS = {
    **dict.fromkeys(("Conv", "ConvTranspose"), (4, 4, 1)),
    **dict.fromkeys(("Linear", "Embedding", "GroupNorm"), (4, 4)),
    **dict.fromkeys(("AvgPool", "MaxPool", "LayerNorm", "RMSNorm"), (2,)),
    "Bilinear": (4, 4, 4),
}
_FLOATS = """
import math

import torch
from torch import nn

SCALE = 0.5


class Options:
    eps = 0.25


class Part(nn.Module):
    def __init__(self, width=4, rate=0.0):
        super().__init__()
        self.linear = nn.Linear(4, width)
        self.norm = nn.LayerNorm(4)
        self.several = nn.Sequential(nn.Dropout(0.0), nn.GELU())
        self.width, self.rate, self.options, self.rates = width, rate, Options(), [0.5, 0.25]
        self.size = width
        self.last = width

    def forward(self, x, masked=None, factor=None):
        y = torch.tanh(x) * math.pi + torch.finfo(x.dtype).tiny
        if masked:
            y = CODE
        assert y.size() == x.size()
        return y

    def helped(self, y):
        return y * self.rate


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor):
        mask = x > 3
        masked = mask.any().item()
        return self.part(x, masked)
"""


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("self.linear(y)", ["factor"]),
        ("y * self.rate", ["self.rate", "factor"]),
        ("self.helped(y)", ["self.rate", "factor"]),
        ("self.norm(y)", ["getattr(self.norm, 'eps', None)", "factor"]),
        ("self.several(y)", ["getattr(self.several[0], 'p', None)", "factor"]),
        ("y * self.options.eps", ["self.options.eps", "factor"]),
        ("y.view(-1, self.last) + self.norm.weight.data", ["factor"]),
        ("y[:, : self.last] + factor[:, :1]", []),
    ],
)
def test_what_may_be_a_float_under_cond_is_asked_for(code: str, asked: list[str]) -> None:
    after, _ = fixed(_FLOATS.replace("CODE", code), select=_RULES)
    calls = [node for node in ast.walk(ast.parse(after)) if isinstance(node, ast.Call)]
    found = [node.args for node in calls if ast.unparse(node.func) == "_floats_are_constant"]
    assert [[ast.unparse(each) for each in given] for given in found] == [asked, []]
    assert max(map(len, after.splitlines())) < 121


@pytest.mark.parametrize("read", ["SCALE", "self.rates", "Options.eps", "factor[0]"])
def test_the_flag_stays_a_python_value_where_a_float_cannot_be_asked_for(read: str) -> None:
    source = _FLOATS.replace("CODE", f"y * {read}" + "[0]" * (read == "self.rates"))
    assert fixed(source, select=_RULES)[0] == source
    messages = [finding.message for finding in checked(source, select=_RULES).findings]
    assert any(f"unsafe, since `{read}` in `Part.forward` may be a float" in each for each in messages)
    assert "torch.cond(" in fixed(source, select=_RULES, unsafe_fixes=True)[0]


def test_floats_that_the_compiler_takes_for_inputs_never_get_under_cond() -> None:
    inputs = ("torch.ones(2, 4)", "torch.ones(3, 4) * 4")
    after, _ = fixed(_FLOATS.replace("CODE", "self.norm(y) * self.rate"), select=_RULES)
    after += """

class Changed(Model):
    def forward(self, x: torch.Tensor):
        self.part.rate = float(len(x))
        return super().forward(x)
"""
    compiles(after, inputs, scenarios=_NO_GRADIENTS[:1])
    compiles(after, inputs, scenarios=_NO_GRADIENTS[:1], strict=False, dynamic=True)
    compiles(after, inputs, name="Changed", scenarios=_NO_GRADIENTS[:1], strict=False, dynamic=None)


def test_the_floats_of_layers_are_known() -> None:
    for name in sorted(traceable.LAYERS - {"Identity"}):
        layer = getattr(torch.nn, name)(*_ARGUMENTS.get(name.rstrip("123d"), ()))
        floats = {key for key, value in vars(layer).items() if isinstance(value, float)}
        only_for_constructors = {"init"} if name == "PReLU" else set()
        assert floats - only_for_constructors <= set(LAYER_FLOATS.get(name, ())), name
