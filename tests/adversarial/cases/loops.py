"""Loops over tensors and arrays of numbers."""

from tests.adversarial.case import TWO, Group

_ENDS = "ends = torch.LongTensor([1, x.shape[1]])\n"
_SIZES = "sizes = [(2, 3), (1, x.shape[1])]\nshapes = torch.as_tensor(sizes)\n"

loops = Group("loops over numbers")
for name, body in {
    "bounds": f"{_ENDS}for end in ends:\n    x = x + x[:, :end].sum()\nreturn x",
    "the name has a value before and after": f"end = 2\n{_ENDS}x = x * end\nfor end in ends:\n    x = x + x[:, :end].sum()\nreturn x * end",
    "bound again inside": f"{_ENDS}for end in ends:\n    x = x + x[:, :end].sum()\n    end = x.sum()\nreturn x * end",
    "bound again behind": f"{_ENDS}for end in ends:\n    x = x + x[:, :end].sum()\nend = x.sum()\nreturn x * end.abs()",
    "two loops": f"{_ENDS}for end in ends:\n    x = x + x[:, :end].sum()\nfor end in ends:\n    x = x + end.float()\nreturn x",
    "inside of another loop": f"{_ENDS}for _ in range(2):\n    for end in ends:\n        x = x + x[:, :end].sum()\n    x = x * end.float()\nreturn x",
    "sum of them": f"{_ENDS}total = 0\nfor end in ends:\n    total += end\nreturn x[:, : total - 1]",
    "sum of them from a tensor": f"{_ENDS}total = x.sum()\nfor end in ends:\n    total += end * x[:, :end].sum()\nreturn x * total",
    "product with a name": f"{_ENDS}s = x.mean()\nfor end in ends:\n    s = s * end + x[:, :end].sum()\nreturn x * s",
    "product with a number": f"{_ENDS}s = 0.5\nfor end in ends:\n    x = x[:, :end] * (end * s)\nreturn x",
    "product with a 0-dim fill": f"{_ENDS}for end in ends:\n    k = torch.full((), 1, dtype=torch.int32) * end\n    x = x + x[:, :end].sum()\nreturn x, k",
    "product with a 0-dim integer": f"{_ENDS}k = torch.tensor(2, dtype=torch.int32)\nfor end in ends:\n    k = k * end\n    x = x + x[:, :end].sum()\nreturn x, k",
    "returned": f"{_ENDS}for end in ends:\n    x = x + x[:, :end].sum()\nreturn x, end",
    "kept": f"{_ENDS}for end in ends:\n    x = x + x[:, :end].sum()\nself.end = end\nreturn x",
    "zipped": f"{_ENDS}return [x[:, :end] * k for k, end in zip([1, 2], ends)]",
    "enumerated from one": f"{_ENDS}return [x[:, :end] * k for k, end in enumerate(ends, 1)]",
    "enumerated by word": f"{_ENDS}return [x[:, :end] * k for k, end in enumerate(ends, start=1)]",
    "reversed": f"{_ENDS}return [x[:, :end] for end in reversed(ends)]",
    "changed meanwhile": f"{_ENDS}for end in ends:\n    x = x + x[:, :end].sum()\n    ends.add_(1)\nreturn x",
    "pairs": f"{_SIZES}for height, width in shapes:\n    x = x + torch.arange(width) * height\nreturn x",
    "pairs, a quotient": f"{_SIZES}for height, width in shapes:\n    x = x + torch.arange(width) * (height / width)\nreturn x",
    "pairs, a method": f"{_SIZES}for height, width in shapes:\n    x = x + torch.arange(width) * (height * 2).sqrt()\nreturn x",
    "pairs, starts": f"{_SIZES}start = 0\nparts = []\nfor height, width in shapes:\n    parts.append(x.flatten()[start : start + height * width])\n    start += height * width\nreturn parts",
    "rows": f"{_SIZES}for row in shapes:\n    x = x + torch.arange(row[1]) * row[0]\nreturn x",
    "rows, each unpacked": f"{_SIZES}for row in shapes:\n    height, width = row\n    x = x + torch.arange(width) * height\nreturn x",
    "array": "ends = np.array([1, x.shape[1]])\nfor end in ends:\n    x = x + x[:, :end].sum()\nreturn x",
}.items():
    loops.add(name, body, inputs=TWO, varied=False)
