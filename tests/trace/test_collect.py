"""A run to a trace: each site once, with the compilations that it caused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphmend_codemod.trace import baseline, document, events, stacks
from graphmend_codemod.trace.break_text import TextFrame
from graphmend_codemod.trace.collect import Collector
from graphmend_codemod.trace.document import TraceError
from tests.trace.samples import TORCH, branch, compiled, project, run, traced


def test_site_three_frames_deep_is_one_site(tmp_path: Path) -> None:
    found = traced(project(tmp_path))
    assert [(site.place.path, site.place.line, site.column, site.gb_id) for site in found.sites] == [
        ("model.py", 6, 8, "GB0170"),
        ("model.py", 14, 9, "GB0059"),
    ]
    assert [site.events for site in found.sites] == [2, 1]
    assert [(caller.line, caller.function) for caller in found.sites[0].callers] == [(13, "forward")]


def test_each_compilation_has_the_break_that_caused_it(tmp_path: Path) -> None:
    found = traced(project(tmp_path))
    branch, printed = (site.id for site in found.sites)
    assert [each.because for each in found.compilations] == [None, branch, branch, branch, printed]
    assert [each.site for each in found.compilations] == [branch, branch, None, printed, None]
    assert {each.call for each in found.compilations} == {1}


def nested(path: str) -> list[events.Event]:
    """`forward` at 12 calls another `forward` at 5, which torch alone tells of; then a third is compiled by itself."""
    broken = branch(path).replace("in helper", "in forward")

    def start(frame: int, line: int, *above: events.Frame) -> events.Start:
        led = (events.Frame("train.py", 3, "main"), *above) if frame < 9 else (events.Frame("train.py", 9, "main"),)
        return events.Start(frame, 0, (*led, events.Frame(path, line, "forward")))

    return [
        events.Process("train.py", "", "2.13.0", "3.11.7", None),
        start(0, 12),
        events.Break(0, 0, broken, ()),
        compiled(0, "forward", 12, None, path),
        start(1, 5, events.Frame(path, 13, "forward")),
        events.Break(1, 0, broken, ()),
        compiled(1, "forward", 5, 2, path),
        start(3, 13),
        compiled(3, "torch_dynamo_resume_in_forward_at_13", 13, 1, path),
        start(9, 12),
        compiled(9, "forward", 12, 1, path),
    ]


def test_what_is_compiled_behind_a_caller_that_torch_leaves_out_has_its_cause(tmp_path: Path) -> None:
    collector = Collector(tmp_path)
    collector.add(nested(str(project(tmp_path) / "model.py")))
    found = collector.trace("train.py")
    (site,) = found.sites
    assert [each.because for each in found.compilations] == [None, site.id, site.id, None]
    assert [each.call for each in found.compilations] == [1, 1, 1, 2]


def test_what_a_broken_call_leaves_to_python_has_its_cause_and_the_next_call_has_none(tmp_path: Path) -> None:
    path = str(project(tmp_path) / "model.py")
    above = (events.Frame("train.py", 3, "main"), events.Frame(TORCH, 1789, "_call_impl"))
    inside = (*above, events.Frame(path, 13, "forward"))

    def begun(frame: int, function: str, line: int, *led: events.Frame) -> list[events.Event]:
        start = events.Start(frame, 0, (*led, events.Frame(path, line, function)))
        return [start, compiled(frame, function, line, 1, path)]

    collector = Collector(tmp_path)
    first, broken = begun(0, "forward", 12, *above), events.Break(0, 0, branch(path), ())
    collector.add(
        [run(path)[0], first[0], broken, first[1], *begun(1, "late", 20, *inside), *begun(2, "all", 30, *above)]
    )
    found = collector.trace("train.py")
    assert [each.because for each in found.compilations] == [None, found.sites[0].id, None]
    assert [each.call for each in found.compilations] == [1, 1, 2]


@pytest.mark.parametrize(
    ("told", "whole"),
    [
        ([("a.py", "forward", 4), ("b.py", "forward", 8)], ["main 3", "forward 4", "forward 8"]),
        ([("a.py", "run", 4), ("b.py", "forward", 8)], ["main 3", "run 4", "forward 8"]),
        (
            [("a.py", "forward", 4), ("b.py", "torch_dynamo_resume_in_forward_at_7", 8)],
            ["main 3", "forward 4", "forward 8"],
        ),
        ([("main.py", "main", 3), ("b.py", "forward", 8)], ["main 3", "forward 8"]),
        ([("a.py", "forward", 4), ("c.py", "other", 8)], ["main 3", "forward 8"]),
        ([("a.py", "forward", 0), ("b.py", "forward", 8)], ["main 3", "forward 8"]),
        ([], ["main 3", "forward 8"]),
    ],
)
def test_traced_frames_that_torch_leaves_out_are_put_back(told: list[tuple[str, str, int]], whole: list[str]) -> None:
    stack = [TextFrame("main.py", 3, "main"), TextFrame("b.py", 8, "forward")]
    known = [events.Known(path, function, {}, line) for path, function, line in told]
    assert [f"{each.function} {each.line}" for each in stacks.restored(stack, known)] == whole


def test_cost_is_what_was_compiled_for_a_break_and_what_was_thrown_away(tmp_path: Path) -> None:
    branch, printed = traced(project(tmp_path)).sites
    assert (branch.frames, branch.graphs, branch.seconds) == (3, 2, 3.25)
    assert (printed.frames, printed.graphs, printed.seconds) == (1, 1, 1.0)


def test_callers_locals_are_kept_beside_the_sites(tmp_path: Path) -> None:
    path = str(project(tmp_path) / "model.py")
    broken = run(path)[1]
    assert isinstance(broken, events.Break)
    caller = events.Known(path, "forward", {"x": {"type": "torch.Tensor", "dtype": "float16", "sizes": [2]}})
    collector = Collector(tmp_path)
    collector.add([run(path)[0], broken._replace(known=(caller, *broken.known))])
    found = collector.trace("train.py")
    (known,) = found.known
    assert (known.place.line, known.place.function, known.facts[0].dtype) == (13, "forward", "float16")
    assert [fact.dtype for fact in found.sites[0].facts] == ["float32"]


def test_methods_of_one_name_keep_their_locals_apart(tmp_path: Path) -> None:
    path = str(project(tmp_path) / "model.py")
    broken = run(path)[1]
    assert isinstance(broken, events.Break)
    known = tuple(events.Known(path, "forward", {name: {"type": "int"}}) for name in ("outer", "inner"))
    collector = Collector(tmp_path)
    text = broken.text.replace("in helper", "in forward")
    collector.add([run(path)[0], broken._replace(text=text, known=known)])
    found = collector.trace("train.py")
    assert [(each.place.line, each.facts[0].name) for each in found.known] == [(13, "outer")]
    assert [fact.name for fact in found.sites[0].facts] == ["inner"]


def given_up(folder: Path, **changes: object) -> list[tuple[str, int, str]]:
    """Functions without a graph of a run that ends with a compilation like its first one, but for `changes`."""
    told = run(str(folder / "model.py"))
    last = next(each for each in told if isinstance(each, events.Compiled))
    collector = Collector(folder)
    collector.add([*told, last._replace(operations=None, **changes)])  # type: ignore[arg-type]
    return [(each.place.path, each.place.line, each.reason) for each in collector.trace("train.py").skipped]


def test_function_that_reached_the_limit_of_compilations_is_named(tmp_path: Path) -> None:
    limit = "Dynamo recompile limit exceeded\n  Explanation: too often"
    folder = project(tmp_path)
    nothing = {"path": "", "line": 0, "function": "", "compilation": 8, "failed": limit}
    words = "Dynamo recompile limit exceeded (8 compilations): calls that none of its graphs fits run in eager mode"
    assert given_up(folder, **nothing) == [("model.py", 12, words)]


def test_reason_that_only_announces_another_line_goes_on(tmp_path: Path) -> None:
    failed = "BackendCompilerFailed: backend='mine' raised:\nValueError: no such device\nmore"
    (found,) = given_up(project(tmp_path), failed=failed)
    assert found[2] == "BackendCompilerFailed: backend='mine' raised: ValueError: no such device"


def test_time_between_graphs_belongs_to_the_break_that_parted_them(tmp_path: Path) -> None:
    found = traced(project(tmp_path))
    branch, printed = found.sites
    assert (branch.gaps, branch.gap_seconds, branch.syncs) == (14, 0.375, 10)
    assert (printed.gaps, printed.gap_seconds, printed.syncs) == (10, 0.5, 0)
    assert found.totals.gap_seconds == 0.875


def test_two_processes_at_one_site_are_one_site(tmp_path: Path) -> None:
    collector = Collector(project(tmp_path))
    for _ in range(2):
        collector.add(run(str(tmp_path / "model.py")))
    found = collector.trace("torchrun")
    assert [(site.events, site.processes) for site in found.sites] == [(4, 2), (2, 2)]
    assert len(found.processes) == 2


def test_site_is_known_again_when_lines_above_come_and_go(tmp_path: Path) -> None:
    first = traced(project(tmp_path))
    moved = tmp_path / "moved"
    moved.mkdir()
    project(moved)
    collector = Collector(moved)
    shifted = [
        event._replace(text=event.text.replace("line 6,", "line 9,")) if isinstance(event, events.Break) else event
        for event in run(str(moved / "model.py"))
    ]
    collector.add(shifted)
    assert collector.trace("").sites[0].id == first.sites[0].id


def test_statement_that_stands_twice_in_a_function_is_two_sites(tmp_path: Path) -> None:
    path = str(project(tmp_path) / "model.py")
    with (tmp_path / "model.py").open("a") as file:
        file.write('        print("done")\n')
    first = run(path)[6]
    assert isinstance(first, events.Break)
    second = first._replace(frame=4, text=first.text.replace("line 14", "line 16"))
    collector = Collector(tmp_path)
    collector.add([run(path)[0], first, second])
    before, after = Collector(tmp_path), collector.trace("train.py")
    before.add([run(path)[0], first])
    baseline.write(tmp_path / "breaks.json", before.trace("train.py"))
    compared = baseline.compare(baseline.read(tmp_path / "breaks.json"), after)
    assert [site.place.line for site in after.sites] == [14, 16]
    assert [site.place.line for site in compared.sites] == [16]


def test_break_in_code_that_is_in_no_file_is_a_site(tmp_path: Path) -> None:
    collector = Collector(project(tmp_path))
    collector.add([run()[0], events.Break(0, 0, branch("<string>"), ())])
    assert [(site.place.path, site.place.line) for site in collector.trace("python").sites] == [("<string>", 6)]


def test_trace_without_source_holds_none(tmp_path: Path) -> None:
    text = document.as_json(traced(project(tmp_path), source=False))
    assert "x.sum()" not in text
    assert "helper(x + 1)" not in text


def test_trace_holds_no_path_of_this_machine(tmp_path: Path) -> None:
    assert str(tmp_path) not in document.as_json(traced(project(tmp_path)))


def test_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = traced(project(tmp_path))
    (tmp_path / "trace.json").write_text(document.as_json(found))
    assert document.read(tmp_path / "trace.json") == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a trace"),
        ("{}", "it has no schema; record one with `graphmend trace`"),
        ('{"schema": 99}', "has schema 99, and this graphmend reads 1"),
        ('{"schema": 1}', "is not a whole trace: .*; record it again"),
    ],
)
def test_file_that_is_no_trace_is_named_with_the_way_out(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=message):
        document.read(path)


def test_number_of_the_wrong_kind_is_refused(tmp_path: Path) -> None:
    data = json.loads(document.as_json(traced(project(tmp_path))))
    data["sites"][0]["events"] = "many"
    (tmp_path / "trace.json").write_text(json.dumps(data))
    with pytest.raises(TraceError, match="events must be int"):
        document.read(tmp_path / "trace.json")
