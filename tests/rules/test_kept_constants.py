"""GM603: what constants of a graph keep: strides, types, memory, and how many there may be."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.constant_arrays import HEAD, module_with
from tests.rules.operators import forgotten, made  # noqa: F401
from tests.tools.fixes import fixed


def _compiled(body: str, *inputs: torch.Tensor, head: str = HEAD) -> None:
    """The fixed model in one graph gives what eager mode gives, strides and memory included."""
    source = module_with(body, head)
    assert "_while_tracing(" in fixed(source)[0] or "_as_constant(" in fixed(source)[0]
    model = made(source)
    torch.compiler.reset()
    compiled: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    for x in inputs or (torch.ones(2, 3),):
        want, got = model(x), compiled(x)
        torch.testing.assert_close(got, want, rtol=0, atol=0)
        for one, other in zip(got, want, strict=True):
            assert not isinstance(other, torch.Tensor) or one.stride() == other.stride()


_TWICE = """
def table(n: int, device: torch.device):
    return torch.as_tensor(np.pad(np.unwrap(np.linspace(0, 1, n)), (1, 1), mode="reflect"), device=device)

"""


@pytest.mark.parametrize(
    "body",
    [
        "for n in range(2, 5):\n    x = x + torch.from_numpy(np.unwrap(np.linspace(0, 9, n))).sum()\nreturn (x,)",
        "for _ in range(2):\n    x = x + torch.from_numpy(np.unwrap(np.linspace(0, 9, 3)))\nreturn (x,)",
        "for n in range(2, 4):\n    nodes, weights = np.polynomial.legendre.leggauss(n)\n"
        "    x = x * float(n) + torch.from_numpy(nodes * weights).sum()\nreturn (x,)",
        "return table(3, x.device), table(4, x.device) + x[0, 0], table(3, x.device)",
    ],
)
def test_one_function_makes_several_constants_of_a_graph(body: str) -> None:
    """AOTAutograd refuses two tensors of one name: a module in two layers, a loop that is unrolled."""
    _compiled(body, head=HEAD.replace("def symmetric", f"{_TWICE.strip()}\n\n\ndef symmetric"))


@pytest.mark.parametrize(
    "body",
    [
        "w = torch.from_numpy(np.unwrap(np.linspace(0, 9, self.m))) if hasattr(self, 'm') else x\nreturn w * x",
        "w = x if self.opt is None else torch.from_numpy(np.unwrap(np.linspace(0, 9, self.opt.n)))\nreturn w * x",
        "w = len(self.pair) < 3 or torch.from_numpy(np.unwrap(np.linspace(0, 9, self.pair[2])))\nreturn x, w",
        "w = (k := 3) * torch.from_numpy(np.unwrap(np.linspace(0, 9, k)))\nreturn w * x",
        "w = [torch.from_numpy(np.unwrap(np.linspace(0, 9, i))) for i in range(1, 4)]\nreturn w, x * 2",
        "w = sum(float(np.unwrap(np.linspace(0, 9, i))[0]) for i in range(1, 4))\nreturn w * x",
    ],
)
def test_a_header_reads_nothing_that_the_statement_may_not(body: str) -> None:
    source = module_with(body)
    assert "_while_tracing(" not in fixed(source)[0]
    assert "_while_tracing(" in fixed(source.replace("self.m)", "4)").replace("self.opt.n", "4"))[0] or "n" in body


@pytest.mark.parametrize("word", ["requires_grad=True", "pin_memory=False"])
def test_what_only_one_function_of_torch_takes_is_left_to_it(word: str) -> None:
    source = module_with(f"return x * torch.tensor(np.unwrap(np.linspace(0, 9, self.n)), {word}).sum()")
    assert "_while_tracing(" not in fixed(source)[0]


def test_strides_stay() -> None:
    _compiled("w = np.unwrap(np.linspace(0, 9, 6).reshape(2, 3))\nreturn torch.from_numpy(np.unwrap(w.T)), x")
    _compiled("return torch.from_numpy(np.unwrap(np.linspace(0, 9, 6)).reshape(2, 3).T).as_strided((3,), (2,)), x")


@pytest.mark.parametrize("kind", ["float", "int", "bool", "len"])
def test_the_type_of_a_number(kind: str) -> None:
    taken = "" if kind == "len" else "[2]"
    _compiled(
        f"v = {kind}(np.unwrap(np.linspace(0, 9, self.n)){taken})\nreturn x * v, torch.ones(len(type(v).__name__))"
    )


@pytest.mark.parametrize(
    ("returned", "shares"),
    [
        ("low, low", True),
        ("low, low[None].squeeze(0)", True),
        ("low, low.view(-1, 1)", True),
        ("torch.from_numpy(array), torch.as_tensor(array, device='cpu')", True),
        ("torch.from_numpy(array), torch.as_tensor(array[::2], device='cpu')", True),
        ("torch.from_numpy(array), torch.from_numpy(np.ravel(array))", True),
        ("torch.from_numpy(array), torch.from_numpy(array.copy())", False),
        ("torch.from_numpy(array), torch.from_numpy(array * 2)", False),
        ("low, other", False),
        ("pair, torch.as_tensor(array, device='cpu')", True),
        ("one, two", False),
        ("one, one.t()", True),
    ],
)
def test_tensors_that_share_memory(returned: str, shares: bool) -> None:
    head = HEAD.replace(
        "def symmetric",
        "def tables(n: int):\n    array = np.unwrap(np.linspace(0, 1, n))\n"
        "    array = np.pad(array, (1, 1), mode='reflect')\n"
        "    low = torch.tensor(array, device='cpu')\n    other = torch.tensor(array, device='cpu')\n"
        "    pair = torch.from_numpy(array)\n"
        "    one, two = np.polynomial.legendre.leggauss(n)\n"
        "    one = torch.from_numpy(one)\n    two = torch.from_numpy(two)\n"
        f"    return {returned}\n\n\ndef symmetric",
        1,
    )
    source = module_with("one, two = tables(4)\none.add_(1)\nreturn x.sum() * one, two * 1", head)
    if shares:
        assert "_tables_as_constant(" not in fixed(source)[0]
    else:
        _compiled("one, two = tables(4)\none.add_(1)\nreturn x.sum() * one, two * 1", head=head)
