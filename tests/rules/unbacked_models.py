"""Models with sizes that data decides, for the rule that carries them through the graph (GM802)."""

from __future__ import annotations

from tests.tools.observe import Scenario

CODE = {"select": ("GM802",), "opaque": True}
TRAINING = (Scenario(False, "off"), Scenario(True, "leaves"))


def model(*lines: str) -> str:
    body = "\n".join(f"        {line}" for line in lines)
    head = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
    head += "    def forward(self, x: torch.Tensor, given: torch.Tensor, lengths: torch.LongTensor):\n"
    return f"{head}        mask = ~given\n{body}\n"


INPUTS = (
    "torch.randn(3, 4), torch.tensor([True, False, True]), torch.tensor([2, 1, 3])",
    "torch.randn(3, 4), torch.tensor([False, True, True]), torch.tensor([4, 4, 1])",
)
NOTHING = "torch.randn(3, 4), torch.tensor([False, False, False]), torch.tensor([0, 0, 1])"

EMPTY = "torch.zeros(0, 4), torch.zeros(0, dtype=torch.bool), torch.tensor([1])"

ROWS = model(
    "rows = x[mask]",
    "scaled, twice = (2 * x)[mask, :2], rows * rows",
    "out = torch.zeros_like(x)",
    "out[mask] = twice.exp()",
    "return out + (scaled.sum() + rows[:, :2].mean(0)).sum()",
)
NUMBERS = model(
    "longest = int(lengths.max())",
    "sizes = lengths.tolist()",
    "parts = torch.zeros(sum(sizes), 2) + x.sum()",
    "return parts.sum() + torch.arange(longest).sum() + x[:, : lengths.min()].sum()",
)
FOUND = model(
    "places = mask.nonzero()",
    "rows, = torch.where(mask)",
    "chosen = torch.masked_select(x, mask.view(-1, 1))",
    "return x[places[:, 0]].sum(0) + x[rows].exp().sum() + chosen.sin().sum()",
)
