"""Which functions torch.compile gets to through what an attribute, a default or an unknown object may be."""

from __future__ import annotations

from pathlib import Path

from tests.project.tools import in_module, reached_names


def test_a_method_of_something_unknown_is_that_of_the_only_family_that_has_it(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        class Solver:
            def integrate(self, y): return y
            def step(self, y): return y
        class Fast(Solver):
            def integrate(self, y): return self.step(y)
        class Walker:
            def step(self, y): return y
        class Noise:
            def drawn(self, x): return x
        class A(nn.Module):
            def __init__(self, noise): self.noise = noise
            def forward(self, x, name):
                solver = KINDS[name](x)
                solver.step(x)
                return solver.integrate(self.noise.drawn(x))
        """,
    )
    assert found == {"A.forward", "Solver.integrate", "Fast.integrate", "Solver.step", "Noise.drawn"}


def test_methods_that_a_table_or_a_default_gives_an_attribute_are_traced(tmp_path: Path) -> None:
    found = in_module(
        tmp_path,
        """
        class Field:
            def __init__(self, of, kind, fast):
                self.drift = getattr(of, "drift", self.no_drift)
                self.noise = {"full": self.full if fast else self.slow}.get(kind, self.none)
            def no_drift(self, x): return x
            def full(self, x): return x
            def slow(self, x): return x
            def none(self, x): return x
            def spare(self, x): return x
        class A(nn.Module):
            def forward(self, x):
                field = Field(x, "full", True)
                return field.drift(x) + field.noise(x)
        """,
    )
    assert found == {
        "A.forward", "Field.__init__", "Field.no_drift", "Field.full", "Field.slow", "Field.none",
    }  # fmt: skip


def test_a_function_that_is_a_default_is_followed(tmp_path: Path) -> None:
    files = {
        "decode.py": "def best(x): return x.argmax()\ndef spare(x): return x\n",
        "main.py": """
            from torch import nn
            import decode
            def near(a, b): return a - b
            class M(nn.Module):
                def __init__(self, distance=near):
                    super().__init__()
                    self.distance = distance
                def forward(self, x): return read(self.distance(x, x))
            def read(x, decoder=decode.best): return decoder(x)
        """,
    }
    assert reached_names(tmp_path, files) == {"M.forward", "near", "read", "best"}


def test_classes_that_an_attribute_chooses_between_are_followed(tmp_path: Path) -> None:
    files = {
        "main.py": """
            from torch import nn
            class Stepper:
                def step(self, x): return x
            class Other:
                def step(self, x): return x
            class Called:
                def __call__(self, x): return x
            def one(x): return x
            def two(x): return x
            class M(nn.Module):
                def __init__(self, stepper=None, called=None, kind=""):
                    super().__init__()
                    self.stepper = Stepper() if stepper is None else stepper
                    self.called = called or Called()
                    self.choice = one if kind else two
                def forward(self, x): return self.called(self.choice(self.stepper.step(x)))
        """,
    }
    assert reached_names(tmp_path, files) == {"M.forward", "Stepper.step", "Called.__call__", "one", "two"}


def test_a_property_of_related_classes_is_followed_by_its_name(tmp_path: Path) -> None:
    files = {
        "main.py": """
            from torch import nn
            class System(nn.Module):
                def forward(self, x): return x
            class Linear(System):
                @property
                def matrix(self): return 1
                @property
                def other(self): return 1
            class Curved(System):
                @property
                def matrix(self): return 2
            class Apart:
                @property
                def other(self): return 2
            class Filter(nn.Module):
                def __init__(self, model):
                    super().__init__()
                    self.model = model
                def forward(self, x): return x * self.model.matrix * self.model.other
        """,
    }
    found = reached_names(tmp_path, files)
    assert found == {"System.forward", "Linear.matrix", "Curved.matrix", "Filter.forward"}


def test_what_a_method_or_a_function_makes_for_an_attribute_is_called_through_it(tmp_path: Path) -> None:
    files = {
        "losses.py": """
            import torch
            class Base:
                def __call__(self, x): return self.prepare(x)
                def prepare(self, x): return x
            class v2Loss(Base):
                def prepare(self, x): return x + 1
            class Other:
                def __call__(self, x): return x
            class Unused:
                def __call__(self, x): return x
            def build():
                Unused()
                return Other()
        """,
        "main.py": """
            from torch import nn
            from losses import Base, v2Loss, Unused, build
            class Whole(nn.Module):
                def forward(self, x):
                    if self.criterion is None:
                        self.criterion = self.make()
                    self.other = build()
                    return self.criterion(x) + self.other(x)
                def make(self): raise NotImplementedError
                def unused(self): return Unused()
            class Part(Whole):
                def make(self): return v2Loss() if self.training else Base()
        """,
    }
    found = reached_names(tmp_path, files)
    assert found >= {"Base.__call__", "Base.prepare", "v2Loss.prepare", "Other.__call__"}
    assert not found & {"Unused.__call__", "Whole.unused"}
