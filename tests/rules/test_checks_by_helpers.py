"""Checks by helpers that answer, and that a flag or a switch may keep from raising; `any` and `all` over a tensor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed, fixed_among, noop
from tests.tools.observe import Scenario

_COMPILED = (Scenario(gradients="off"),)
_CHECK = '''
import torch
from torch import nn

ENABLED = True


def switch_off():
    global ENABLED
    ENABLED = False


def check(ok, msg=None, raises=True):
    """Check it."""
    if not torch.jit.is_scripting():
        if not ENABLED:
            return True
    if not ok:
        if raises:
            if msg is None:
                told = "not so"
            else:
                told = msg
            raise ValueError(told)
        return False
    return True


class Model(nn.Module):
    def __init__(self, enabled=True):
        super().__init__()
        self.told = 0
        if not enabled:
            switch_off()

    def tell(self):
        self.told += 1
        return "low"

    def forward(self, x: torch.Tensor):
        check(bool((x > 0).all()), f"got {x}")
        return x * 2


def make_off():
    return Model(False)
'''
_INPUTS = ["torch.ones(3)", "-torch.ones(3)"]
_PROBE = "and not check(False, raises=False)"


def test_a_helper_with_a_switch_is_asked_whether_it_checks() -> None:
    after, _ = fixed(_CHECK)
    assert _PROBE in after
    assert 'torch._assert_async((x > 0).all(), "got ...")' in after
    behaves(_CHECK, after, _INPUTS)
    compiles(after, _INPUTS[:1], scenarios=_COMPILED)


def test_a_check_that_is_switched_off_raises_nothing() -> None:
    after, _ = fixed(_CHECK)
    behaves(_CHECK, after, _INPUTS, name="make_off")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("raises=True", "raises=False"),  # it answers, unless asked to raise
        ("raises=True", "raises=None"),
        ("msg=None, raises", "msg, raises"),  # it cannot be asked without a message
        ("raises=True)", "raises=True, /)"),  # nor by the name of its flag
        ("            return True\n    if not ok", "            return None\n    if not ok"),  # the answer says nothing
        ("        return False\n    return", "        return True\n    return"),
        ("        return False\n    return", "        switch_off()\n        return False\n    return"),
        ("    return True\n\n\nclass", "    switch_off()\n\n\nclass"),  # it does more than check
        ("    if not ok:", "    ok = raises\n    if not ok:"),  # it checks something else
        ("    if not ok:", "    if not raises:\n        raise ValueError(msg)\n    if not ok:"),
        ("def check(", "@torch.compiler.disable\ndef check("),
        ("class Model", "check = print\n\n\nclass Model"),
    ],
)
def test_a_helper_of_which_that_is_not_certain_is_left_alone(old: str, new: str) -> None:
    assert old in _CHECK
    assert "_assert_async" not in fixed(_CHECK.replace(old, new, 1))[0]


@pytest.mark.parametrize("call", ["check((x > 0).all(), f'{x}', False)", "check((x > 0).all(), raises=x.dim() > 1)"])
def test_a_call_that_wants_an_answer_is_left_alone(call: str) -> None:
    source = _CHECK.replace('check(bool((x > 0).all()), f"got {x}")', call)
    assert "_assert_async" not in fixed(source)[0]


def test_a_helper_that_another_file_replaces_is_left_alone(tmp_path: Path) -> None:
    helper, model = _CHECK.split("\n\n\nclass")
    model = f"import torch\nfrom torch import nn\nfrom helpers import check, switch_off\n\n\nclass{model}"
    files = {"helpers.py": helper + "\n"}
    assert _PROBE in fixed_among(tmp_path, model, files)[0]
    files["quiet.py"] = "import helpers\n\n\ndef quiet():\n    helpers.check = print\n"
    assert "_assert_async" not in fixed_among(tmp_path, model, files)[0]


def test_a_helper_that_its_file_defines_in_two_ways_is_left_alone(tmp_path: Path) -> None:
    helper, model = _CHECK.split("\n\n\nclass")
    model = f"import torch\nfrom torch import nn\nfrom helpers import check, switch_off\n\n\nclass{model}"
    second = "\n\nif not torch.cuda.is_available():\n    check = print\n"
    assert "_assert_async" not in fixed_among(tmp_path, model, {"helpers.py": helper + second})[0]


def test_a_message_that_acts_is_computed_at_each_call() -> None:
    source = _CHECK.replace('f"got {x}"', 'f"got {self.tell()}"')
    declined(source, because="in its arguments would not run under torch.compile")
    lazy = _CHECK.replace('f"got {x}"', 'lambda: f"got {self.tell()}"')
    assert "_assert_async" in fixed(lazy)[0]


def test_a_check_whose_exception_may_be_caught_is_left_alone() -> None:
    call = '        check(bool((x > 0).all()), f"got {x}")\n'
    caught = "        try:\n    " + call + "        except ValueError:\n            x = -x\n"
    declined(_CHECK.replace(call, caught), because="may be caught")


_TEST = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        if {test}:
            raise ValueError("low")
        return x * 2
"""
_ROWS = ["torch.tensor([-1.0, 1.0])", "torch.ones(2, 1)", "-torch.ones(2, 1)", "torch.ones(2, 2)", "torch.ones([])"]
_EMPTY = ["torch.ones(0)", "torch.ones(0, 3)", "torch.ones(2, 0)"]


@pytest.mark.parametrize("test", ["any(x < 0)", "all(x < 0)", "not any(x > 0)", "not all(x)", "any(0 > x)"])
def test_any_and_all_over_a_tensor_ask_one_element_a_row(test: str) -> None:
    source = _TEST.replace("{test}", test)
    after, _ = fixed(source)
    assert "x.dim() > 0" in after
    assert "x.numel() == x.shape[0]" in after
    behaves(source, after, [*_ROWS, *_EMPTY])
    passing = [each for each in _ROWS[:3] if "-" not in each]
    compiles(after, passing, scenarios=_COMPILED)


def test_any_over_what_is_computed_is_asked_of_a_name() -> None:
    declined(_TEST.replace("{test}", "any(x * 2 < 0)"), because="assign it to a variable first")


def test_any_over_a_list_reads_no_tensor() -> None:
    noop(_TEST.replace("{test}", "any(n < 0 for n in x.shape)"))


_EITHER = """
import torch
from torch import nn
from typing import Union


class Model(nn.Module):
    def forward(self, x: torch.Tensor, by: Union[float, torch.Tensor]):
        if isinstance(by, float):
            by = torch.as_tensor(by)
        elif isinstance(by, torch.Tensor):
            by = by.to(x.dtype)
        if (by < 0).any():
            raise ValueError("low")
        return x * by
"""


def test_what_is_made_a_tensor_on_each_way_is_one_behind_them() -> None:
    after, _ = fixed(_EITHER)
    assert "isinstance(by, torch.Tensor)" in after
    inputs = ["torch.ones(2), 0.5", "torch.ones(2), torch.ones(2)", "torch.ones(2), -0.5", "torch.ones(2), 3"]
    behaves(_EITHER, after, inputs)
    compiles(after, inputs[:2], scenarios=_COMPILED)
