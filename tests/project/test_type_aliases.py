"""Type aliases of the project in annotations, also of other files, and annotations that say shapes."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.tools.fixes import fixed_among

MODEL = """
import torch
from torch import Tensor, nn
{imports}


class Norm(nn.Module):
    def forward(self, x: Tensor, batch: {annotation} = None):
        if batch is None:
            return x
        count = int(batch.max()) + 1
        return x.new_zeros(count, x.size(1)).index_add(0, batch, x)
"""
TYPES = """
    from typing import Dict, List, Optional, Union

    import torch
    from torch import Tensor

    Plain = Tensor
    OptTensor = Optional[Tensor]
    Nested = Union[OptTensor, Plain]
    Either = Plain | None
    Adj = Union[Tensor, List[Tensor]]
    Two = Optional[Tensor]
    Two = Dict[str, Tensor]


    class Pair:
        pass
"""


@pytest.mark.parametrize(
    ("imports", "annotation"),
    [
        ("from types_of_us import OptTensor", "OptTensor"),
        ("from types_of_us import OptTensor as Maybe", "Maybe"),
        ("import types_of_us", "types_of_us.OptTensor"),
        ("from types_of_us import Nested", "Nested"),
        ("from types_of_us import Either", "'Either'"),
        ("Own = Tensor | None", "Own"),
        ("from types_of_us import Plain\nfrom typing import Optional", "Optional[Plain]"),
        ("from jaxtyping import Int", "Int[Tensor, 'n'] | None"),
        ("from torchtyping import TensorType", "TensorType['n', int]"),
    ],
)
def test_aliases_of_tensors_are_tensors(tmp_path: Path, imports: str, annotation: str) -> None:
    source = MODEL.format(imports=imports, annotation=annotation)
    after, _ = fixed_among(tmp_path, source, {"types_of_us.py": dedent(TYPES)}, opaque=True)
    assert "torch.compiler.is_compiling()" in after


@pytest.mark.parametrize("name", ["Adj", "Two", "Pair", "Missing"])
def test_other_names_say_nothing(tmp_path: Path, name: str) -> None:
    source = MODEL.format(imports=f"from types_of_us import {name}", annotation=name)
    after, _ = fixed_among(tmp_path, source, {"types_of_us.py": dedent(TYPES)}, opaque=True)
    assert after == source


def test_what_a_function_of_another_file_returns(tmp_path: Path) -> None:
    source = """
import torch
from torch import nn
from made import scaled


class Model(nn.Module):
    def forward(self, x):
        y = scaled(x)
        if y.sum() > 0:
            y = y + 1
        return y
"""
    made = """
    from typing import Union

    import torch

    Scaled = Union[torch.FloatTensor, torch.Tensor]

    def scaled(x) -> "Scaled":
        return {...}[0](x)
    """
    after, _ = fixed_among(tmp_path, source, {"made.py": dedent(made).replace("{...}", "table")})
    assert "torch.compiler.is_compiling()" in after
