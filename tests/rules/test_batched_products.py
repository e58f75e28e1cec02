"""Batches of matrix products, and convolutions, with an unknown size in them, which Inductor cannot compile (GM802)."""

from __future__ import annotations

import pytest

from tests.rules.unbacked_models import CODE, model
from tests.tools.compiled import compiled_differences
from tests.tools.fixes import declined, fixed

ROWS = ("rows = x[mask]",)
CUT = ("n = int(lengths.max())", "rows = torch.stack([x, x])[:, :n]")
GIVEN = ["(torch.arange(48.0).view(6, 8) / 48, torch.tensor([True, False, True, True, False, True]), torch.arange(6))"]


@pytest.mark.parametrize(
    "lines",
    [
        (*ROWS, "q = rows[None]", "return q @ q.transpose(-2, -1)"),
        (*ROWS, "q = rows.view(len(rows), 2, 4).transpose(0, 1)", "return torch.bmm(q, q.transpose(1, 2))"),
        (*ROWS, "return torch.einsum('nhd,mhd->hnm', rows.view(len(rows), 2, 4), rows.view(len(rows), 2, 4))"),
        (*ROWS, "return torch.einsum('nd,md->nm', rows, x)"),
        (*ROWS, "q = rows.unsqueeze(0)", "return nn.functional.scaled_dot_product_attention(q, q, q)"),
        (*CUT, "return torch.matmul(rows, rows.transpose(1, 2))"),
    ],
)
def test_a_batch_of_products_stays_outside_of_the_graph(lines: tuple[str, ...]) -> None:
    declined(model(*lines), "a batch of products with an unknown size in them", select=("GM802",), opaque=True)


@pytest.mark.parametrize(
    "lines",
    [
        (
            "mask = torch.arange(lengths.max(), dtype=lengths.dtype)[None] < lengths[:, None]",
            "return torch.matmul(mask.unsqueeze(1).transpose(1, 2) * x[:1, :3], x[:3, :4])",
        ),
        ("steps = torch.arange(int(lengths.max()), dtype=torch.long)", "return (steps[None, :, None] * x) @ x.t()"),
    ],
)
def test_so_does_one_of_masks_and_integers(lines: tuple[str, ...]) -> None:
    declined(model(*lines), "a batch of products with an unknown size in them", select=("GM802",), opaque=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("n = int(lengths.max())", "return nn.functional.conv1d(torch.stack([x, x])[:, :, :n], torch.ones(6, 6, 1))"),
        ("n = int(lengths.max())", "return self.along(torch.stack([x, x])[:, :, :n])"),
        (*ROWS, "return torch.conv2d(rows.view(len(rows), 2, 2, 2), torch.ones(2, 2, 1, 1))"),
        (*ROWS, "return self.images(input=rows.view(len(rows), 2, 2, 2))"),
    ],
)
def test_convolutions_with_an_unknown_size_stay_outside_of_the_graph(lines: tuple[str, ...]) -> None:
    declined(with_layers(*lines), "a convolution with an unknown size in it", select=("GM802",), opaque=True)


def test_a_convolution_of_sequences_whose_number_is_unknown_is_in_the_graph() -> None:
    after, _ = fixed(with_layers(*ROWS, "return self.along(rows.view(len(rows), 2, 4)[:, [0, 1, 0, 1, 0, 1]])"), **CODE)
    assert "_places_in_graph(mask)" in after
    assert not list(compiled_differences(after, GIVEN, backend="inductor"))


def with_layers(*lines: str) -> str:
    made = """    def __init__(self):
        super().__init__()
        self.along = nn.Conv1d(6, 6, 1)
        self.images = nn.Conv2d(2, 2, 1)

"""
    return model(*lines).replace("    def forward", f"{made}    def forward")


def test_so_does_one_in_a_function_that_gets_the_rows() -> None:
    source = model("return scores(x[mask])").replace(
        "class Model", "def scores(rows):\n    return rows[None] @ rows[None].transpose(1, 2)\n\n\nclass Model"
    )
    declined(source, "a batch of products with an unknown size in them", select=("GM802",), opaque=True)


def test_a_layer_that_pays_attention_to_the_rows_breaks_the_graph() -> None:
    source = model("return self.attend(x[mask], x[mask], x[mask])[0]")
    made = "    def __init__(self):\n        super().__init__()\n        self.attend = nn.MultiheadAttention(8, 2)\n\n"
    source = source.replace("    def forward", f"{made}    def forward")
    declined(source, "Inductor cannot compile it", select=("GM802",), opaque=True)


@pytest.mark.parametrize(
    "lines",
    [
        (*ROWS, "return rows @ rows.t() + torch.matmul(rows, rows.transpose(0, 1))"),
        (*ROWS, "heads = rows.view(len(rows), 2, 4)", "return heads @ heads.transpose(1, 2)"),
        (*ROWS, "return torch.einsum('nd,nd->n', rows, rows)"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_products_that_inductor_compiles_are_in_the_graph(lines: tuple[str, ...]) -> None:
    after, _ = fixed(model(*lines), **CODE)
    assert "_places_in_graph(mask)" in after
    assert not list(compiled_differences(after, GIVEN, backend="inductor"))
