"""Messages in functions that nothing compiled calls stay as they are, with the reason."""

from __future__ import annotations

from pathlib import Path

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from tests.project.tools import write

_PART = """
    import logging

    import torch
    from torch import nn

    logger = logging.getLogger(__name__)

    def load(path):
        logger.warning("slow")
        return Picture(path)

    def told(x):
        logger.warning("told")
        return x

    def scaled(picture, by: torch.Tensor):
        return told(load(picture).pixels) * by

    class Picture:
        def __init__(self, path):
            self.path = path

    class Model(nn.Module):
        def forward(self, x):
            return told(x)
"""


def test_a_message_is_left_out_of_compiled_code_only_where_something_is_compiled(tmp_path: Path) -> None:
    write(tmp_path, {"lib/__init__.py": "from ._impl import Model, scaled\n", "lib/_impl.py": _PART})
    found = {each.function: each for each in api.check([tmp_path], Settings(tmp_path), cache=False).findings}
    assert set(found) == {"load", "told"}
    assert found["told"].edit is not None
    assert found["load"].edit is None
    assert "nothing in this project that is compiled calls the function" in (found["load"].declined or "")


def test_the_answer_is_the_same_from_the_cache(tmp_path: Path) -> None:
    write(tmp_path, {"lib/__init__.py": "from ._impl import Model, scaled\n", "lib/_impl.py": _PART})
    settings = Settings(tmp_path)
    first = api.check([tmp_path], settings)
    write(tmp_path, {"lib/_impl.py": _PART.replace('"slow"', '"very slow"')})
    second = api.check([tmp_path], settings)
    assert [each.declined for each in first.findings] == [each.declined for each in second.findings]


def test_a_cached_answer_ends_where_another_file_compiles_the_caller(tmp_path: Path) -> None:
    write(tmp_path, {"lib/__init__.py": "from ._impl import Model, scaled\n", "lib/_impl.py": _PART})
    settings = Settings(tmp_path)
    api.check([tmp_path], settings)
    caller = """
        from torch import nn
        from lib._impl import load

        class Reader(nn.Module):
            def forward(self, x):
                return load(x)
    """
    write(tmp_path, {"lib/reader.py": caller})
    found = {each.function: each for each in api.check([tmp_path], settings).findings}
    assert found["load"].edit is not None


def test_what_only_tests_and_examples_call_is_there_for_others(tmp_path: Path) -> None:
    kept = "import torch\n\n\ndef keep(x: torch.Tensor):\n    return x[x > 0]\n"
    call = "import torch\nfrom lib.ops import keep\n\n\ndef {}():\n    return keep(torch.ones(2))\n"
    write(tmp_path, {"lib/__init__.py": "", "lib/ops.py": kept})
    for name in ("tests", "examples"):
        write(tmp_path, {f"{name}/__init__.py": "", f"{name}/some.py": call.format("test_keep")})
    found = api.check([tmp_path], Settings(tmp_path), cache=False).findings
    assert {each.function for each in found} == {"keep"}
    write(tmp_path, {"lib/load.py": call.format("_load")})
    assert not api.check([tmp_path], Settings(tmp_path), cache=False).findings


def test_packages_beside_each_other_say_nothing_of_one_another(tmp_path: Path) -> None:
    """A name that another package calls, or a method that its classes have too, may be anything of that."""
    kept = """
        import torch
        from torch import nn

        def keep(x: torch.Tensor):
            return x[x > 0]

        class Scale:
            def inverse(self, x: torch.Tensor):
                return x[x < 0]

        class Model(nn.Module):
            def __init__(self, scale):
                super().__init__()
                self.scale = scale

            def forward(self, x):
                return self.scale.inverse(x)
    """
    other = """
        import torch

        class Other:
            def inverse(self, x):
                return x

            def load(self, x):
                return keep(x)
    """
    write(tmp_path, {"lib/__init__.py": "", "lib/ops.py": kept, "other/__init__.py": "", "other/ops.py": other})
    found = api.check([tmp_path / "lib"], Settings(tmp_path), cache=False).findings
    assert {each.function for each in found} == {"keep", "Scale.inverse"}
    write(tmp_path, {"other/uses.py": "import torch\nfrom lib.ops import Model\n"})
    found = api.check([tmp_path / "lib"], Settings(tmp_path), cache=False).findings
    assert {each.function for each in found} == {"keep"}  # `inverse` may be that of either


def test_what_another_package_calls_is_not_called_in_its_own(tmp_path: Path) -> None:
    kept = "import torch\n\n\ndef keep(x: torch.Tensor):\n    return x[x > 0]\n"
    call = "import torch\nfrom lib.ops import keep\n\n\ndef _load():\n    return keep(torch.ones(2))\n"
    write(tmp_path, {"lib/__init__.py": "", "lib/ops.py": kept, "other/__init__.py": "", "other/load.py": call})
    assert {each.function for each in api.check([tmp_path], Settings(tmp_path), cache=False).findings} == {"keep"}
