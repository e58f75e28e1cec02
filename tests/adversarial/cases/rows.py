"""Rows that data choose, loops over them, and experts."""

from tests.adversarial.case import TWO, Group

_MORE = (*TWO, "torch.zeros(0, 3)", "torch.tensor([[1.0, nan, 3.0], [4.0, 0.5, inf]])")

rows = Group("rows under a mask")
for name, body in {
    "sum": "return x[m].sum()",
    "mean": "return x[m].mean()",
    "mean of half": "return (x * 3e4).half()[m].mean()",
    "sum of half": "return (x * 3e4).half()[m].sum()",
    "sum of bfloat16": "return x.bfloat16()[m].sum()",
    "sum of integers": "return x.nan_to_num().long()[m].sum()",
    "mean of integers raises": "return x.nan_to_num().long()[m].mean()",
    "sum of bools": "return (x > 1)[m].sum()",
    "sum of uint8": "return (x.nan_to_num().abs() * 100).to(torch.uint8)[m].sum()",
    "sum of nan outside": "return torch.where(m, x, x / 0)[m].sum()",
    "sum of another expression": "return (x * 2.0)[m].sum()",
    "max": "return x[m].max()",
    "max of nothing": "return x[x > 100].max()",
    "min": "return x[m].min()",
    "prod": "return x[m].prod()",
    "std": "return x[m].std()",
    "var": "return x[m].var()",
    "median": "return x[m].median()",
    "any": "return (x > 1)[m].any()",
    "all": "return (x > 1)[m].all()",
    "norm": "return x[m].norm()",
    "abs sum": "return x[m].abs().sum()",
    "log sum": "return x[m].log().sum()",
    "reciprocal mean": "return (1.0 / x[m]).mean()",
    "sqrt mean": "return x[m].sqrt().mean()",
    "square sum": "return (x[m] ** 2).sum()",
    "mse": "return F.mse_loss(x[m], x[m] * 2.0)",
    "l1": "return F.l1_loss(x[m], torch.zeros_like(x[m]))",
    "cross entropy": "return F.cross_entropy(x[m.any(1)], x[m.any(1)].argmax(1))",
    "masked_select": "return x.masked_select(m).sum()",
    "masked_select of broadcast": "return x.masked_select(m[:1]).sum()",
    "rows sum": "return x[m.any(1)].sum()",
    "rows sum over a dim": "return x[m.any(1)].sum(0)",
    "rows mean over a dim": "return x[m.any(1)].mean(0)",
    "columns": "return x[:, m.any(0)].sum()",
    "numel": "return x * x[m].numel()",
    "len": "return x * len(x[m])",
    "shape": "return x * x[m].shape[0]",
    "returned": "return x[m]",
    "sorted": "return x[m].sort()[0]",
    "write zero": "y = x.clone()\ny[m] = 0.0\nreturn y",
    "write zero by where": "y = x.clone()\ny[torch.where(m)] = 0.0\nreturn y",
    "write by nonzero": "y = x.clone()\ni = m.nonzero()\ny[i[:, 0], i[:, 1]] = 0.0\nreturn y",
    "write of a number of another dtype": "y = x.nan_to_num().long()\ny[torch.where(m)] = 1.5\nreturn y",
    "write of a tensor": "y = x.clone()\ny[torch.where(m)] = x.max()\nreturn y",
    "write of a vector": "y = x.clone()\ny[torch.where(m)] = torch.ones(int(m.sum()))\nreturn y",
    "write of one row": "y = x.clone()\ny[torch.where(m.any(1))] = x[0]\nreturn y",
    "write twice": "y = x.clone()\nw = torch.where(m)\ny[w] = 0.0\ny[w] = 1.0\nreturn y",
    "write, mask changed between": "y = x.clone()\nw = torch.where(m)\nm.fill_(True)\ny[w] = 0.0\nreturn y",
    "write into a view": "y = x.clone()\nv = y[0]\ny[torch.where(m)] = 0.0\nreturn y, v",
    "write into the argument": "x[torch.where(m)] = 0.0\nreturn x",
    "write into expanded": "y = x[:1].expand(2, 3)\ny[torch.where(m)] = 0.0\nreturn y",
    "augmented": "y = x.clone()\ny[m] += 1.0\nreturn y",
    "augmented by its own": "y = x.clone()\ny[m] *= y[m]\nreturn y",
    "copy": "y = torch.zeros_like(x)\ny[m] = x[m]\nreturn y",
    "copy of another dtype": "y = torch.zeros(x.shape, dtype=torch.float64)\ny[m] = x[m]\nreturn y",
    "copy of another dtype raises": "y = torch.zeros(x.shape, dtype=torch.long)\ny[m] = x[m]\nreturn y",
    "copy from another mask": "y = torch.zeros_like(x)\ny[m] = x[~m]\nreturn y",
    "copy of rows": "y = torch.zeros_like(x)\nr = m.any(1)\ny[r] = x[r]\nreturn y",
    "copy of a function": "y = torch.zeros_like(x)\ny[m] = x[m].log()\nreturn y",
    "copy of a scaled": "y = torch.zeros_like(x)\ny[m] = x[m] * 2.0\nreturn y",
    "copy into itself": "x = x.clone()\nx[m] = x[m]\nreturn x",
    "copy shifted": "y = x.clone()\ny[1:][m[1:]] = y[:-1][m[1:]]\nreturn y",
    "copy through an alias": "y = x.clone()\nz = y\ny[m] = z[m] * 0 + 1\nreturn y",
    "copy of a looked up row": "t = torch.arange(4.0)\nids = m.long()\ny = torch.zeros(x.shape)\ny[m] = t[ids[m]]\nreturn y",
    "copy of a looked up row out of range": "t = torch.arange(1.0)\nids = m.long()\ny = torch.zeros(x.shape)\ny[m] = t[ids[m]]\nreturn y",
    "copy of negative indices": "t = torch.arange(4.0)\nids = -m.long()\ny = torch.zeros(x.shape)\ny[m] = t[ids[m]]\nreturn y",
    "copy with nan outside and gradients": "y = torch.zeros_like(x)\nm2 = x > 0\nh = x.sqrt()\ny[m2] = h[m2]\nreturn y",
    "layer on rows": "y = torch.zeros_like(x)\nr = m.any(1)\ny[r] = self.linear(x[r])\nreturn y",
    "norm on rows": "y = torch.zeros_like(x)\nr = m.any(1)\ny[r] = self.bn(x[r])\nreturn y",
    "indices of where, three": "a, b = torch.where(m)\nreturn x[a, b].sum()",
    "indices of argwhere": "i = torch.argwhere(m)\nreturn x[i[:, 0], i[:, 1]].sum()",
    "one index of where": "i = torch.where(m.any(1))[0]\nreturn x[i].sum()",
    "unique": "return x.unique().sum()",
    "mask of uint8": "return x[m.to(torch.uint8)].sum()",
    "mask of another shape": "return x[m[0]].sum() if x.shape[0] == 3 else x[:, m[0]].sum()",
    "mask of fewer dims": "return x[m[:, 0]].sum()",
    "mask built of a list": "return x[[True, False]].sum()",
    "mask changed in place after": "y = x[m].sum()\nm.fill_(False)\nreturn y + m.sum()",
    "tensor changed in place after": "x = x * 1.0\nv = x[m]\nx.add_(1.0)\nreturn v.sum()",
    "selection kept, tensor changed": "x = x * 1.0\nv = x[m]\nx.zero_()\ns = v.sum()\nreturn s",
    "selection used twice": "v = x[m]\nreturn v.sum() / v.numel()",
    "weighted mean": "return (x * m).sum() / m.sum()",
    "division by a count": "return x[m].sum() / max(int(m.sum()), 1)",
    "sum of a lifted, broadcast": "return (x * x[:, :1])[m].sum()",
    "sum of a lifted, changed in place": "x = x.clone()\nreturn x.mul_(2)[m].sum() + x.sum()",
    "own mask, changed in place before": "x = x.clone()\nreturn x.mul_(-1)[x > 0].sum()",
    "own mask, written": "x = x.clone()\nx[x > 1] -= 1\nx[x > 1] *= 3\nreturn x",
    "own mask, written by another": "x = x.clone()\ny = x * 2\ny[x > 1] = x[x > 1].log()\nx[y > 0] = y[y > 0] + 1\nreturn x, y",
    "own mask, changed between": "x = x.clone()\na = x[x > 1]\nx.neg_()\nb = x[x < -1]\nreturn (a * b).sum()",
    "own mask, rebound between": "a = x[x > 1]\nx = x + 0.0\nb = x[x > 1]\nreturn (a * b).sum()",
    "own mask of a view": "x = x.clone()\nv = x[:, :1]\nx[v[:, 0] > 0] += 1\nx[v[:, 0] > 0] += 1\nreturn x",
    "inverted mask": "y = torch.zeros_like(x)\ny[~m] = x[~m].exp()\ny[m & (x > 1)] += 2\nreturn y",
    "mean of a nan outside and gradients": "h = x.log()\nreturn (h * 2)[m].mean() + h[x > 0].mean()",
    "mean of means": "d = x[m].log() - x[m]\nreturn d.pow(2).mean() - 0.5 * d.mean() ** 2",
    "unreduced loss": "return F.mse_loss(x, x * 2, reduction='none')[m].mean()",
    "unreduced loss of half": "h = x.half()\nreturn F.smooth_l1_loss(h, h * 2, reduction='none').masked_select(m).mean()",
    "lifted integer mean raises": "return (x.nan_to_num().long() + 1)[m].mean()",
    "lifted to bool": "return (x * 2 > 3)[m].sum()",
    "masked_select of broadcast, lifted": "return x.exp().masked_select(m[:1]).sum()",
    "masked_select broadcasts the tensor": "return x[:1].exp().masked_select(m).sum()",
    "masked_select of a wrong shape raises": "return x.exp().masked_select(m[:, :2]).sum()",
    "mask of an integer test": "n = 1\nreturn x[n == 1].sum()",
    "own mask of one row": "y = x[0]\nreturn y[y > 1].sum() * (y * y)[y > 1].mean()",
    "loss over none": "v = x[x > 100]\nif v.numel() == 0:\n    return x.sum() * 0\nreturn v.mean()",
}.items():
    rows.add(
        name,
        f"m = x > 0.7\n{body}",
        init="self.linear = nn.Linear(3, 3)\nself.bn = nn.BatchNorm1d(3)",
        inputs=_MORE if "raises" not in name else TWO,
        varied=name in {"sum", "mean", "copy", "write zero by where", "masked_select"},
    )

