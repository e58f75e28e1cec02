"""GM603: arrays that numbers alone decide, which torch.compile computes while it traces."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphmend_codemod.rules.framework.edits import CONSTANT
from graphmend_codemod.rules.proofs import old_constructors, suspect_calls, traceable_equivalents
from tests.rules.constant_arrays import HEAD, MODEL, module_with
from tests.rules.operators import forgotten, made  # noqa: F401
from tests.tools.fixes import fixed, fixed_among

_PADDED = HEAD + MODEL.replace("BODY", "return x[:, symmetric(x.shape[-1], 2)] * self.weight")


def _one_graph(source: str, *inputs: torch.Tensor, **named: Any) -> Any:
    model = made(source)
    torch.compiler.reset()
    compiled: Any = torch.compile(model, backend="aot_eager", fullgraph=True, **named)
    for x in inputs:
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)
    return compiled


@pytest.mark.parametrize(
    "body",
    [
        "nodes, weights = np.polynomial.legendre.leggauss(self.n)\nreturn x * torch.as_tensor(nodes * weights).sum()",
        "window = torch.from_numpy(np.unwrap(np.linspace(0, 9, self.n)))\nreturn x.sum() * window",
        "places = np.arange(x.shape[-1])\nplaces = np.pad(places, (2, 1), mode='wrap')\nreturn x[:, places]",
        "places = np.digitize(np.arange(5), [1, 3]).astype(np.int64)\nreturn x[:, places]",
        "area = float(np.nansum(np.linspace(0, 1, self.n)))\nreturn x * area",
        "return x * torch.from_numpy(np.union1d(np.arange(3), np.arange(x.size(1))))[:1]",
        "return x * torch.tensor(np.interp(np.arange(3), [0, 2], [0.5, 1.5]), dtype=x.dtype)[:1]",
        "return x[:, symmetric(x.shape[-1], 2)]",
        "table = np.polynomial.hermite.hermgauss(self.n)[0]\nreturn x.sum() * torch.from_numpy(table)",
    ],
)
def test_numbers_decide_an_array(body: str) -> None:
    source = module_with(body)
    assert "_while_tracing(" in fixed(source)[0]
    _one_graph(source, torch.rand(2, 6), torch.rand(2, 6, dtype=torch.float64))


@pytest.mark.parametrize(
    ("made_of", "dtype"),
    [
        ("np.nancumsum(np.arange(3))", torch.int64),
        ("np.ediff1d(np.arange(3, dtype=np.int16))", torch.int16),
        ("np.nancumsum(np.linspace(0, 1, 3))", torch.float64),
        ("np.unwrap(np.linspace(0, 1, 3, dtype='float32'))", torch.float32),
        ("np.isin(np.arange(3), [1])", torch.bool),
        ("np.ediff1d(np.exp(1j * np.arange(3)))", torch.complex128),
    ],
)
@pytest.mark.parametrize("default", [torch.float32, torch.float64])
def test_dtypes_stay(made_of: str, dtype: torch.dtype, default: torch.dtype) -> None:
    source = module_with(f"table = torch.from_numpy({made_of})\nreturn table.to(x.device), x")
    torch.set_default_dtype(default)
    try:
        if "nancumsum" in made_of:
            assert fixed(source)[0] == source  # what is not known to be pure is left alone
            return
        assert _one_graph(source, torch.rand(2, 6))(torch.rand(2, 6))[0].dtype is dtype
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("how", ["static", "automatic", "dynamic", "marked"])
def test_a_size_that_changes_is_another_array(how: str) -> None:
    model = made(_PADDED)
    compiled: Any = torch.compile(model, backend="aot_eager", dynamic={"static": False, "dynamic": True}.get(how))
    for size in (6, 7, 9, 6, 12):
        x = torch.randn(2, size)
        if how == "marked":
            torch._dynamo.mark_dynamic(x, 1)
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)


def test_an_attribute_that_changes_is_another_array() -> None:
    source = module_with("return x.sum() * torch.from_numpy(np.unwrap(np.linspace(0, 1, self.n)))")
    model = made(source)
    compiled: Any = torch.compile(model, backend="aot_eager")
    x = torch.randn(2, 6)
    for number in (4, 5, True, 3.0, 4):
        model.n = int(number) if isinstance(number, float) else number
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)


@pytest.mark.parametrize("how", ["table += 1", "table[0] = table[1] + 5", "np.multiply(table, 2, out=table)"])
def test_what_is_written_later_is_written_into_a_new_array(how: str) -> None:
    source = module_with(
        f"table = np.unwrap(np.linspace(0, 1, self.n))\n{how}\nreturn x.sum() * torch.from_numpy(table)"
    )
    model = made(source)
    compiled: Any = torch.compile(model, backend="aot_eager")
    x = torch.randn(2, 6)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)


def test_who_gets_the_array_may_write_into_it() -> None:
    model = made(module_with("table = np.unwrap(np.linspace(0, 1, self.n))\nreturn x + 1, table"))
    compiled: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    for _ in range(3):
        table = compiled(torch.ones(2))[1]
        assert isinstance(table, np.ndarray)
        np.testing.assert_array_equal(table, model(torch.ones(2))[1])
        table += 7


def test_a_function_that_is_replaced_is_asked_again() -> None:
    model = made(_PADDED)
    module = sys.modules[type(model).__module__]
    compiled: Any = torch.compile(model, backend="aot_eager")
    x = torch.randn(2, 6)
    torch.testing.assert_close(compiled(x), model(x))
    module.reflect = lambda x, low, high: np.zeros(len(x), dtype="int32")  # type: ignore[attr-defined]
    torch.testing.assert_close(compiled(x), model(x))


def test_gradients_after_inference_mode() -> None:
    model = made(_PADDED)
    compiled: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    x = torch.randn(2, 6)
    with torch.inference_mode():
        compiled(x)
    compiled(x).sum().backward()
    assert model.weight.grad is not None


def test_another_default_device() -> None:
    model = made(_PADDED)
    x = torch.randn(2, 6)
    with torch.device("meta"):
        compiled: Any = torch.compile(model, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.parametrize("strict", [True, False])
def test_export_and_pickle(strict: bool) -> None:
    model = made(_PADDED)
    x = torch.randn(2, 6)
    exported = torch.export.export(model, (x,), strict=strict)
    torch.testing.assert_close(exported.module()(x), model(x))
    torch.testing.assert_close(pickle.loads(pickle.dumps(model))(x), model(x))


def test_a_tensor_in_the_place_of_a_number_takes_the_author_s_way() -> None:
    model = made(module_with("return x.sum() * torch.from_numpy(np.unwrap(np.linspace(0, 1, self.n)))"))
    model.n = np.int64(4)
    compiled: Any = torch.compile(model, backend="aot_eager")
    torch.testing.assert_close(compiled(torch.ones(2)), model(torch.ones(2)))


@pytest.mark.parametrize(
    "body",
    [
        "return x * torch.from_numpy(np.unwrap(np.random.rand(4)))[:1]",
        "return x * torch.from_numpy(np.unwrap(np.load('table.npy')))[:1]",
        "return x * torch.from_numpy(np.unwrap(np.empty(4)))[:1]",
        "return x * np.nansum(np.linspace(0, 1, 4))",  # a number of NumPy
        "return x * torch.from_numpy(np.unwrap(self.table(4)))[:1]",  # a subclass may say something else
        "import numpy as np\nreturn x * torch.from_numpy(np.unwrap(np.linspace(0, 1, 4)))[:1]",
        "table = np.linspace(0, 1, 4)\nself.n = table\nreturn x * torch.from_numpy(np.unwrap(self.n))[:1]",
        "return x * torch.from_numpy(np.union1d(np.arange(3), np.linspace(0, 1, 4, retstep=True)[0]))[:1]",
        "return x * torch.from_numpy(drawn(np.arange(4)))[:1]",
        "return x * torch.from_numpy(counted(np.arange(4)))[:1]",
        "return x * torch.from_numpy(kept(np.arange(4)))[:1]",
        "return x * torch.from_numpy(cached(np.arange(4)))[:1]",
        "return x * torch.from_numpy(scaled(np.arange(4)))[:1]",
        "return x * torch.from_numpy(other(np.arange(4)))[:1]",
    ],
)
def test_what_more_than_numbers_decides_is_left_alone(body: str) -> None:
    head = """
