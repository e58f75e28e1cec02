"""Numbers read back out of a tensor that was made of a list: the list says the same (GM402)."""

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

SELECT = ("GM402",)
MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, *xs):
        xs = list(xs)
{body}
"""
INPUTS = [
    "torch.ones(2, 3), torch.ones(4, 3), torch.ones(3, 3)",
    "torch.ones(5, 3), torch.ones(1, 3), torch.ones(3, 3)",
    "torch.ones(6, 3), torch.ones(1, 3), torch.ones(2, 3)",
]


def model(body: str) -> str:
    return MODEL.format(body="\n".join(f"        {line}" for line in body.strip("\n").split("\n")))


NAVIT = """
lengths = torch.tensor([x.shape[0] for x in xs], dtype=torch.long)
counts = [len(x) + 1 for x in xs]
columns = torch.arange(lengths.amax().item())
mask = columns < lengths[:, None]
padded = nn.utils.rnn.pad_sequence(xs, batch_first=True) * mask[..., None]
counts = torch.tensor(counts, device=padded.device)
rows = int(torch.max(counts).item()) + int(counts.sum())
return self.linear(padded).sum(1) + torch.arange(rows).sum() * counts.max()
"""


def test_sizes_come_from_the_list() -> None:
    before = model(NAVIT)
    after, _ = fixed(before, select=SELECT)
    assert "max(numbers_in_lengths)" in after
    assert "max(numbers_in_counts) + sum(numbers_in_counts)" in after
    behaves(before, after, INPUTS)


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_compile_path_is_one_graph_with_gradients(dynamic: bool) -> None:
    after, _ = fixed(model(NAVIT), select=SELECT)
    compiles(after, INPUTS, dynamic=dynamic)


def test_a_list_that_changes_later_is_copied_before() -> None:
    body = """
counts = [len(x) for x in xs]
t = torch.tensor(counts)
counts.append(99)
return self.linear(xs[0]) * torch.arange(t.max().item()).sum()
"""
    after, _ = fixed(model(body), select=SELECT)
    assert "[*counts]" in after
    behaves(model(body), after, INPUTS)
    compiles(after, INPUTS)


@pytest.mark.parametrize(
    "made",
    [
        "[True, False]",
        "[True, 0]",
        "[x.sum() for x in xs]",
        "[]",
        "[1.5, 2.5]",
        "[[1, 2], [3, 4]]",
        "xs[0][:, 0].long()",
        "3",
    ],
)
def test_what_is_no_list_of_integers_is_read_as_before(made: str) -> None:
    body = f"""
counts = {made}
t = torch.tensor(counts)
n = t.max().item() if t.numel() else 0
n = int(t.sum().item())
return self.linear(xs[0]) * n
"""
    after, _ = fixed(model(body), select=SELECT)
    behaves(model(body), after, INPUTS)
    compiles(after, INPUTS, strict=False)


@pytest.mark.parametrize(
    "write",
    [
        "t[0] = xs[0].shape[1] + 70",
        "t.clamp_(max=1)",
        "view = t.view(-1)\nview[0] = 70",
        "torch.add(t, 1, out=t)",
        "t.data.fill_(7)",
        "t.data = torch.tensor([70, 80])",
        "t.data, y = torch.tensor([70, 80]), 1",
    ],
)
def test_a_tensor_that_may_be_written_is_read(write: str) -> None:
    body = f"""
t = torch.tensor([len(x) for x in xs])
{write}
n = t.max().item()
return self.linear(xs[0]) * torch.arange(n).sum()
"""
    declined(model(body), because="may write in place to `t`", select=SELECT)


@pytest.mark.parametrize("change", ["t += 1", "if len(xs) > 2:\n    t = t + 1"])
def test_a_tensor_that_is_bound_again_is_read(change: str) -> None:
    body = f"""
t = torch.tensor([len(x) for x in xs])
{change}
n = t.max().item()
return self.linear(xs[0]) * torch.arange(n).sum()
"""
    after, _ = fixed(model(body), select=SELECT)
    assert after == model(body)


@pytest.mark.parametrize("keyword", [", dtype=torch.float32", ", dtype=torch.uint8", ", requires_grad=False"])
def test_a_tensor_of_another_dtype_is_read(keyword: str) -> None:
    body = f"""