places = Group("places and lengths")
for name, body in {
    "ends of rows": "found = torch.where(ids == 2)\nends[found[0]] += found[1]\nreturn ends",
    "ends of rows, assigned": "rows, columns = torch.where(ids == 2)\nends[rows] = columns\nreturn ends",
    "ends of rows, half": "ends = ends.half()\nrows, columns = torch.where(ids == 2)\nends[rows] = columns.half()\nreturn ends",
    "ends of rows, own ids changed": "rows, columns = torch.where(ids == 2)\nids = ids * 0\nends[rows] = columns\nreturn ends, ids",
    "ends of rows, ids written": "ids = ids.clone()\nrows, columns = torch.where(ids == 2)\nids.zero_()\nends[rows] = columns\nreturn ends, ids",
    "ends is ids": "rows, columns = torch.where(ids == 2)\nids[rows, 0] = columns\nreturn ids",
    "ends a view of ids": "ends = ids[:, 0]\nrows, columns = torch.where(ids == 2)\nends[rows] = columns\nreturn ids",
    "ends expanded": "ends = torch.zeros(1, dtype=torch.long).expand(ids.shape[0])\nrows, columns = torch.where(ids == 2)\nends[rows] = columns\nreturn ends",
    "ends of another length": "ends = torch.zeros(9, dtype=torch.long)\nrows, columns = torch.where(ids == 2)\nends[rows] = columns\nreturn ends",
    "ends negative": "rows, columns = torch.where(ids == 2)\nends[rows] = -columns\nreturn ends",
    "ends plus": "rows, columns = torch.where(ids == 2)\nends[rows] = columns + 1\nreturn ends",
    "nonzero of three dims": "ids = ids[None]\nfound = (ids == 2).nonzero()\nends[found[:, 1]] = found[:, 2]\nreturn ends",
    "one dim": "found = torch.where(ids[0] == 2)\nends = torch.zeros(3, dtype=torch.long)\nends[found[0]] = 1\nreturn ends",
    "value of data": "rows, columns = torch.where(ids == 2)\nends[rows] = ids[rows, columns]\nreturn ends",
    "rows filled": "lengths = (ids == 2).sum(1)\nmask = torch.zeros(ids.shape)\nfor i, n in enumerate(lengths):\n    mask[i, :n] = 1\nreturn mask",
    "rows filled, negative lengths": "lengths = -(ids == 2).sum(1)\nmask = torch.zeros(ids.shape)\nfor i, n in enumerate(lengths):\n    mask[i, :n] = 1\nreturn mask",
    "rows filled, long lengths": "lengths = (ids == 2).sum(1) + 9\nmask = torch.zeros(ids.shape)\nfor i, n in enumerate(lengths):\n    mask[i, :n] = 1\nreturn mask",
    "rows filled, very negative": "lengths = (ids == 2).sum(1) - 9\nmask = torch.zeros(ids.shape)\nfor i, n in enumerate(lengths):\n    mask[i, n:] = 1\nreturn mask",
    "rows filled, floats": "lengths = (ids == 2).sum(1) * 1.0\nmask = torch.zeros(ids.shape)\nfor i, n in enumerate(lengths):\n    mask[i, : int(n)] = 1\nreturn mask",
    "rows filled, uint8 lengths": "lengths = (ids == 2).sum(1).to(torch.uint8)\nmask = torch.zeros(ids.shape)\nfor i, n in enumerate(lengths):\n    mask[i, :n] = 1\nreturn mask",
    "rows filled, fewer lengths": "lengths = (ids == 2).sum(1)[:1]\nmask = torch.zeros(ids.shape)\nfor i, n in enumerate(lengths):\n    mask[i, :n] = 1\nreturn mask",
    "rows filled, variable used after": "lengths = (ids == 2).sum(1)\nmask = torch.zeros(ids.shape)\nfor i, n in enumerate(lengths):\n    mask[i, :n] = 1\nreturn mask, i, n",
    "rows filled into int": "lengths = (ids == 2).sum(1)\nmask = torch.zeros(ids.shape, dtype=torch.long)\nfor i, n in enumerate(lengths):\n    mask[i, :n] = 0.5\nreturn mask",
    "rows filled into bool": "lengths = (ids == 2).sum(1)\nmask = torch.zeros(ids.shape, dtype=torch.bool)\nfor i, n in enumerate(lengths):\n    mask[i, :n] = 7\nreturn mask",
    "rows filled, three dims": "lengths = (ids == 2).sum(1)\nmask = torch.zeros(*ids.shape, 2)\nfor i, n in enumerate(lengths):\n    mask[i, :n] = 1\nreturn mask",
    "rows filled, mask is lengths": "lengths = ids.clone()\nfor i, n in enumerate(lengths[:, 0]):\n    lengths[i, :n] = 1\nreturn lengths",
    "rows filled, step": "lengths = (ids == 2).sum(1)\nmask = torch.zeros(ids.shape)\nfor i, n in enumerate(lengths):\n    mask[i, :n:2] = 1\nreturn mask",
    "rows filled by data": "lengths = (ids == 2).sum(1)\nmask = torch.zeros(ids.shape)\nfor i, n in enumerate(lengths):\n    mask[i, :n] = ids[i, :n].float()\nreturn mask",
    "loop over chosen": "starts = torch.nonzero(ids == 2)\ny = torch.zeros(ids.shape, dtype=torch.long)\nfor i in range(starts.shape[0]):\n    row, column = starts[i]\n    y[row, column:] += 1\nreturn y",
    "loop over chosen, attribute read": "starts = torch.nonzero(ids == 2)\ny = torch.zeros(ids.shape, dtype=torch.long)\nfor i in range(starts.shape[0]):\n    row, column = starts[i]\n    y[row, column:] += self.step\nreturn y",
    "loop over chosen, property read": "starts = torch.nonzero(ids == 2)\ny = torch.zeros(ids.shape, dtype=torch.long)\nfor i in range(starts.shape[0]):\n    row, column = starts[i]\n    y[row, column:] += self.counted\nreturn y",
    "loop over chosen, missing attribute": "starts = torch.nonzero(ids == 9)\ny = torch.zeros(ids.shape, dtype=torch.long)\nfor i in range(starts.shape[0]):\n    row, column = starts[i]\n    y[row, column:] += self.missing\nreturn y",
    "loop over chosen, with random": "starts = torch.nonzero(ids == 2)\ny = torch.zeros(ids.shape)\nfor i in range(starts.shape[0]):\n    row, column = starts[i]\n    y[row, column:] += torch.rand(())\nreturn y",
    "loop over chosen, with gradients": "y = torch.zeros(ids.shape)\nfor row, chosen in enumerate(ids == 2):\n    found = torch.where(chosen)[0]\n    y[row, found] = self.weight[found] * 2.0\nreturn y",
    "loop over chosen, module list": "y = torch.zeros(ids.shape)\nfor row, chosen in enumerate(ids == 2):\n    for c in torch.where(chosen)[0]:\n        y[row, c] = self.parts[c](torch.ones(1)).sum()\nreturn y",
    "loop over chosen, break": "y = torch.zeros(ids.shape)\nfor row, chosen in enumerate(ids == 2):\n    found = torch.where(chosen)[0]\n    if found.shape[0] == 0:\n        break\n    y[row, found] = 1.0\nreturn y",
    "loop over chosen, log": "y = torch.zeros(ids.shape)\nfor row, chosen in enumerate(ids == 2):\n    found = torch.where(chosen)[0]\n    logger.warning('row %s', row)\n    y[row, found] = 1.0\nreturn y",
    "loop over chosen, raise": "y = torch.zeros(ids.shape)\nfor row, chosen in enumerate(ids == 2):\n    found = torch.where(chosen)[0]\n    if found.shape[0] > 1:\n        raise ValueError('two')\n    y[row, found] = 1.0\nreturn y",
    "loop over chosen, list": "y = torch.zeros(ids.shape)\nseen = []\nfor row, chosen in enumerate(ids == 2):\n    found = torch.where(chosen)[0]\n    seen.append(found)\n    y[row, found] = 1.0\nreturn y, seen",
    "loop over chosen, size of floats": "y = torch.zeros(ids.shape[0], int(self.size.item()))\nfor row, chosen in enumerate(ids == 2):\n    found = torch.where(chosen)[0]\n    y[row, found] = 1.0\nreturn y",
    "loop over chosen, result aliases": "y = torch.zeros(ids.shape)\nfor row, chosen in enumerate(ids == 2):\n    found = torch.where(chosen)[0]\n    y[row, found] = 1.0\nreturn y, y.view(-1)",
    "loop over chosen, empty rows": "ids = ids[:0]\ny = torch.zeros(ids.shape)\nfor row, chosen in enumerate(ids == 2):\n    found = torch.where(chosen)[0]\n    y[row, found] = 1.0\nreturn y",
    "loop over chosen, autocast": "with torch.autocast('cpu', dtype=torch.bfloat16):\n    y = torch.zeros(ids.shape)\n    for row, chosen in enumerate(ids == 2):\n        found = torch.where(chosen)[0]\n        y[row, found] = (self.weight[None] @ torch.ones(3, 3))[0, found].float()\nreturn y",
    "loop over chosen, no_grad": "with torch.no_grad():\n    y = torch.zeros(ids.shape)\n    for row, chosen in enumerate(ids == 2):\n        found = torch.where(chosen)[0]\n        y[row, found] = self.weight[found]\nreturn y * self.weight",
}.items():
    places.add(
        name,
        body,
        args="ids: torch.LongTensor, ends: torch.LongTensor",
        init="self.step = 2\nself.reads = 0\nself.weight = nn.Parameter(torch.ones(3))\nself.parts = nn.ModuleList(nn.Linear(1, 1) for _ in range(3))\nself.register_buffer('size', torch.tensor(3.0))",
        methods="@property\ndef counted(self):\n    self.reads += 1\n    return self.reads",
        inputs=[
            "(torch.tensor([[0, 2, 1], [2, 2, 2]]), torch.zeros(2, dtype=torch.long))",
            "(torch.tensor([[0, 0, 1], [0, 1, 1]]), torch.ones(2, dtype=torch.long))",
            "(torch.zeros(0, 3, dtype=torch.long), torch.ones(0, dtype=torch.long))",
            "(torch.tensor([[2, 0, 0], [0, 0, 2]]), torch.full((2,), 5))",
        ],
        varied=False,
    )
    if "loop over chosen" in name and "missing" not in name:
        text = (
            body.replace("self.step", "2")
            .replace("self.counted", "1")
            .replace("self.weight", "torch.ones(3)")
            .replace("self.size", "torch.tensor(3.0)")
        )
        if "self." not in text:
            places.whole(
                f"{name}, function",
                "import logging\n\nimport torch\nfrom torch import nn\n\nlogger = logging.getLogger(__name__)\n\n\ndef fill(ids: torch.LongTensor):\n"
                + "".join(f"    {line}\n" for line in text.splitlines())
                + "\n\nclass Model(nn.Module):\n    def forward(self, ids, ends):\n        return fill(ids)\n",
                inputs=[
                    "(torch.tensor([[0, 2, 1], [2, 2, 2]]), None)",
                    "(torch.tensor([[0, 0, 1], [0, 1, 1]]), None)",
                    "(torch.zeros(0, 3, dtype=torch.long), None)",
                    "(torch.tensor([[0.0, 2.0, 2.0]]), None)",
                ],
                varied=False,
            )

