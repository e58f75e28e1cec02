"""What processes wrote: our own lines, torch's logs, and torch's words for a break."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphmend_codemod.trace import break_text, events, guards
from graphmend_codemod.trace.document import TraceError
from graphmend_codemod.trace.run import imported
from tests.trace.samples import branch, message_print, project

DATA = Path(__file__).parent.parent / "data/torch_trace"
TOY = """\
import torch, sys
from torch import nn
def helper(x):
    if x.sum() > 0:
        return x * 2
    return x
class M(nn.Module):
    def __init__(self):
        super().__init__(); self.l = nn.Linear(4,4)
    def inner(self, x):
        y = helper(self.l(x))
        print("hi")
        return y + 1
    def forward(self, x):
        n = self.inner(x).sum().item()
        return self.l(x) * n
"""

RECORDED = [
    {"e": "process", "program": "train.py", "cwd": "/tmp", "torch": "2.13.0", "python": "3.11.7", "rank": None},
    {"e": "break", "f": 0, "c": 0, "a": 0, "text": "Graph break", "locals": [["m.py", "f", {"x": {"type": "int"}}]]},
    {"e": "compiled", "f": 0, "c": 0, "co_name": "f", "co_filename": "a.py", "co_firstlineno": 3, "graph_op_count": 2},
]


def log(path: str) -> str:
    """A log as torch writes it: a head in the manner of glog, JSON, and payload lines behind tabs."""
    head = "V1122 16:00:00.000000 7 torch/_dynamo/symbolic_convert.py:1] "
    artifact = {"artifact": {"name": "dynamo_graph_break_reason"}, "frame_id": 0, "frame_compile_id": 0}
    metrics = {
        "compilation_metrics": {
            "co_name": "helper",
            "co_filename": path,
            "co_firstlineno": 5,
            "graph_op_count": 2,
            "entire_frame_compile_time_s": 1.5,
        },
        "frame_id": 0,
        "frame_compile_id": 0,
    }
    payload = "".join(f"\t{line}\n" for line in branch(path).splitlines())
    return f"{head}{json.dumps(artifact)}\n{payload}{head}{json.dumps(metrics)}\n{head}{{broken\n"


def test_message_is_taken_apart() -> None:
    text = break_text.parse(branch("model.py", '  File "model.py", line 13, in forward\n    y = helper(x + 1)\n'))
    assert (text.gb_id, text.kind) == ("GB0170", "Data-dependent branching")
    assert text.reason.startswith("Detected data-dependent branching")
    assert text.hints == ("Use `torch.cond` to express dynamic control flow.",)
    assert [(frame.line, frame.function) for frame in text.frames] == [(13, "forward"), (6, "helper")]
    assert (text.frames[-1].column, text.frames[-1].end_column) == (3, 14)
    assert text.frames[0].column is None
    assert not text.skips


def test_kind_on_the_line_of_the_reason_is_found() -> None:
    assert break_text.parse(message_print("model.py", "forward")).kind == "Failed to trace builtin operator"


def test_message_of_another_form_costs_nothing_but_its_parts() -> None:
    text = break_text.parse("something new")
    assert (text.gb_id, text.kind, text.frames) == ("", "something new", ())


def test_line_that_a_killed_process_left_half_is_left_out() -> None:
    lines = [json.dumps(each) for each in RECORDED]
    found = list(events.of_lines([*lines, lines[-1][:-9], "[]", ""]))
    assert [type(each).__name__ for each in found] == ["Process", "Break", "Compiled"]


def test_process_that_compiled_nothing_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text(json.dumps(RECORDED[0]) + "\n")
    assert list(events.recorded(tmp_path)) == []


def test_log_of_another_machine_names_files_of_this_project(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "dedicated_log_torch_trace_rank_1_x.log").write_text(log("/app/release/model.py"))
    (logs / "other.txt").write_text("nothing of torch\n")
    trace = imported(logs, project(tmp_path))
    (site,) = trace.sites
    assert (site.place.path, site.place.line, site.column) == ("model.py", 6, 8)
    assert [process.rank for process in trace.processes] == ["1"]
    assert trace.totals.seconds == 1.5


@pytest.mark.parametrize("version", ["2.11", "2.12", "2.13", "2.14", "2.15"])
def test_logs_of_each_torch_tell_of_the_same_breaks(tmp_path: Path, version: str) -> None:
    """Logs of one program, cut down to the records that are read. Before 2.13 torch marks no part of a statement."""
    marked = version >= "2.13"
    (tmp_path / "toy.py").write_text(TOY)
    trace = imported(DATA / f"{version}.log", tmp_path)
    assert sorted((site.place.path, site.place.line, site.column, site.gb_id) for site in trace.sites) == [
        ("toy.py", 4, 8 if marked else 5, "GB0170"),
        ("toy.py", 12, 9, "GB0059"),
        ("toy.py", 15, 13 if marked else 9, "GB0124"),
    ]
    assert trace.totals.events == 5
    assert all(site.graphs and site.seconds > 0 for site in trace.sites)


def test_folder_without_logs_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="holds no log of TORCH_TRACE; run the program with"):
        imported(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("guard", "words"),
    [
        ("tensor 'x' size mismatch at index 0. expected 2, actual 3", "size 0 of `x` changed from 2 to 3"),
        ("L['self']._modules['a'].training == True", "`self.a.training` was True and is not any more"),
        ("not L['flag']", "`flag` was false and is true"),
        (
            "tensor '___stack0' dtype mismatch. expected Float, actual Half",
            "the dtype of an intermediate value changed",
        ),
        ("a guard of tomorrow", "a guard of tomorrow"),
    ],
)
def test_guard_is_told_in_words(guard: str, words: str) -> None:
    (reason,) = guards.reasons([f"3/0: {guard}"])
    assert reason.guard == guard
    assert reason.words.startswith(words)


@pytest.mark.parametrize(
    "guard",
    ["___stack0 == {}", "L['self'].rate == {}", "___stack0[0] == {}"],
)
@pytest.mark.parametrize("value", ["0.8998266458511353", "-1e-05", "nan", "'a secret'", "[1, 0.5]", "(0.1,)"])
def test_no_value_of_a_tensor_or_of_the_user_is_kept(guard: str, value: str) -> None:
    (reason,) = guards.reasons([f"3/0: {guard.format(value)}"])
    assert value not in f"{reason.guard} {reason.words}"
    assert "is not what it was: a Python value that changes" in reason.words


def test_number_that_may_come_from_a_tensor_is_not_kept() -> None:
    assert guards.reasons(["3/0: ___stack0 == 7"])[0].guard == "___stack0 == ..."
    assert guards.reasons(["3/0: L['step'] == 7"])[0].guard == "L['step'] == 7"


def test_address_of_an_object_is_not_kept() -> None:
    (reason,) = guards.reasons(["3/0: ___check_type_id(L['past'], 140649745969984), type=<class 'list'>"])
    assert reason.guard == "___check_type_id(L['past'], ...), type=<class 'list'>"
    assert reason.words == "`past` is of another class than `list`"


def test_stack_below_a_guard_is_no_guard() -> None:
    stack = 'User stack trace:\n  File "model.py", line 55, in forward\n    return x.sum() * n\n'
    (reason,) = guards.reasons([f"4/0: ___stack0 == 1\n{stack}"])
    assert reason.guard == "___stack0 == ..."


def test_guards_of_several_earlier_compilations_are_told_one_by_one() -> None:
    told = json.dumps(
        ["0/1: GLOBAL_STATE changed: grad_mode ", "0/0: tensor 'x' size mismatch at index 0. expected 2, actual 3"],
        indent=1,
    )
    found = {reason.words.partition(";")[0] for reason in guards.reasons([told])}
    words = "a global state of torch changed: gradients were turned on or off (as by `torch.no_grad`)"
    assert found == {words, "size 0 of `x` changed from 2 to 3"}


@pytest.mark.parametrize(
    ("guard", "words"),
    [
        ("2 <= L['x'].size()[0]", "size 0 of `x` is 0 or 1 now, which torch compiles apart from other sizes"),
        ("L['self']._buffers['mask'] is None", "`self.mask` was None and is not any more"),
        (
            "___check_type_id(L['past'], 140649745969984), type=<class 'list'>",
            "`past` is of another class than `list`",
        ),
        ("___check_obj_id(L['self'].fn, 7654321), type=<class 'function'>", "`self.fn` is a different object"),
        ("L['mask'] is not None", "`mask` is None now, and was not"),
        ("len(L['self'].results) != 0", "`self.results` is empty now, and was not"),
        ("L['size'][0] > L['size'][1]", "`size[0] > size[1]` is not true any more"),
        ("tensor 'x' requires_grad mismatch. expected requires_grad=0", "`x` requires gradients now, and did not"),
        ("tensor 'x' requires_grad mismatch. expected requires_grad=1", "`x` requires no gradients any more"),
        (
            "GLOBAL_STATE changed: num_threads default_dtype ",
            "a global state of torch changed: the number of threads, the default dtype",
        ),
    ],
)
def test_guard_in_words(guard: str, words: str) -> None:
    assert guards.in_words(guard) == words


def test_error_of_the_compiler_is_told_with_its_class() -> None:
    line = {"e": "compiled", "f": 0, "c": 0, "co_name": "f", "co_filename": "m.py", "co_firstlineno": 1}
    failed = [{"fail_type": "AttributeError", "fail_reason": "no `__dict__`"}, {"fail_type": "Unsupported"}]
    failed.append({"fail_type": "Unsupported", "fail_reason": "Data-dependent branching"})
    found = list(events.of_lines(json.dumps(line | each) for each in failed))
    reasons = [each.failed for each in found if isinstance(each, events.Compiled)]
    assert reasons == ["AttributeError: no `__dict__`", "Unsupported", "Data-dependent branching"]
