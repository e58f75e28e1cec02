"""One random program through `fix`: eager mode is as it was, and compiled code no worse than the original."""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.random_grammar import RandomProgram, generate

EAGER, COMPILED, NOT_OURS = "eager", "compiled", "torch's own"
_COSTS = ("break at a line of a fix", "more breaks", "more graphs")
_COUNTED = 4
"""Breaks of every fourth program are counted: for that the original has to be compiled, too."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not as before: `kind` says what, `page` is the sentence of a rule's page that tells of it."""

    kind: str
    text: str
    page: str = ""


@dataclass
class Verdict:
    """What became of one program."""

    program: RandomProgram
    after: str = ""
    applied: Counter[str] = field(default_factory=Counter)
    ran: bool = True
    differences: list[Difference] = field(default_factory=list)
    breaks: tuple[int, int] | None = None

    @property
    def changed(self) -> bool:
        """True when a fix was applied."""
        return self.after != self.program.text

    @property
    def faults(self) -> list[Difference]:
        """Differences that no page tells of, but for costs."""
        return [
            one for one in self.differences if not (one.page or one.kind.startswith(NOT_OURS) or one.kind in _COSTS)
        ]

    @property
    def costs(self) -> list[Difference]:
        """More breaks or graphs than before, or as many, of which one is where a fix wrote something."""
        return [one for one in self.differences if one.kind in _COSTS]


@dataclass(frozen=True)
class How:
    """How programs are fixed and run."""

    opaque: bool = False
    backend: str = "aot_eager"
    rules: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    breaks: bool = True


def judge(seed: int, how: How) -> Verdict:
    """The program with this number: fixed, run, and compared."""
    return judged(generate(seed, how.families), how)


def judged(program: RandomProgram, how: How) -> Verdict:
    """A program: fixed, run, and compared."""
    from tests.property.cases import fix

    verdict = Verdict(program, program.text)
    try:
        fixed = fix(program.text, opaque=how.opaque)
    except Exception as error:  # whatever it is, it is ours
        verdict.differences.append(Difference("crash of graphmend", f"{type(error).__name__}: {error}"))
        return verdict
    verdict.differences += [Difference("crash of graphmend", text) for text in fixed.problems]
    verdict.after, verdict.applied = fixed.text, Counter(fixed.applied)
    if not verdict.changed or (how.rules and not set(how.rules) & {*fixed.applied}):
        return verdict
    if fix(fixed.text, opaque=how.opaque).text != fixed.text:
        verdict.differences.append(Difference("fixing again changes it", str(dict(fixed.applied))))
    for scenario, backend in _scenarios(program, how):
        verdict.differences += _compare(verdict, scenario, backend)
    return verdict


def _scenarios(program: RandomProgram, how: How) -> Iterator[tuple[Any, str]]:
    """With gradients, and every third program without them as well: that is what takes the time."""
    from tests.tools.observe import Scenario

    leaf = "leaves" if program.seed % 5 == 0 else "inner"
    if program.seed % 3 == 0:
        yield Scenario(gradients="off"), "" if how.backend == "aot_eager" else how.backend
    yield Scenario(training=program.seed % 2 == 0, gradients=leaf), how.backend


def _compare(verdict: Verdict, scenario: Any, backend: str) -> Iterator[Difference]:
    from tests.tools import behaviour, compiled
    from tests.tools.observe import observe
    from tests.tools.subject import forget, register

    program = verdict.program
    old, new = register(program.text), register(verdict.after)
    dynamic = True if program.seed % 7 == 0 else None if program.seed % 7 == 1 else False
    try:
        want = observe(old, "Model", program.inputs, scenario)
        have = observe(new, "Model", program.inputs, scenario)
        verdict.ran = verdict.ran and any(call.outcome[0] == "returned" for call in want)
        for number, pair in enumerate(zip(want, have, strict=True), 1):
            for text in behaviour.compared(*pair, f"{scenario}, call {number}"):
                yield Difference(f"{EAGER} {_kind(text)}", text)
        got, counts = _compiled(new, program.inputs, scenario, backend, dynamic)
        was: list[Any] | None = None
        for number, (wanted, given) in enumerate(zip(want, got, strict=True), 1):
            where = f"{scenario}, {backend or 'dynamo'}, dynamic={dynamic}, call {number}"
            found = [(compiled_kind(text, where), text) for text in compiled.compared(wanted, given, where, state=True)]
            said, says = ([event.what for event in each.events] for each in (wanted, given))
            if said != says and not found:
                found.append(("messages", f"{where}: messages {said!s:.300} became {says!s:.300}"))
            if not found:
                continue
            if was is None:
                was, _ = _compiled(old, program.inputs, scenario, backend, dynamic)
            yield from _explained(found, wanted, was[number - 1], where, verdict)
        if counts is not None and program.seed % _COUNTED == 0 and scenario.gradients != "off":
            yield from _breaks(verdict, old, scenario, counts, backend, dynamic)
    finally:
        forget(old)
        forget(new)


def compiled_kind(text: str, where: str) -> str:
    """What differs: `outcome`, `gradients`, `state`, `inputs`, or an exception that was lost or added."""
    from tests.tools.pages import kind_of

    return kind_of(text, where)


