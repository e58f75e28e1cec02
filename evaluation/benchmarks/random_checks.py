"""One random program through `fix`: eager mode is as it was, and compiled code no worse than the original."""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.random_grammar import RandomProgram, generate

EAGER, COMPILED, NOT_OURS = "eager", "compiled", "torch's own"
_LOST = f"{COMPILED} exception of torch lost"
_REFUSED = f"{COMPILED} gradient refused"
_NOTED = ("break at a line of a fix", "more breaks", "more graphs", _LOST, _REFUSED)
"""No faults by themselves: costs, what torch raises in eager mode for something that nothing uses, and a write in place
for which AOTAutograd, which prepares the gradient of all that a graph returns, refuses one that nobody asks for."""
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
        """Differences that no page tells of, but for those that are noted."""
        return [
            one for one in self.differences if not (one.page or one.kind.startswith(NOT_OURS) or one.kind in _NOTED)
        ]

    @property
    def noted(self) -> list[Difference]:
        """More breaks or graphs than before, or as many, one at a new line; exceptions of torch that are lost."""
        return [one for one in self.differences if one.kind in _NOTED]


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
    for scenario, backend in _scenarios(program, fixed.text, how):
        verdict.differences += _compare(verdict, scenario, backend)
    return verdict


def _scenarios(program: RandomProgram, after: str, how: How) -> Iterator[tuple[Any, str]]:
    """With gradients, and without them each third program, and what asks for them: that is what takes the time."""
    from tests.tools.observe import Scenario

    leaf = "leaves" if program.seed % 5 == 0 else "inner"
    if program.seed % 3 == 0 or "is_grad_enabled()" in after:
        yield Scenario(gradients="off"), "" if how.backend == "aot_eager" else how.backend
    yield Scenario(training=program.seed % 2 == 0, gradients=leaf), how.backend


def _compare(verdict: Verdict, scenario: Any, backend: str) -> Iterator[Difference]:
    """What differs in eager mode, compiled, and in graph breaks, in one scenario."""
    from tests.tools import behaviour
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
        run = partial(_compiled, inputs=program.inputs, scenario=scenario, dynamic=dynamic)
        got, counts = run(new, backend=backend)
        where = f"{scenario}, {backend or 'dynamo'}, dynamic={dynamic}"
        yield from _compiled_calls(
            verdict, want, got, where, lambda: run(old, backend=backend), lambda: run(new, backend="")
        )
        if counts is not None and program.seed % _COUNTED == 0 and scenario.gradients != "off":
            yield from _breaks(verdict, counts, run(old, backend=backend)[1])
    finally:
        forget(old)
        forget(new)


def _compiled_calls(
    verdict: Verdict, want: list[Any], got: list[Any], way: str, before: Callable[[], Any], plain: Callable[[], Any]
) -> Iterator[Difference]:
    """What differs call by call; `before` compiles the original, which is asked where something does."""
    from tests.tools import compiled

    original = cache(before)
    for number, (wanted, given) in enumerate(zip(want, got, strict=True), 1):
        where = f"{way}, call {number}"
        found = [(compiled_kind(text, where), text) for text in compiled.compared(wanted, given, where, state=True)]
        said, says = ([event.what for event in each.events] for each in (wanted, given))
        if said != says and not found:
            found.append(("messages", f"{where}: messages {said!s:.300} became {says!s:.300}"))
        if found:
            was = original()[0][number - 1]
            yield from _explained(found, (wanted, was), where, verdict, partial(_of_call, plain, number - 1))


def _of_call(run: Callable[[], Any], place: int) -> Any:
    return run()[0][place]


def compiled_kind(text: str, where: str) -> str:
    """What differs: `outcome`, `gradients`, `state`, `inputs`, or an exception that was lost or added."""
    from tests.tools.pages import kind_of

    return kind_of(text, where)


def _explained(
    found: Sequence[tuple[str, str]],
    calls: tuple[Any, Any],
    where: str,
    verdict: Verdict,
    plain: Callable[[], Any],
) -> Iterator[Difference]:
    """The differences of one call: torch's own where the original compiled has one, or with the sentence of a page.

    AOTAutograd sends zeros back for results of a graph that nothing asks a gradient of, and zero times inf is nan. So a
    gradient that becomes nan has to do so where the graphs run as they are as well, which is what `plain` gives.
    """
    from tests.tools import compiled
    from tests.tools.pages import sentence

    wanted, was = calls
    if wanted.gradients is not None and wanted.gradients[:1] == ("raised",):
        # Compiled code raises that earlier, while it is compiled, or copies what eager mode would write into.
        found = [(kind, text) for kind, text in found if kind not in ("exception added", "gradients")]
    already = {compiled_kind(text, where) for text in compiled.compared(wanted, was, where, state=True)}
    if [event.what for event in was.events] != [event.what for event in wanted.events]:
        already.add("messages")
    for kind, text in found[:3]:
        if kind == "gradients" and "nan" in text.partition("became")[2]:
            again = [*compiled.compared(wanted, plain(), where, state=True)]
            already |= set() if any(compiled_kind(each, where) == kind for each in again) else {kind}
        if kind in already:
            yield Difference(f"{NOT_OURS}, {kind}", text)
        elif kind == "exception lost" and wanted.outcome[1][1][:8] not in verdict.program.text:
            yield Difference(_LOST, text)
        elif kind == "exception added" and "modified by an inplace operation" in text:
            yield Difference(_REFUSED, text)
        else:
            yield Difference(f"{COMPILED} {kind}", text, sentence(kind, verdict.applied, text))


def _compiled(
    source: Any, *, inputs: Sequence[str], scenario: Any, backend: str, dynamic: bool | None
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


def _breaks(verdict: Verdict, new: Any, was: Any) -> Iterator[Difference]:
    """More breaks or graphs than before, but where Dynamo left all to Python; or a break at a line that is new."""
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
    for one in (*verdict.faults, *verdict.noted):
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
