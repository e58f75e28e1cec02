"""Names across modules, class families, facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_codemod.project.index.facts import AttributeKind
from tests.project.tools import index_of, write


def test_imports_are_followed_through_packages_and_aliases(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "from .layers import Block as Piece\nfrom .ops import *\n",
            "pkg/layers.py": "import torch.nn as n\nclass Block(n.Module): ...\n",
            "pkg/ops.py": "__all__ = ['mix']\ndef mix(x): ...\ndef hidden(x): ...\n",
            "pkg/use.py": """
                import torch as th
                import pkg
                from pkg import Piece
                from . import ops as o
                short = o.mix
                """,
        },
    )
    index = index_of(tmp_path)
    for name, expected in {
        "th.nn.functional.relu": "torch.nn.functional.relu",
        "Piece": "pkg.layers.Block",
        "pkg.Piece": "pkg.layers.Block",
        "pkg.mix": "pkg.ops.mix",
        "o.mix": "pkg.ops.mix",
        "short": "pkg.ops.mix",
        "len": "builtins.len",
        "nothing": None,
    }.items():
        assert index.resolve("pkg.use", name) == expected, name
    assert index.resolve("pkg", "hidden") is None


def test_a_name_that_the_module_binds_is_no_builtin_and_no_library(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": "class torch: ...\ndef len(x): ...\n"})
    index = index_of(tmp_path)
    assert index.resolve("m", "torch") == "m.torch"
    assert index.resolve("m", "len") == "m.len"


def test_the_import_wins_over_its_fallback(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "m.py": """
                from typing import TYPE_CHECKING
                if TYPE_CHECKING:
                    from other import Typed
                try:
                    import fast as ops
                except ImportError:
                    ops = None
                try:
                    from apex import Norm
                except ImportError:
                    class Norm: ...
                if available():
                    from torch import Tensor
                else:
                    Tensor = object
                """
        },
    )
    index = index_of(tmp_path)
    assert index.resolve("m", "Typed") == "other.Typed"
    assert index.resolve("m", "ops.go") == "fast.go"
    assert index.resolve("m", "Norm") == "m.Norm"
    assert index.resolve("m", "Tensor") == "torch.Tensor"


def test_a_name_in_the_package_wins_over_a_submodule_of_that_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "p/__init__.py": "from .run import run\n",
            "p/run.py": "def run(): ...\n",
            "p/other.py": "",
            "m.py": "from p import run, other\n",
        },
    )
    index = index_of(tmp_path)
    assert index.resolve("m", "run") == "p.run.run"
    assert index.resolve("m", "other") == "p.other"


def test_circles_of_imports_end(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "from b import x\nclass A(A): ...\n", "b.py": "from a import x\ny = z\nz = y\n"})
    index = index_of(tmp_path)
    index.resolve("a", "x")
    index.resolve("b", "y")
    assert not index.is_module("a.A")


def test_families_go_through_any_number_of_bases(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "base.py": "import torch\nclass Base(torch.nn.modules.linear.Linear): ...\n",
            "mid.py": "import base\nclass Mid(base.Base): ...\nclass Plain: ...\n",
            "leaf.py": "from mid import Mid, Plain\nclass Leaf(Plain, Mid): ...\nclass No(Plain): ...\n",
        },
    )
    index = index_of(tmp_path)
    assert index.is_module("leaf.Leaf")
    assert not index.is_module("leaf.No")
    assert index.linear("leaf.Leaf")[:4] == ("leaf.Leaf", "mid.Plain", "mid.Mid", "base.Base")


@pytest.mark.parametrize(
    "text",
    [
        "import part\nclass Far(part.Part): ...",
        "from part import (\n    Part as Base,\n)\nclass Far(Base): ...",
        "from pkg.near import Near\nclass Far(Near): ...",
        "import part\nclass Far(\n    part.Part,\n    object,\n): ...",
    ],
)
def test_heirs_are_found_in_files_without_torch(tmp_path: Path, text: str) -> None:
    files = {
        "part.py": "class Part: ...",
        "pkg/__init__.py": "",
        "pkg/near.py": "import part\nclass Near(part.Part): ...",
        "far.py": text,
        "stranger.py": "class Other(Exception): ...\nclass Part: ...\nclass Another(Part): ...",
    }
    index = index_of(write(tmp_path, files))
    others = [(path, source.encode()) for path, source in files.items() if path != "part.py"]
    index.has_every_file(["part.py"], lambda: others)
    assert index.heirs("part.Part") == ("far.Far", "pkg.near.Near")


@pytest.mark.parametrize(
    ("base", "is_module"),
    [
        ("torch.nn.Module", True),
        ("torch.nn.LSTM", True),
        ("pytorch_lightning.LightningModule", True),
        ("transformers.PreTrainedModel", True),
        ("diffusers.ModelMixin", True),
        ("timm.models.vision_transformer.VisionTransformer", True),
        ("torch.nn.Parameter", False),
        ("torch.utils.data.Dataset", False),
        ("transformers.PretrainedConfig", False),
    ],
)
def test_well_known_families_of_libraries(tmp_path: Path, base: str, is_module: bool) -> None:
    write(tmp_path, {"m.py": f"import {base.partition('.')[0]}\nclass A({base}): ...\n"})
    assert index_of(tmp_path).is_module("m.A") is is_module


def test_settings_name_more_families(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": "from ours.core import Net\nclass A(Net): ...\n"})
    assert not index_of(tmp_path).is_module("m.A")
    assert index_of(tmp_path, "ours.core.Net").is_module("m.A")
    assert index_of(tmp_path, "Net").is_module("m.A")


def test_class_facts_include_what_is_inherited(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "base.py": """
                from torch import nn, Tensor
                class Base(nn.Module):
                    kind = "a"
                    def __init__(self, config, mask: Tensor):
                        super().__init__()
                        self.norm = nn.LayerNorm(3)
                        self.scale = nn.Parameter(mask)
                        self.mask = mask
                        self.size = config.size
                        self.step = 0
                        self.register_buffer("table", mask)
                    @property
                    def half(self): ...
                    def run(self): ...
                """,
            "leaf.py": """
                from base import Base
                class Leaf(Base):
                    def run(self):
                        self.step = self.table
                """,
        },
    )
    facts = index_of(tmp_path).class_facts("leaf.Leaf")
    assert facts is not None
    assert facts.is_module
    assert facts.bases == ("base.Base",)
    assert facts.methods["run"] == "leaf.Leaf.run"
    assert facts.methods["half"] == "base.Base.half"
    assert facts.properties == {"half"}
    kinds = {name: fact.kind for name, fact in facts.attributes.items()}
    assert kinds == {
        "kind": AttributeKind.CONSTANT, "norm": AttributeKind.CALL, "scale": AttributeKind.PARAMETER,
        "mask": AttributeKind.ARGUMENT, "size": AttributeKind.CONFIG, "step": AttributeKind.CHANGED,
        "table": AttributeKind.BUFFER,
    }  # fmt: skip
    assert facts.attributes["norm"].callee == "torch.nn.LayerNorm"
    assert facts.attributes["mask"].callee == "torch.Tensor"


def test_function_facts_have_resolved_annotations(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "m.py": """
                import torch
                from typing import Optional
                import functools
                def f(x: "torch.Tensor", n: int, *args: bool, y: Optional[torch.Tensor] = None) -> torch.Tensor: ...
                @functools.lru_cache(maxsize=1)
                def g(): ...
                """
        },
    )
    facts = index_of(tmp_path).function("m.f")
    assert facts is not None
    assert facts.parameters == ("x", "n", "y", "args")
    assert facts.annotations == {
        "x": "torch.Tensor", "n": "int", "y": "typing.Optional[torch.Tensor]", "args": "tuple[bool]",
    }  # fmt: skip
    assert facts.returns == "torch.Tensor"
    other = index_of(tmp_path).function("m.g")
    assert other is not None
    assert other.decorators == ("functools.lru_cache",)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return torch.compiler.is_compiling()", True),
        ("try:\n        return torch.compiler.is_compiling()\n    except Exception:\n        return False", True),
        ("if not ready():\n        return False\n    import torch._dynamo as d\n    return d.is_compiling()", True),
        ("return hasattr(torch, 'compiler') and torch.compiler.is_compiling()", True),
        ("return first()", True),
        ("return torch.jit.is_tracing()", False),
        ("return True or torch.compiler.is_compiling()", False),
        ("if ready():\n        return True\n    return torch.compiler.is_compiling()", False),
        ("return not torch.compiler.is_compiling()", False),
        ("torch.compiler.is_compiling()", False),
    ],
)
def test_predicates_that_say_whether_compile_is_tracing(tmp_path: Path, body: str, says: bool) -> None:
    text = f"import torch\ndef first_is_compiling():\n    return torch.compiler.is_compiling()\ndef f():\n    {body}\n"
    write(tmp_path, {"m.py": text.replace("first()", "first_is_compiling()")})
    facts = index_of(tmp_path).function("m.f")
    assert facts is not None
    assert facts.compiling_predicate is says


def test_globals_are_facts_of_the_module_that_assigns_them(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "m.py": """
                import logging
                logger = logging.getLogger(__name__)
                LIMIT = 3
                COUNT = 0
                def more():
                    global COUNT
                    COUNT += 1
                """,
            "n.py": "from m import logger as log, LIMIT, COUNT\n",
        },
    )
    index = index_of(tmp_path)
    log = index.global_fact("n", "log")
    assert log is not None
    assert (log.kind, log.callee) == (AttributeKind.CALL, "logging.getLogger")
    limit = index.global_fact("n", "LIMIT")
    assert limit is not None
    assert (limit.kind, limit.text) == (AttributeKind.CONSTANT, "3")
    count = index.global_fact("n", "COUNT")
    assert count is not None
    assert count.kind is AttributeKind.CHANGED
    assert index.global_fact("n", "nothing") is None


def test_a_broken_module_answers_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"bad.py": "def f(:\n", "m.py": "import torch\nfrom bad import Base\nclass A(Base): ...\n"})
    index = index_of(tmp_path)
    assert index.resolve("m", "Base") == "bad.Base"
    assert not index.is_module("m.A")


def test_a_function_that_only_computes_is_known_by_its_text(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/ops.py": '''
                import torch

                def known(x, n):
                    """Text."""
                    if x.device.type == "cpu":
                        n = torch.tensor(n).unsqueeze(0)
                        return x.eq(n).any()
                    return torch.isin(x, n)

                def writes(x): x[0] = torch.ones(1); return x
                def adds(x): x += torch.ones(1); return x
                def into(x): return torch.cat([x, x], out=x)
                def in_place(x): return x.eq(1).fill_(0)
                def draws(x): return torch.rand_like(x)
                def calls(x): return torch.eq(known(x, 1), x)
                def moves(layer): return layer.to(torch.zeros(1))
                def sorts(x): return x.sort()
                def twice(x): return torch.eq(x, 1)
                def twice(x): return torch.eq(x, 2)
                ''',
        },
    )
    index = index_of(tmp_path)
    names = ("known", "writes", "adds", "into", "in_place", "draws", "calls", "moves", "sorts", "twice")
    facts = [index.function(f"pkg.ops.{name}") for name in names]
    assert [fact is not None and fact.computes for fact in facts] == [True] + [False] * 9
