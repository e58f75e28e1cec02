"""Tests of arrays of sizes, masks and hooks, tables cut to a maximum.

Compiled, four of the masks are different, as GM109's page says: hooks from outside, and a `forward` of an instance, see
a mask of ones in place of None.
"""

from tests.adversarial.case import Group

arrays = Group("arrays of sizes in a test")
_4 = (
    "torch.ones(2, 3)",
    "torch.ones(4, 4)",
    "torch.ones(1, 1)",
    "torch.zeros(0, 3)",
    "torch.ones(5)",
    "torch.ones(2, 2, 2)",
)
for _name, _test in {
    "asarray": "np.asarray(x.shape)",
    "asarray any": "np.asarray(x.shape).any()",
    "asarray of a part": "np.asarray(x.shape[1:])",
    "asarray compared": "np.asarray(x.shape) > 2",
    "asarray compared, any": "(np.asarray(x.shape) > 2).any()",
    "array all": "(np.array(x.shape) % 2 == 0).all()",
    "array equal": "(np.asarray(x.shape) == np.asarray(x.shape)).all()",
    "np.any": "np.any(np.asarray(x.shape) % 2)",
    "np.all": "np.all(np.asarray(x.shape[1:]) >= 3)",
    "an element": "np.asarray(x.shape)[0] > 2",
    "the sum": "np.asarray(x.shape).sum() > 5",
    "prod": "np.prod(x.shape) > 5",
    "a size alone": "np.asarray(x.shape[0])",
    "a size compared": "np.asarray(x.shape[0]) > 2",
    "a size compared, any": "(np.asarray(x.shape[0]) > 2).any()",
    "a list": "(np.asarray([x.shape[0], 7]) > 2).all()",
    "a dtype": "(np.asarray(x.shape, dtype=np.int8) > 2).any()",
    "a tuple of floats": "(np.asarray(x.shape) / 2 > 1).any()",
    "negated": "not (np.asarray(x.shape) > 2).any()",
    "and a tensor": "(np.asarray(x.shape) > 2).any() and x.sum() > 0",
    "or": "(np.asarray(x.shape) > 3).any() or self.training",
    "an axis": "(np.asarray(x.shape) > 2).any(axis=0)",
    "array_equal": "np.array_equal(x.shape, (2, 3))",
    "max": "np.asarray(x.shape).max() > 3",
    "power": "(np.power(np.asarray(x.shape), 2) > 4).any()",
    "shift": "(np.asarray(x.shape) >> 1 > 1).any()",
    "unsigned": "(np.asarray(x.shape, dtype=np.uint8) - 3 > 2).any()",
    "torch.as_tensor": "(torch.as_tensor(x.shape) > 2).any()",
    "torch.tensor": "torch.tensor(x.shape).sum() > 5",
    "numpy of the shape": "(torch.tensor(x.shape).numpy() > 2).any()",
}.items():
    arrays.add(_name, f"if {_test}:\n    x = x * 2\nreturn x + 1", inputs=_4, varied=False)
    arrays.add(f"{_name}, a name", f"n = {_test}\ny = x + 1\nif n:\n    y = y * 2\nreturn y", inputs=_4, varied=False)

hooked = Group("masks and hooks from outside")
_KEPT = "kept = mask\nif positions[0] > 0 or (mask is not None and torch.all(mask == 1)):\n    kept = None\nreturn kept"
_PART = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 3)

    def forward(self, x, mask=None):
        x = self.proj(x)
        if mask is not None:
            x = x * mask[:, :, None]
        return torch.cumsum(x, dim=1)
"""
_MI = "torch.randn(2, 3, 3), torch.ones(2, 3, dtype=torch.long)"
_MZ = "torch.randn(2, 3, 3), torch.tensor([[0, 1, 1], [1, 1, 1]])"
for _name, _hook in {
    "a hook that looks": "made.part.register_forward_pre_hook(lambda l, given: (given[0] * (1 if given[1] is None else 3), given[1]))",
    "a hook with keywords": "made.part.register_forward_pre_hook(lambda l, a, k: ((a[0] * (1 if a[1] is None else 3), a[1]), k), with_kwargs=True)",
    "a hook behind": "made.part.register_forward_hook(lambda l, a, r: r if a[1] is None else r * 3)",
    "a forward of its own": "was = made.part.forward\n    made.part.forward = lambda x, mask=None: was(x, mask) + (mask is None)",
    "another part": "made.part = torch.nn.Identity()\n    made.part.forward = lambda x, mask=None: x + (mask is None)",
    "a method of its own": "made._mask = lambda mask, positions: None",
    "a wrapped part": "made.part = torch.nn.utils.parametrizations.weight_norm(made.part, 'weight') if hasattr(made.part, 'weight') else made.part",
}.items():
    hooked.add(
        _name,
        "if positions is None:\n    positions = torch.arange(x.shape[1])\nkept = self._mask(mask, positions)\nreturn self.part(x, kept)",
        init="self.part = Part()",
        methods="def _mask(self, mask, positions):\n" + "\n".join("    " + line for line in _KEPT.split("\n")),
        args="x: torch.Tensor, mask=None, positions=None",
        inputs=(_MI, _MZ, f"{_MZ}, torch.arange(5, 8)", "torch.randn(2, 3, 3)"),
        top=_PART,
        outside=f"import torch\nimport model\n\n\ndef make():\n    made = model.Model()\n    {_hook}\n    return made\n",
        varied=False,
    )

cut = Group("rows behind the end of a table")
for _name, _positions in {
    "in range": "torch.tensor([[0, 3], [2, 1]])",
    "behind the end": "torch.tensor([[0, 40], [2, 1]])",
    "behind the end of one": "torch.tensor([[0, 1], [2, 9]])",
    "negative": "torch.tensor([[0, -1], [2, 1]])",
    "all negative": "torch.tensor([[-3, -1], [-2, -1]])",
    "int32": "torch.tensor([[0, 3], [2, 1]], dtype=torch.int32)",
    "empty": "torch.zeros(2, 0, dtype=torch.long)",
    "floats": "torch.tensor([[0.0, 3.0], [2.0, 1.0]])",
    "one row": "torch.tensor([[0, 3]])",
    "three rows": "torch.tensor([[0, 3], [2, 1], [0, 0]])",
    "one dimension": "torch.tensor([0, 3])",
}.items():
    cut.add(
        _name,
        """
        parts = [x, x * 2]
        count = x.shape[0]
        last = positions.max().item()
        columns = -(-(last + 1) // 4)
        table = torch.cat([part[:, :columns] for part in parts], dim=-1)
        table = torch.reshape(table, (count, -1, table.shape[-1]))
        table = torch.cat([torch.index_select(table[i], 0, positions[i]).unsqueeze(0) for i in range(count)], dim=0)
        return table
        """,
        args="x: torch.Tensor, positions: torch.Tensor",
        inputs=(
            f"torch.randn(2, 3, 4, 2), {_positions}",
            f"torch.randn(2, 2, 4, 2), {_positions}",
            f"torch.randn(2, 1, 4, 2), {_positions}",
        ),
        varied=False,
    )
