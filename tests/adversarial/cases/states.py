"""States that a tensor decides, and masks that may be None."""

from tests.adversarial.case import TWO, Group

states = Group("state that a tensor decides")
for name, body in {
    "buffer of one branch": "n = x.sum()\nif n > 5:\n    self.register_buffer('scale', self.long, persistent=False)\nelse:\n    self.register_buffer('scale', self.short, persistent=False)\nreturn x * self.scale",
    "buffer, aliased": "n = x.sum()\nif n > 5:\n    self.register_buffer('scale', self.long, persistent=False)\nelse:\n    self.register_buffer('scale', self.short, persistent=False)\nself.scale.add_(1.0)\nreturn x * self.scale, self.long",
    "buffer, identity asked": "n = x.sum()\nif n > 5:\n    self.register_buffer('scale', self.long, persistent=False)\nelse:\n    self.register_buffer('scale', self.short, persistent=False)\nreturn x * self.scale, self.scale is self.long",
    "attribute": "n = x.sum()\nif n > 5:\n    self.scale = self.long\nelse:\n    self.scale = self.short\nreturn x * self.scale",
    "attribute of other shape": "n = x.sum()\nif n > 5:\n    self.scale = self.long[:1]\nelse:\n    self.scale = self.short\nreturn x * self.scale",
    "attribute of other dtype": "n = x.sum()\nif n > 5:\n    self.scale = self.long.double()\nelse:\n    self.scale = self.short\nreturn x * self.scale",
    "attribute, Python number": "n = x.sum()\nif n > 5:\n    self.factor = 2.0\nelse:\n    self.factor = 3.0\nreturn x * self.factor",
    "attribute, without else": "n = x.sum()\nif n > self.longest:\n    self.scale = self.build(n)\n    self.longest = n\nreturn x * self.scale",
    "attribute, half": "n = x.sum()\nif n > self.longest:\n    self.scale = self.build(n).half()\n    self.longest = n\nreturn x * self.scale",
    "cached by a branch": "n = x.sum()\nif n > 5:\n    if not hasattr(self, 'kept'):\n        self.kept = self.build(2.0)\n    self.scale = self.kept\nelse:\n    self.scale = self.short\nreturn x * self.scale",
    "cached by a branch, random": "n = x.sum()\nif n > 5:\n    if not hasattr(self, 'kept'):\n        self.kept = torch.rand(3)\n    self.scale = self.kept\nelse:\n    self.scale = self.short\nreturn x * self.scale",
    "running statistics": "n = x.sum()\nif n > 5:\n    self.short.mul_(0.9).add_(x.mean(0).detach() * 0.1)\nreturn x * self.short",
    "counter": "if x.sum() > 5:\n    self.calls += 1\nreturn x",
    "parameter's data": "if x.sum() > 5:\n    self.weight.data = self.weight.data * 2.0\nreturn x * self.weight",
    "grad of a parameter": "if x.sum() > 5:\n    self.weight.grad = None\nreturn x * self.weight",
    "property setter": "if x.sum() > 5:\n    self.level = self.long\nelse:\n    self.level = self.short\nreturn x * self.level",
    "setattr": "if x.sum() > 5:\n    setattr(self, 'scale', self.long)\nelse:\n    setattr(self, 'scale', self.short)\nreturn x * self.scale",
    "of another object": "if x.sum() > 5:\n    self.box.value = self.long\nelse:\n    self.box.value = self.short\nreturn x * self.box.value",
    "of a global": "if x.sum() > 5:\n    BOX['a'] = self.long\nelse:\n    BOX['a'] = self.short\nreturn x * BOX['a']",
    "of a list": "if x.sum() > 5:\n    self.seen.append(x)\nreturn x * len(self.seen)",
    "of training mode": "if x.sum() > 5:\n    self.eval()\nelse:\n    self.train()\nreturn self.drop(x)",
    "of requires_grad": "if x.sum() > 5:\n    self.weight.requires_grad_(False)\nelse:\n    self.weight.requires_grad_(True)\nreturn x * self.weight",
}.items():
    states.add(
        name,
        body,
        args="x: torch.Tensor",
        init="""
        self.register_buffer("short", torch.ones(3), persistent=False)
        self.register_buffer("long", torch.full((3,), 2.0), persistent=False)
        self.register_buffer("scale", torch.zeros(3), persistent=False)
        self.longest = torch.tensor(0.0)
        self.factor = 1.0
        self.calls = 0
        self.seen = []
        self.weight = nn.Parameter(torch.ones(3))
        self.drop = nn.Dropout(0.5)
        self.box = Box()
        """,
        methods="""
        def build(self, n):
            return torch.ones(3) * n

        @property
        def level(self):
            return self.__dict__["_level"]

        @level.setter
        def level(self, value):
            self.calls += 1
            self.__dict__["_level"] = value
        """,
        top="BOX = {}\n\n\nclass Box:\n    value = None",
        inputs=(*TWO, "torch.full((2, 3), 4.0)"),
        varied=name in {"attribute", "attribute, without else"},
    )