import functools

import numpy as np
import torch
from torch import nn

COUNT = [0]
SCALE = 2.0


def set_scale(scale):
    global SCALE
    SCALE = scale


def drawn(x):
    return np.unwrap(x + np.random.rand())


def counted(x):
    COUNT[0] += 1
    return np.unwrap(x) + COUNT[0]


def kept(x, seen=[]):
    seen.append(1)
    return np.unwrap(x) + len(seen)


@functools.lru_cache
def cached(x):
    return np.unwrap(x)


def scaled(x):
    return np.unwrap(x) * SCALE


def other(x):
    return np.unwrap(x)


if SCALE > 1:

    def other(x):
        return np.unwrap(x) + 1

"""
    source = module_with(body, head)
    assert "while_tracing" not in fixed(source)[0]


def test_a_function_that_another_file_replaces(tmp_path: Path) -> None:
    patching = "import model\n\n\ndef patch(function):\n    model.reflect = function\n"
    assert "while_tracing" in fixed_among(tmp_path, _PADDED, {"other.py": "import model\n"})[0]
    assert "while_tracing" not in fixed_among(tmp_path, _PADDED, {"other.py": patching})[0]


def test_a_file_without_torch_in_a_package_that_needs_it(tmp_path: Path) -> None:
    from graphmend_codemod.core.settings import Settings
    from graphmend_codemod.engine import api

    head, model = HEAD.replace("import torch\nfrom torch import nn\n", ""), _PADDED.partition("class Model")[2]
    files = {
        "arrays.py": head,
        "model.py": f"import torch\nfrom torch import nn\nfrom .arrays import symmetric\n\n\nclass Model{model}",
    }
    for name, first in {"with_torch": "from .model import Model\n", "alone": ""}.items():
        package = tmp_path / name
        package.mkdir()
        for file, text in {**files, "__init__.py": first}.items():
            (package / file).write_text(text)
        result = api.fix([package], Settings(root=tmp_path), write=False, cache=False)
        after = {Path(each.path).name: each.after.decode() for each in result.fixes}
        assert ("while_tracing" in after.get("arrays.py", "")) is (name == "with_torch")


def test_who_imports_a_fixed_file_does_not_import_the_compiler(tmp_path: Path) -> None:
    after, _ = fixed(_PADDED)
    assert "_dynamo_marked_constant" in after
    (tmp_path / "padded.py").write_text(after)
    told = subprocess.run(
        [sys.executable, "-c", "import sys, padded; print('torch._dynamo' in sys.modules)"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        text=True,
    )
    assert told.stdout.split() == ["False"]


def test_the_decorator_does_what_that_of_torch_does() -> None:
    def own() -> None: ...

    def of_torch() -> None: ...

    space: dict[str, Any] = {}
    exec(CONSTANT.source, space)
    marked = vars(torch.compiler.assume_constant_result(of_torch))  # type: ignore[no-untyped-call]
    assert vars(space[CONSTANT.name](own)) == marked != {}


def test_the_quick_look_knows_all_names() -> None:
    last = {name.rpartition(".")[2] for name in traceable_equivalents.BY_NAME}
    known = {*last, *traceable_equivalents.OLD_SIGNATURES, *old_constructors.NAMES, "resize_", "byte"}
    assert known == suspect_calls.NAMES


@pytest.mark.parametrize("array", ["np.asanyarray(y)", "np.asanyarray(y, dtype=y.dtype)", "filled(y, 2)"])
def test_an_array_that_is_read_again_is_no_part_of_another(array: str) -> None:
    """Eager mode writes into the first array through the second, or through a parameter."""
    head = HEAD.replace(
        "def symmetric",
        "def filled(a, n):\n    a[1] = 7\n    return np.pad(a, (n, n), mode='wrap')\n\n\ndef symmetric",
        1,
    )
    body = (
        f"n = x.shape[-1]\ny = np.arange(n)\nw = {array}\nw[0] = 9\nreturn x + torch.from_numpy(y), torch.from_numpy(w)"
    )
    source = fixed(module_with(body, head))[0]
    torch.compiler.reset()
    model = made(source)
    compiled: Any = torch.compile(model, backend="aot_eager")
    torch.testing.assert_close(compiled(torch.zeros(2, 4)), model(torch.zeros(2, 4)), rtol=0, atol=0)
