"""What generated pieces stand in: branches on state, guards of lists, contexts, parameters and inputs."""

from __future__ import annotations

STATE_BRANCHES = (
    (
        'if not hasattr(self, "long_scale"):\n    self.long_scale = self.build(2.0)\n'
        'self.register_buffer("scale", self.long_scale, persistent=False)',
        'self.register_buffer("scale", self.short_scale, persistent=False)',
    ),
    ("self.scale = self.table", "self.scale = self.short_scale"),
    ("self.scale = self.table * 2", "self.scale = self.scale.clone()"),
    ("self.last = self.table", "self.last = self.scale"),
    ("self.scale = self.build(3.0)", ""),
    ("self.table = self.scale\nself.scale = self.table + 1", "self.scale = self.table"),
    ("self.scale.copy_(self.table)", "self.scale.fill_(1.0)"),
)

LIST_GUARDS = (
    ("torch.tensor(sizes)", "(shapes[:, 0] * shapes[:, 1]).sum() != {t}.shape[0]"),
    ("torch.as_tensor(sizes, dtype=torch.long)", "(shapes[:, 0] * shapes[:, 1]).sum() != 4"),
    ("torch.as_tensor(sizes, dtype=torch.long, device={t}.device)", "shapes[:, 0].sum() != {t}.numel()"),
    ("torch.tensor(sizes)", "shapes.prod(-1).sum() > 100"),
    ("torch.tensor(sizes)[:1]", "(shapes[:, 0] * shapes[:, 1]).sum() != {t}.shape[0]"),
)

CONTEXTS = (
    "torch.no_grad()",
    "torch.enable_grad()",
    "torch.autocast('cpu', dtype=torch.bfloat16)",
    "warnings.catch_warnings()",
    "torch.random.fork_rng()",
)

PARAMETERS = (
    ("y", ("y: torch.Tensor", "y", "y: 'torch.Tensor'")),
    ("mask", ("mask: torch.Tensor", "mask", "mask: torch.BoolTensor")),
    ("flag", ("flag: bool = False", "flag=False")),
    ("sizes", ("sizes: list = ((1, 2),)", "sizes=((1, 2), (1, 3))")),
)

FLOAT_INPUTS = (
    "torch.randn(2, 4)",
    "torch.randn(2, 4)",
    "torch.randn(2, 4).abs() + 1",
    "-torch.rand(2, 4)",
    "torch.ones(2, 4)",
    "torch.zeros(2, 4)",
    "torch.randn(2, 4) * 1e4",
    "torch.full((2, 4), inf)",
    "torch.tensor([[1.0, nan, -1.0, 0.0], [0.5, -0.0, 2.0, 1.0]])",
    "torch.tensor([[1.0, inf, -1.0, 0.0], [0.5, -inf, 2.0, 1.0]])",
    "torch.randn(1, 4)",
    "torch.randn(0, 4)",
    "torch.arange(8).reshape(2, 4)",
    "torch.randn(2, 4, dtype=torch.complex64)",
    "torch.arange(8, dtype=torch.uint8).reshape(2, 4)",
    "torch.randn(2, 4).numpy()",
)

MASK_INPUTS = (
    "torch.zeros(2, 4, dtype=torch.bool)",
    "torch.ones(2, 4, dtype=torch.bool)",
    "torch.tensor([[True, False, False, True], [False, False, True, False]])",
)

SIZE_INPUTS = ("[[1, 2], [2, 3]]", "[[2, 1]]", "[[1, 1], [1, 1]]", "((2, 1), (1, 2))")
