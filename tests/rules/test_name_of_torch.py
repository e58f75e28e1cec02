"""What is written says `torch` only where that name means torch whenever the code runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.behaviour import behaves
from tests.tools.fixes import declined, fixed, fixed_among
from tests.tools.observe import Scenario

_MODEL = """import torch
from torch import nn
{top}


class Model(nn.Module):
{inside}    def forward(self, x):
{before}        print(x.shape)
{after}        return x
{end}
"""
_NOTHING = {"top": "", "inside": "", "before": "", "after": "", "end": ""}


def model(**parts: str) -> str:
    return _MODEL.format(**(_NOTHING | parts))


@pytest.mark.parametrize(
    "parts",
    [
        {"end": "del torch"},
        {"top": "zeros = torch.zeros\ndel torch"},
        {"end": "del (nn, torch)"},
        {"end": "torch = None"},
        {"end": "if nn:\n    torch = None"},
        {"end": "for torch in (1,):\n    pass"},
        {"end": "with open(__file__) as torch:\n    pass"},
        {"end": "try:\n    1 / 0\nexcept ZeroDivisionError as torch:\n    pass"},
        {"end": "print(torch := 3)"},
        {"end": "match 3:\n    case torch:\n        pass"},
        {"end": "globals()['torch'] = None"},
        {"end": "import sys\nsys.modules[__name__].torch = None"},
        {"end": "import math as torch"},
        {"end": "def change():\n    global torch\n    torch = None"},
        {"inside": "    def change(self):\n        global torch\n        del torch\n\n"},
        {"after": "        del torch\n"},
        {"before": "        import torch\n        del torch\n"},
        {"before": "        import torch\n        for _ in x:\n    ", "after": "            torch = None\n"},
        {
            "before": "        import torch\n        def inner():\n    ",
            "after": "            return x\n        torch = None\n        x = inner()\n",
        },
    ],
)
def test_a_name_that_is_taken_away_is_not_used(parts: dict[str, str]) -> None:
    declined(model(**parts), because="uses the name `torch`")


@pytest.mark.parametrize(
    "parts",
    [
        {"inside": "    torch = 3\n\n"},
        {"before": "        import torch\n", "after": "        del torch\n"},
        {"after": "        y = [torch for torch in ()]\n        del y\n", "before": "        import torch as th\n"},
        {"top": "# In the case when torch is there: fine"},
        {"end": "def other():\n    torch = None\n    return torch"},
    ],
)
def test_a_name_that_means_torch_here_is_used(parts: dict[str, str]) -> None:
    source = model(**parts)
    after, _ = fixed(source)
    assert "compiler.is_compiling():" in after
    behaves(source, after, ["torch.ones(2)"], scenarios=(Scenario(gradients="off"),))


@pytest.mark.parametrize("end", ["import math\ndel math", "def change():\n    global math\n    math = 3"])
def test_other_modules_that_are_imported_stay_as_well(end: str) -> None:
    source = model(before="        x = x.reshape([x.shape[0], np.prod(x.shape[1:])])\n", end=end)
    source = source.replace("import torch\n", "import numpy as np\nimport torch\n", 1)
    declined(source.replace("        print(x.shape)\n", ""), because="uses the name `math`")


def test_torch_that_may_be_missing_is_used_by_modules() -> None:
    source = model(end="").replace(
        "import torch\n", "try:\n    import torch\nexcept ImportError:\n    torch = None\n", 1
    )
    assert "torch.compiler.is_compiling():" in fixed(source)[0]


def test_operators_get_an_import_of_torch_where_another_file_binds_it(tmp_path: Path) -> None:
    source = """
    from torch.nn.functional import relu
    from layers import *


    class Model(nn.Module):
        def forward(self, x: torch.Tensor, lengths: torch.LongTensor):
            return relu(x[:, : int(lengths.max())])
    """
    others = {"layers.py": "import torch\nfrom torch import nn\n", "pyproject.toml": "[project]\nname = 'p'\n"}
    after, _ = fixed_among(tmp_path, source, others, opaque=True)
    assert "import torch\n" in after
    assert "@torch.library.custom_op(" in after
