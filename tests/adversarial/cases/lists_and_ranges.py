"""Numbers of lists behind tensors and of ranges, where a part of them does something or changes."""

from tests.adversarial.case import Group

_X = "torch.tensor([[1.0, -2.0, 3.0, 0.5], [4.0, 0.5, -1.0, 2.0], [0.5, 2.0, -3.0, 1.0]])"
_METHODS = """
@property
def counted(self):
    self.reads += 1
    return [self.reads, 1]

def steps(self, x):
    self.reads += 1
    yield x.shape[0]
    yield self.reads
"""

lists = Group("lists that are read once")
for _name, _list, _number in (
    ("a property", "self.counted", "n.max().item()"),
    ("a property, its sum", "self.counted", "n.sum().item()"),
    ("a generator", "list(self.steps(x))", "n.max().item()"),
    ("sizes", "[x.shape[0], x.shape[1]]", "n.prod().item()"),
    ("small integers", "[2**31 - 1, x.shape[0]]", "n.sum().item()"),
    ("bools", "[x.shape[0] > 2, True]", "n.max().item()"),
    ("lists of lists", "[list(x.shape), list(x.shape)]", "n.max().item()"),
    ("an attribute that grows", "self.sizes", "(self.sizes.append(9), n.max().item())[1]"),
):
    lists.add(
        _name,
        f"n = torch.tensor({_list})\nreturn x.sum() * {_number}, self.reads",
        init="self.reads = 0\nself.sizes = [1, 2]",
        methods=_METHODS,
        inputs=(_X, f"-{_X}[:2]"),
        varied=False,
    )

ranges = Group("ranges of positions")
for _name, _test in {
    "the last": "positions[-1] > 1",
    "out of range": "positions[7] > 0",
    "any": "(positions > 1).any()",
    "the length": "len(positions) > 2",
    "the truth": "positions",
    "a membership": "positions[0] in (0, 1)",
    "an identity": "positions[0] is positions[0]",
    "a division": "positions[1] / 2 == 0.5",
}.items():
    ranges.add(
        _name,
        "positions = torch.arange(0, self.width, device=x.device)\nreturn self.layer(x, positions)",
        top="class Layer(nn.Module):\n    def forward(self, x, positions=None):\n"
        f"        if positions is not None and {_test}:\n            return x * 2\n        return x + 1",
        init="self.width = 3\nself.layer = Layer()",
        inputs=(_X, f"-{_X}"),
        varied=False,
    )