def _explained(
    found: Sequence[tuple[str, str]], wanted: Any, was: Any, where: str, verdict: Verdict
) -> Iterator[Difference]:
    """The differences of one call: torch's own where the original compiled has one, or with the sentence of a page."""
    from tests.tools import compiled
    from tests.tools.pages import sentence

    already = {compiled_kind(text, where) for text in compiled.compared(wanted, was, where, state=True)}
    if [event.what for event in was.events] != [event.what for event in wanted.events]:
        already.add("messages")
    odd = any("nan" in given or "inf" in given for given in verdict.program.inputs)
    for kind, text in found[:3]:
        if kind in already or (odd and kind == "gradients" and _zeros_through_nan(text)):
            yield Difference(f"{NOT_OURS}, {kind}", text)
        else:
            yield Difference(f"{COMPILED} {kind}", text, sentence(kind, verdict.applied, text))


def _zeros_through_nan(text: str) -> bool:
    """True for a gradient of what nothing asks for: AOTAutograd sends zeros there, and zero times inf is nan."""
    return "no gradient became" in text and "nan" in text.partition("became")[2]


def _compiled(
    source: Any, inputs: Sequence[str], scenario: Any, backend: str, dynamic: bool | None
) -> tuple[list[Any], Any]:
    """What each call gives compiled, and what was counted after the first that returned."""
    from graphmend_evaluation.counting import BreakRecorder
    from tests.tools import compiled
    from tests.tools.observe import observe

    recorder = BreakRecorder(Path(source.filename).parent)
    first: list[Any] = []
    with compiled.clean_dynamo(), recorder.recording(len(inputs) * 2):
        got = observe(source, "Model", inputs, scenario, _wrapping(recorder, backend, dynamic, first))
    return got, first[0] if first else None


def _wrapping(recorder: Any, backend: str, dynamic: bool | None, first: list[Any]) -> Callable[[Any], Any]:
    import torch

    def counted(graph: Any, inputs: Any) -> Any:
        recorder.backend(graph, inputs)
        return torch._dynamo.lookup_backend(backend)(graph, list(inputs)) if backend else graph.forward

    def wrap(made: Any) -> Any:
        called: Any = torch.compile(made, backend=counted, dynamic=dynamic)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = called(*args, **kwargs)
            if not first:
                first.append(recorder.counts())
            return result

        return call

    return wrap


def _breaks(
    verdict: Verdict, old: Any, scenario: Any, new: Any, backend: str, dynamic: bool | None
) -> Iterator[Difference]:
    """More breaks or graphs than before, but where Dynamo left all to Python; or a break at a line that is new."""
    _, was = _compiled(old, verdict.program.inputs, scenario, backend, dynamic)
    if was is None:
        return
    had, has = (each.break_events + len(each.skipped_frames) for each in (was, new))
    verdict.breaks = (had, has)
    sites = "; ".join(f"{site.line} {site.source}: {site.kind}" for site in new.sites)[:400]
    if had < has and was.graphs:
        yield Difference("more breaks", f"{had} to {has}, graphs {was.graphs} to {new.graphs}: {sites}")
    elif 0 < had == has and new.graphs > was.graphs > 0:
        yield Difference("more graphs", f"breaks {had}, graphs {was.graphs} to {new.graphs}: {sites}")
    elif had == has and any(_is_new(site, verdict.program.text) for site in new.sites):
        yield Difference("break at a line of a fix", sites)


def _is_new(site: Any, before: str) -> bool:
    """True for a line of the module that the original does not have."""
    known = {line.strip().removeprefix("el") for line in before.splitlines()}
    return site.path.endswith("subject.py") and bool(site.source) and site.source.removeprefix("el") not in known


def _kind(text: str) -> str:
    """`outcome`, `messages`, `state`, `gradients` and so on."""
    return re.split(r"[.:]", text.partition("call ")[2].partition(": ")[2])[0]


def described(verdict: Verdict, most: int = 4) -> str:
    """A program with what differs, each kind once, and its functions before and after."""
    lines = [f"seed {verdict.program.seed} [{' '.join(sorted(verdict.applied))}] {' '.join(verdict.program.families)}"]
    kinds: set[str] = set()
    for one in (*verdict.faults, *verdict.costs):
        if one.kind not in kinds and len(kinds) < most:
            kinds.add(one.kind)
            lines.append(f"  {one.kind}: {one.text[:600]}")
    if not verdict.faults:
        return "\n".join(lines)
    diff = difflib.unified_diff(_functions(verdict.program.text), _functions(verdict.after), lineterm="", n=40)
    lines += [f"    {line}" for line in itertools.islice(diff, 3, None) if not line.startswith("@@")]
    lines.append(f"    inputs: {list(verdict.program.inputs)}")
    return "\n".join(lines)


def _functions(text: str) -> list[str]:
    """The lines from the first function that differs from program to program on, without constructors."""
    lines = text[max(text.find("def mix"), text.find("class Part"), 0) :].splitlines()
    boring = re.compile(
        r"\s+(super\(\)|self\.(\w+(, self\.\w+)* =|register_buffer\(.(s|seen).,)|def __init__)|class |$"
    )
    return [line for line in lines if not boring.match(line)]