_PARTS = {
    "Part": """
class Part(nn.Module):
    def forward(self, x, mask=None):
        if mask is not None:
            x = x * mask
        return x
""",
    "Loud": """
class Loud(nn.Module):
    def forward(self, x, mask=None):
        print("masked", mask is not None)
        return x if mask is None else x * mask
""",
}
masks = Group("masks that may be None")
for name, body in {
    "product": "if mask is not None and not torch.all(mask == 1):\n    x = x * mask\nreturn x",
    "product of inf": "if mask is not None and not torch.all(mask == 1):\n    x = x * mask\nreturn x.sum()",
    "product, view written after": "if mask is not None and not torch.all(mask == 1):\n    x = x * mask\nx.detach().add_(1.0)\nreturn x",
    "product, narrow written after": "y = x\nif mask is not None and not torch.all(mask == 1):\n    x = x * mask\ntorch.narrow(x.detach(), 1, 0, 2).add_(1.0)\nreturn x, y",
    "product, returned as is": "y = x\nif mask is not None and not torch.all(mask == 1):\n    x = x * mask\nreturn x, y, x is y",
    "product of another mask": "if mask is not None and not torch.all(mask == 1):\n    x = x * (mask + 1)\nreturn x",
    "product of mask of floats": "if mask is not None and not torch.all(mask > 0):\n    x = x * mask\nreturn x",
    "product, mask any": "if mask is not None and (mask == 0).any():\n    x = x * mask\nreturn x",
    "product, mask min": "if mask is not None and mask.min() < 1:\n    x = x * mask\nreturn x",
    "product, mask sum": "if mask is not None and mask.sum() < mask.numel():\n    x = x * mask\nreturn x",
    "product of dtype": "if mask is not None and not torch.all(mask == 1):\n    x = x * mask.double()\nreturn x",
    "none if ones": "if mask is not None and torch.all(mask == 1):\n    mask = None\nif mask is not None:\n    x = x * mask\nreturn x",
    "none if ones, returned": "if mask is not None and torch.all(mask == 1):\n    mask = None\nreturn x, mask",
    "none if ones, stored": "if mask is not None and torch.all(mask == 1):\n    mask = None\nself.mask = mask\nreturn x",
    "none if ones, a layer": "if mask is not None and torch.all(mask == 1):\n    mask = None\nreturn self.part(x, mask)",
    "none if ones, softmax": "if mask is not None and torch.all(mask == 1):\n    mask = None\ns = x @ x.T\nif mask is not None:\n    s = s + (1.0 - mask[:, :1].T.float()) * torch.finfo(s.dtype).min\nreturn s.softmax(-1) @ x",
    "none if ones, sdpa": "if mask is not None and torch.all(mask == 1):\n    mask = None\nreturn F.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=None if mask is None else mask[:, :1].T.bool())",
    "none if ones, is_causal": "if mask is not None and torch.all(mask == 1):\n    mask = None\nreturn F.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=None if mask is None else mask[:, :1].T.bool(), is_causal=mask is None)",
    "flag by a mask": "masked = mask is not None and (mask == 0).any().item()\nif masked:\n    x = x * mask\nreturn x",
    "flag by a mask to a layer": "masked = mask is not None and (mask == 0).any().item()\nreturn self.choose(x, mask, masked)",
}.items():
    for part in ("Part", "Loud"):
        if part == "Loud" and "self.part" not in body and "self.choose" not in body:
            continue
        masks.add(
            name + ("" if part == "Part" else ", loud part"),
            body,
            args="x: torch.Tensor, mask: torch.Tensor = None",
            init=f"self.mask = None\nself.part = {part}()\nself.linear = nn.Linear(3, 3)",
            methods="""
            def choose(self, x, mask, masked):
                y = x * 2
                if masked:
                    y = self.linear(y) * mask
                return y
            """,
            top=_PARTS[part],
            inputs=[
                "(torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.5, 1.0]]), torch.ones(2, 3, dtype=torch.long))",
                "(torch.tensor([[1.0, 2.0, inf], [4.0, nan, 1.0]]), torch.tensor([[1, 1, 0], [1, 0, 1]]))",
                "(torch.tensor([[1.0, 2.0, inf], [4.0, nan, 1.0]]), torch.ones(2, 3, dtype=torch.bool))",
                "(torch.ones(2, 3), torch.tensor([[1.0, 0.5, 0.0], [2.0, 1.0, 1.0]]))",
                "(torch.ones(2, 3), torch.ones(2, 1))",
                "(torch.ones(2, 3), None)",
                "(torch.ones(2, 3), torch.ones(4, 2, 3))",
            ],
            varied=False,
        )