t = torch.tensor([len(x) + 300 for x in xs]{keyword})
n = t.max().item()
return self.linear(xs[0]) * n
"""
    after, _ = fixed(model(body), select=SELECT)
    assert after == model(body)


def test_a_list_that_is_no_plain_one_is_not_computed_twice() -> None:
    body = """
t = torch.tensor([xs.pop().shape[0] for _ in range(2)])
n = t.max().item()
return self.linear(xs[0]) * torch.arange(n).sum()
"""
    declined(model(body), because="would be computed twice", select=SELECT)


def test_a_name_that_means_something_else_is_not_used() -> None:
    body = """
max = min
t = torch.tensor([len(x) for x in xs])
n = t.max().item()
return self.linear(xs[0]) * torch.arange(n).sum()
"""
    declined(model(body), because="`max`", select=SELECT)


def test_a_tensor_made_in_a_loop_has_a_copy_for_each() -> None:
    body = """
out = self.linear(xs[0])
for each in xs:
    t = torch.tensor([each.shape[0], each.shape[1] + 2])
    n = t.min().item()
    out = out + torch.arange(n).sum()
return out
"""
    after, _ = fixed(model(body), select=SELECT)
    assert "numbers_in_t" in after
    behaves(model(body), after, INPUTS)
    compiles(after, INPUTS)


def test_numbers_that_show_what_they_are_stay_what_they_were() -> None:
    body = """
given = [True, False]
t = torch.tensor(given)
n = int(t.max())
return self.linear(xs[0]) * n, str(n)
"""
    after, _ = fixed(model(body), select=SELECT)
    behaves(model(body), after, INPUTS)
    compiles(after, INPUTS, strict=False)


def test_a_shape_that_sizes_a_tensor_is_no_list_of_its_numbers() -> None:
    body = """
given = xs[0].shape
t = torch.LongTensor(given)
n = int((t * 0).max()) + t.max().item() * 0
return self.linear(xs[0]) + n
"""
    after, _ = fixed(model(body), select=SELECT)
    assert "type(given) in (list, tuple)" in after
    behaves(model(body), after, INPUTS)
    compiles(after, INPUTS, strict=False)


@pytest.mark.parametrize("numbers", ["[2**62, 2**62]", "[-(2**62), -(2**62), -1]", "[-(2**62), 2]"])
def test_a_sum_that_64_bits_do_not_hold_is_that_of_the_tensor(numbers: str) -> None:
    before = model(f"given = {numbers}\ncounts = torch.tensor(given)\nreturn xs[0] * float(counts.sum().item())")
    after, _ = fixed(before, select=SELECT)
    assert "-(2**63) <= sum(" in after
    compiles(after, ["torch.ones(2, 3)"], strict=False)


def test_a_property_that_may_do_more_than_read_is_read_once() -> None:
    source = model("numbers = torch.tensor(self.counted)\nreturn xs[0] * numbers.max().item()").replace(
        "    def forward",
        """    @property
    def counted(self):
        self.reads = getattr(self, "reads", 0) + 1
        return [self.reads, 1]

    def forward""",
    )
    declined(source, "would be computed twice", select=SELECT)


def test_linspace_takes_tensors_as_its_ends() -> None:
    source = model("""
bounds = torch.tensor([x.shape[0] for x in xs])
return torch.linspace(bounds[0], bounds[1], 4)
""")
    assert fixed(source, select=SELECT)[0] == source
    compiles(source, INPUTS)
    assert fixed(source.replace("bounds[1], 4", "9, bounds[1]"), select=SELECT)[0] != source


def test_linspace_takes_the_numbers_of_a_list_as_well() -> None:
    source = model("""
sizes = [x.shape[0] for x in xs]
bounds = torch.tensor(sizes)
return [torch.linspace(0.5, bounds[1] - 0.5, bounds[1]), torch.arange(bounds[1])]
""")
    after, _ = fixed(source, select=SELECT)
    assert "- 0.5, bounds[1])" not in after.split("else:")[0]
    behaves(source, after, INPUTS)
    compiles(after, INPUTS)
