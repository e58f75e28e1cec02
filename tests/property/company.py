"""What stands in other files than the generated module: subclasses, assignments, hooks, callers that catch, scripts."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent, indent

SUBCLASSES = (
    """
    class Child(Model):
        def limited(self, t):
            return {result}
    """,
    """
    class Child(Model):
        def __init__(self):
            super().__init__()
            {change}
    """,
    """
    class Child(Model):
        @property
        def short_scale(self):
            self.__dict__["count"] = self.__dict__.get("count", 0) + 1
            return self.scale * 1.0

        @short_scale.setter
        def short_scale(self, value):
            self.__dict__["given"] = value
    """,
    """
    class Child(Model):
        def __getattr__(self, name):
            found = super().__getattr__(name)
            self.__dict__["read"] = name
            return found
    """,
)
"""Classes of another file that inherit from the generated one."""

RESULTS = (
    "t.double()",
    "t[:, :1]",
    "t.mul_(0.5)",
    "t",
    "None",
    "t + torch.rand(4)",
    "torch.zeros_like(t)",
    "t.long()",
)

CHANGES = (
    "{m}.limit = float('inf')",
    "{m}.limit = torch.tensor(0.5)",
    "{m}.limit = torch.full((4,), 0.5)",
    "{m}.limit = 1e999",
    "{m}.norm = nn.Identity()",
    "{m}.norm = nn.LayerNorm(4).double()",
    "{m}.norm = nn.Sequential(nn.LayerNorm(4), nn.ReLU(inplace=True))",
    "{m}.linear = nn.Flatten()",
    "{m}.drop = nn.Dropout(0.5, inplace=True)",
    "{m}.bn = Keeping()",
    "{m}.scale = torch.ones(4, dtype=torch.float64)",
    "{m}.scale = torch.ones(3, 2, 4)",
    "{m}.short_scale = {m}.table",
    "{m}.table = None",
    "{m}.gain.requires_grad_(False)",
    "{m}.build = lambda factor: torch.full((4,), factor)[:2]",
    "{m}.count = torch.tensor(0)",
    "{m}.linear.bfloat16()",
)
"""What is put into a module after its constructor; `{m}` is the module."""

HOOKS = (
    "made.norm.register_forward_hook(lambda m, a, r: r * 2.0)",
    "made.norm.register_forward_hook(lambda m, a, r: seen.append(r))",
    "made.norm.register_forward_hook(lambda m, a, r: r[:1])",
    "made.norm.register_forward_pre_hook(lambda m, a: (a[0] + 1.0,))",
    "made.register_forward_pre_hook(lambda m, a: (a[0] * 1.0, *a[1:]))",
    "made.linear.register_forward_hook(lambda m, a, r: r.long())",
    "made.linear.register_forward_hook(lambda m, a, r: r.mul_(0.5))",
)

CATCHES = (
    """
        try:
            return self.inner(*args, **kwargs)
        except Exception:
            return None
    """,
    """
        with contextlib.suppress(ValueError, AssertionError):
            return self.inner(*args, **kwargs)
        return 0
    """,
    """
        with Swallow():
            return self.inner(*args, **kwargs)
        return 1
    """,
    """
        return attempt(self.inner, *args, **kwargs)
    """,
)
"""Bodies of a method that calls `self.inner` and goes on when it raises."""

_HEAD = """\
import contextlib
import warnings

import torch
from torch import nn

from subject import Model
"""

_MAKE = """

seen = []


class Keeping(nn.Module):
    def forward(self, t):
        self.kept = t
        return self.kept


def make():
    made = {made}()
    {change}
    return made
"""

_CATCHING = '''

class Swallow:
    def __enter__(self):
        return self

    def __exit__(self, *found):
        return True


def attempt(function, *args, **kwargs):
    """Call it, whatever happens."""
    try:
        return function(*args, **kwargs)
    except (ValueError, RuntimeError, AssertionError):
        return 2


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Model()

    def forward(self, *args, **kwargs):
{catch}


def make():
    return Outer()
'''

_SCRIPTING = """

def make():
    made = Model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        return torch.jit.script(made)
"""


def subclass(template: str, result: str, change: str) -> str:
    """A file with a subclass, and `make()` that returns an instance of it."""
    text = dedent(template).format(result=result, change=change.format(m="self"))
    return _HEAD + "\n" + text + _MAKE.format(made="Child", change="pass")


def changed(change: str) -> str:
    """A file that makes a module and then puts something else into it."""
    return _HEAD + _MAKE.format(made="Model", change=change.format(m="made"))


def catching(catch: str) -> str:
    """A file with a module that catches what the generated one raises."""
    return _HEAD + _CATCHING.format(catch=indent(dedent(catch).strip(), " " * 8))


def scripting() -> str:
    """A file that hands the module to TorchScript."""
    return _HEAD + _SCRIPTING


def joined(text: str, company: str) -> str:
    """Both files as one text, as they are run: what `make()` returns does not depend on how many files there are."""
    if not company:
        return text
    return text + "\n\n" + company.replace("from subject import Model\n", "")


def all_pieces() -> Sequence[str]:
    """Every file that can be made, for a test that each of them parses."""
    return (
        *(subclass(template, result, CHANGES[0]) for template in SUBCLASSES for result in RESULTS),
        *(changed(change) for change in (*CHANGES, *HOOKS)),
        *(catching(catch) for catch in CATCHES),
        scripting(),
    )