experts = Group("experts")
_EXPERTS = {
    "plain": "nn.Linear(3, 3)",
    "with BatchNorm": "nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))",
    "that centre rows": "Centred()",
    "softmax over rows": "nn.Softmax(0)",
    "divided by the count": "Counted()",
    "with dropout": "nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))",
    "that print": "Printing()",
    "that count calls": "Calls()",
    "that raise for no rows": "Strict()",
    "in place": "nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))",
    "of another dtype": "Double()",
    "frozen": "nn.Linear(3, 3).requires_grad_(False)",
    "that flatten": "Flat()",
    "that sort rows": "Sorted()",
}
_CLASSES = {
    "Centred": """
class Centred(nn.Module):
    def forward(self, h):
        return h - h.mean(0)
""",
    "Counted": """
class Counted(nn.Module):
    def forward(self, h):
        return h / h.shape[0]
""",
    "Printing": """
class Printing(nn.Module):
    def forward(self, h):
        print("expert", h.shape[0])
        return h
""",
    "Calls": """
class Calls(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, h):
        self.calls += 1
        return h * 2.0
""",
    "Strict": """
class Strict(nn.Module):
    def forward(self, h):
        if h.shape[0] > 3:
            raise ValueError("many rows")
        return h * 2.0
""",
    "Double": """
class Double(nn.Module):
    def forward(self, h):
        return h.double().to(h.dtype)
""",
    "Flat": """
class Flat(nn.Module):
    def forward(self, h):
        return h.flatten().view(-1, 3).flip(0)
""",
    "Sorted": """
class Sorted(nn.Module):
    def forward(self, h):
        return h.sort(0)[0]
""",
}
_LOOPS = {
    "where": "for i, expert in enumerate(self.experts):\n    row, slot = torch.where(chosen == i)\n    if row.numel() == 0:\n        continue\n    result.index_add_(0, row, expert(x[row]) * weights[row, slot, None])",
    "mask": "best = chosen[:, 0]\nfor i, expert in enumerate(self.experts):\n    result[best == i] = expert(x[best == i])",
    "segments": "order = chosen.view(-1).argsort(stable=True)\nrows = x[order // 2]\nparts = []\nstart = 0\nfor i, n in enumerate(F.one_hot(chosen, 3).sum((0, 1)).tolist()):\n    if n == 0:\n        continue\n    parts.append(self.experts[i](rows[start : start + n]))\n    start += n\nresult[order // 2] = torch.cat(parts)",
    "hits": "mask = F.one_hot(chosen, num_classes=3).permute(2, 1, 0)\nhit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()\nfor number in hit:\n    slot, row = torch.where(mask[number[0]])\n    result.index_add_(0, row, self.experts[number[0]](x[row]) * weights[row, slot, None])",
}
for loop_name, loop in _LOOPS.items():
    for name, expert in _EXPERTS.items():
        experts.add(
            f"{loop_name}, {name}",
            "weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)\nresult = torch.zeros_like(x)\n"
            + loop
            + "\nreturn result",
            init=f"self.gate = nn.Linear(3, 3)\nself.experts = nn.ModuleList({expert} for _ in range(3))",
            top=next((text for head, text in _CLASSES.items() if head in expert), ""),
            inputs=(
                "torch.randn(5, 3)",
                "torch.ones(2, 3)",
                "torch.randn(1, 3)",
                "torch.tensor([[1.0, nan, 3.0], [4.0, 0.5, 1.0]])",
            ),
            varied=False,
        )
experts.add(
    "replaced from another file",
    "weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)\nresult = torch.zeros_like(x)\n"
    + _LOOPS["where"]
    + "\nreturn result",
    init="self.gate = nn.Linear(3, 3)\nself.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))",
    files={
        "use.py": "import torch.nn as nn\nimport model\n\n\nclass Mixing(nn.Module):\n    def forward(self, h):\n        return h - h.mean(0)\n\n\ndef make():\n    made = model.Model()\n    made.experts[1] = Mixing()\n    return made\n"
    },
    make="use.make()",
    inputs=("torch.randn(5, 3)", "torch.ones(2, 3)"),
    varied=False,
)
