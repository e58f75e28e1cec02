"""Modules of real-world shape, each in the company of what may happen around it."""

from collections.abc import Sequence
from textwrap import dedent
from zlib import crc32

from tests.adversarial.case import IMPORTS, Group

_OUTSIDE = """\
import copy
import io
import pickle

import torch
from torch import nn

import model


def make():
    made = model.Model()
    {}
    return made
"""
COMPANY: dict[str, tuple[str, str]] = {
    "alone": ("", ""),
    "in half precision": ("", "float16@ "),
    "in bfloat16 under autocast": ("made.forward = torch.autocast('cpu', torch.bfloat16)(made.forward)", ""),
    "of integers": ("", "int64@ "),
    "of bytes": ("", "uint8@ "),
    "of complex numbers": ("", "complex64@ "),
    "empty": ("", "empty@ "),
    "expanded": ("", "expanded@ "),
    "with nan": ("", "one nan@ "),
    "of one column": ("", "column@ "),
    "switched between calls": ("model.between = lambda given: (made.train(not made.training), given)[1]", "between"),
    "loaded between calls": (
        "first = copy.deepcopy(made.state_dict())\n"
        "    model.between = lambda given: (made.load_state_dict({k: v + 1 for k, v in first.items()}), given)[1]",
        "between",
    ),
    "numbers changed between calls": (
        "def changed(given):\n"
        "        for key, value in list(vars(made).items()):\n"
        "            if type(value) in (int, float):\n"
        "                setattr(made, key, value + 1)\n"
        "        return given\n"
        "    model.between = changed",
        "between",
    ),
    "numbers that became tensors": (
        "for key, value in list(vars(made).items()):\n"
        "        if type(value) is float:\n"
        "            setattr(made, key, torch.tensor(value))",
        "",
    ),
    "buffers that became parameters": (
        "for key, value in list(made.named_buffers()):\n"
        "        if '.' not in key and value.is_floating_point():\n"
        "            delattr(made, key)\n"
        "            setattr(made, key, nn.Parameter(value))",
        "",
    ),
    "buffers of float64": (
        "for key, value in list(made.named_buffers()):\n"
        "        if '.' not in key:\n"
        "            setattr(made, key, value.double() if value.is_floating_point() else value.int())",
        "",
    ),
    "buffers that share memory": (
        "whole = torch.zeros(64)\n"
        "    for key, value in list(made.named_buffers()):\n"
        "        if '.' not in key and value.dtype == torch.float32:\n"
        "            setattr(made, key, whole[: value.numel()].view(value.shape))",
        "",
    ),
    "layers of double precision": ("made.double()", ""),
    "hooked": (
        "for layer in made.children():\n"
        "        layer.register_forward_hook(lambda layer, given, result: result * 2 if isinstance(result, torch.Tensor)"
        " else None)\n"
        "    made.register_forward_pre_hook(lambda layer, given: tuple(g.clone() if isinstance(g, torch.Tensor) else g"
        " for g in given))",
        "",
    ),
    "copied and pickled": (
        "made = pickle.loads(pickle.dumps(copy.deepcopy(made)))",
        "",
    ),
    "shared twice": (
        "class Twice(nn.Module):\n"
        "        def __init__(self):\n"
        "            super().__init__()\n"
        "            self.one = self.other = made\n"
        "        def forward(self, *given):\n"
        "            return self.one(*given), self.other(*given)\n"
        "    made = Twice() if True else made",
        "",
    ),
    "called functionally": (
        "class Functional(nn.Module):\n"
        "        def __init__(self, held):\n"
        "            super().__init__()\n"
        "            self.held = held\n"
        "        def forward(self, *given):\n"
        "            state = {k: v * 1 for k, v in self.held.named_parameters()}\n"
        "            state |= {k: v.clone() for k, v in self.held.named_buffers()}\n"
        "            return torch.func.functional_call(self.held, state, given)\n"
        "    made = Functional(made)",
        "",
    ),
    "in inference mode": ("made.forward = torch.inference_mode()(made.forward)", ""),
}
"""What happens around a module, and what is put in front of its inputs."""


class Authored(Group):
    """Each module in some company."""

    def write(self, name: str, source: str, *inputs: str, company: Sequence[str] = ()) -> None:
        """A whole module with its calls, alone and in a third of all company: the same one, whatever is added."""
        chosen = [each for each in COMPANY if each == "alone" or crc32(f"{name}, {each}".encode()) % 3 == 0]
        for each in company or chosen:
            outside, front = COMPANY[each]
            given = list(inputs)
            if front == "between":
                given = [f"between(({inputs[0]},))", *(f"between(({one},))" for one in [*inputs, *inputs])]
                outside = f"model.between = lambda given: given\n    {outside}"
            elif front:
                given = [inputs[0], *(f"{front}{one}" for one in inputs), *inputs[1:]]
            self.whole(
                f"{name}, {each}",
                IMPORTS + "\n\n" + dedent(source).strip("\n") + "\n",
                outside=_OUTSIDE.format(outside),
                inputs=given,
                varied=each == "alone",
            )
