"""docs/cost.md: every number on it comes from the records."""

from __future__ import annotations

import importlib.metadata
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from benchmarks.cost_cases import BACKWARD, EXPERTS, FORWARD, IN_BLOCK, RULES, TYPES, expert_cases
from benchmarks.cost_runs import Record

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.registry import all_rules

_Rows = Callable[[Sequence[Record]], Iterable[Sequence[str]]]

STEADY, COLD, COLD_OUTLINED, BACKWARD_OUTLINED = 1.05, 1.10, 1.35, 1.70
_HEAD = """\
# What a fix costs compiled code

Written by `make bench-cost` (`evaluation/benchmarks/cost.py`); do not edit. The numbers of each run are in
`{results}`.
"""
_HOW = f"""\
*Before* is the source as it is, *after* the source fixed by graphmend in a copy. Both run side by side in child
processes, asked in turn, with Inductor and one torch thread. *Cold* is CPU seconds (user and system, the C++ compiler's
too) of all calls until one compiles nothing more, with an empty cache; *steady* CPU seconds of one call, the median of
interleaved blocks. Ratios are after / before, taken within a pair: below 1 the fix saves time. *Memory* is what a call
takes at most beside what the process holds. On a GPU the steady state is timed by events, and cold starts by the wall
clock.

A safe fix has to keep, forward: steady {STEADY:.2f}, cold {COLD:.2f}, or {COLD_OUTLINED:.2f} where a region becomes one
operator; such a region's forward is computed again for gradients, and forward and backward together have to keep
{BACKWARD_OUTLINED:.2f}. A steady state counts as missed when three quarters of its pairs are above the target: less is
noise. Unsafe fixes and opaque operators have no target; they are measured so that whoever asks for one knows its
price.
"""


def judged(records: Sequence[Record]) -> list[Record]:
    """The records that targets hold for: a case that was measured in a block too counts there, not alone."""
    done = [each for each in records if each.phase.endswith(IN_BLOCK) and not each.error]
    blocks = {(each.case, each.phase, each.device) for each in done}
    return [each for each in records if (each.case, each.phase + IN_BLOCK, each.device) not in blocks]


def misses(record: Record) -> tuple[str, ...]:
    """The targets that a safe fix does not keep here."""
    if record.error or record.unsafe or not record.steady:
        return ()
    slowest = _lower_quartile(record.steady)
    if BACKWARD in record.phase:
        return (f"steady {_times(record.steady_ratio)}",) if record.outlined and slowest > BACKWARD_OUTLINED else ()
    found = []
    if slowest > STEADY:
        found.append(f"steady {_times(record.steady_ratio)}")
    if (record.cold_ratio or 0) > (COLD_OUTLINED if record.outlined else COLD):
        found.append(f"cold {_times(record.cold_ratio)}")
    return tuple(found)


def line(record: Record) -> str:
    """For a person who waits."""
    name = f"{record.case}, {record.phase}" + (f", {' '.join(record.select)}" if record.select else "")
    if record.error:
        return f"{name}: {record.error}"
    if not record.gradients:
        return f"{name}: no gradients"
    return (
        f"{name}: cold {_arrow(record.cold, 's')} ({_times(record.cold_ratio)}), "
        f"steady {_milliseconds(record.steady)} ({_times(record.steady_ratio)}), graphs {record.graphs[0]} -> "
        f"{record.graphs[1]}" + "".join(f"; MISSES {each}" for each in misses(record))
    )


def versions() -> dict[str, str]:
    """Of what is measured with."""
    found = {}
    for name in ("torch", "transformers"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def render(records: Sequence[Record], about: Mapping[str, str], results: str) -> str:
    """The page."""
    return "\n".join([_HEAD.format(results=results), *_sections(records, about)]).rstrip("\n") + "\n"


def _sections(records: Sequence[Record], about: Mapping[str, str]) -> Iterator[str]:
    plain = [record for record in records if not record.select]
    measured = [record for record in plain if record.steady]
    counted = judged(measured)
    missed = [record for record in counted if misses(record)]
    kept = [record for record in counted if not record.unsafe]
    if not measured:
        yield "**Nothing is measured yet.**"
    elif missed:
        yield f"**{len(missed)} of {len(kept)} measurements of safe fixes miss a target:**"
        yield ""
        yield from (f"- {each.case}, {each.phase}: {', '.join(misses(each))}{_why(each, plain)}" for each in missed)
    else:
        yield f"**All {len(kept)} measurements of safe fixes keep their targets.**"
    dates = sorted(record.date for record in records)
    loads = [record.load for record in records]
    if dates:
        said = ", ".join(f"{name} {about[name]}" for name in ("torch", "transformers", "python") if name in about)
        busy = f"load average {min(loads):.1f} to {max(loads):.1f}"
        yield f"\n{said}; {about['machine']}; {dates[0]} to {dates[-1]}, {busy}."
    yield ""
    yield _HOW
    yield from _group(measured, EXPERTS, "Expert blocks", _EXPERTS_HOW, _expert_rows)
    yield from _group(measured, RULES, "Rules", _RULES_HOW, _rule_rows)
    yield from _group(measured, TYPES, "Model types", _TYPES_HOW, _type_rows)
    yield from _losers(records)
    yield from _unsafe(records)
    yield from _not_measured(plain)


def _why(missed: Record, records: Sequence[Record]) -> str:
    """What a reader must know of a miss: a cold start where nothing was compiled before is that of the code around."""
    alone = [each for each in records if each.case == missed.case and each.phase == missed.phase.removesuffix(IN_BLOCK)]
    nothing = any(each.steady and each.graphs[0] == 0 for each in alone)
    if missed.case.startswith(f"{EXPERTS}/") and "1 token" in missed.phase:
        return " (a break in the loop left the router in eager mode before; now it is compiled, once, about a second)"
    return " (the example runs in eager mode before: nothing of it is compiled)" if nothing else ""


_EXPERTS_HOW = (
    "Blocks of transformers with random weights, hidden size 256, 8 to 32 experts; their sizes are in "
    "`evaluation/benchmarks/cost_cases.py`. One that misses a target alone is measured *in a block* as well, and "
    "judged by that: with the feed-forward layer of a transformer behind it (linear, GELU, linear). Alone, it "
    "shows that the router is compiled, too: a break in a loop kept Dynamo from compiling the function that holds"
    " it. With one token there is little else to compile: before, one graph for an expert; with prefill, each "
    "number of rows compiled it again, and the ratio is below 1. A model has both, and layers around them: all of"
    " a small Jamba has a cold ratio of 1.05 and a steady one of 0.84. So the fix stays a safe one, although its "
    "block alone misses the target here."
)
_RULES_HOW = (
    "The first example of each rule's page, at realistic sizes: what such a statement takes alone, where one kernel of "
    "some microseconds is compared with guards and calls. One that misses a target alone is measured *in a block* as "
    "well, and judged by that: with a feed-forward layer behind it, less than a model has around such a statement. "
    "Alone, a fix shows what it computes for both arms, and what it compiles where a break kept Dynamo from compiling "
    "the function at all (0 graphs before)."
)
_TYPES_HOW = (
    "Small models of the survey, all their calls: types whose files a fix changes, or whose graphs it changed there."
)
_HEADINGS = ("case", "rules", "graphs", "cold, CPU s", "ratio", "steady", "ratio", "memory", "")


def _group(
    records: Sequence[Record],
    group: str,
    title: str,
    how: str,
    rows: Callable[[Sequence[Record]], Iterable[Sequence[str]]],
) -> Iterator[str]:
    own = [record for record in records if record.case.startswith(f"{group}/")]
    if not own:
        return
    yield from (f"## {title}", "", how, "")
    yield from _table(_HEADINGS, rows(own))
    yield ""


def _expert_rows(records: Sequence[Record]) -> Iterator[Sequence[str]]:
    counted = judged(records)
    for record in records:
        cells = list(_row(f"{_name(record)}, {record.phase}", record))
        cells[-1] = _alone(cells[-1]) if record not in counted else cells[-1]
        yield cells


def _alone(remarks: str) -> str:
    return remarks.replace("**misses ", "**alone ")


def _rule_rows(records: Sequence[Record]) -> Iterator[Sequence[str]]:
    costs = {rule.code: rule.contract.cost.value for rule in all_rules()}
    counted = judged(records)
    for record in records:
        what = {FORWARD: "", BACKWARD: ", with backward"}.get(record.phase, IN_BLOCK)
        cells = list(_row(f"{_name(record)}{what}", record))
        cells[1] = costs.get(_name(record), "")
        cells[-1] = _alone(cells[-1]) if record not in counted else cells[-1]
        if record.own_sizes:
            cells[-1] = "; ".join(filter(None, (cells[-1], "sizes of the page")))
        yield cells


def _type_rows(records: Sequence[Record]) -> Iterator[Sequence[str]]:
    for record in records:
        yield _row(_name(record), record)


def _row(name: str, record: Record) -> Sequence[str]:
    remarks = [f"**misses {each}**" for each in misses(record)]
    opaque = {rule.code for rule in all_rules() if rule.safety is Safety.OPAQUE}.intersection(record.unsafe)
    unsafe = sorted(set(record.unsafe) - opaque)
    remarks += [f"unsafe: {', '.join(unsafe)}"] if unsafe else []
    remarks += [f"asked for with `--opaque`: {', '.join(sorted(opaque))}"] if opaque else []
    remarks += ["one operator"] if record.outlined else []
    return (
        name,
        ", ".join(record.rules),
        f"{record.graphs[0]} -> {record.graphs[1]}",
        _arrow(record.cold, ""),
        _times(record.cold_ratio),
        _milliseconds(record.steady),
        _times(record.steady_ratio),
        _bytes(record.memory),
        "; ".join(remarks),
    )


def _losers(records: Sequence[Record]) -> Iterator[str]:
    """Types that miss a target, and what each rule alone does to them."""
    single = [record for record in records if len(record.select) == 1 and record.select[0].startswith("GM")]
    if not single:
        return
    yield from ("## Types that lose, one rule at a time", "")
    yield from _table(
        _HEADINGS, (_row(f"{_name(each)}, {each.select[0]} alone", each) for each in single if each.steady)
    )
    yield ""


def _unsafe(records: Sequence[Record]) -> Iterator[str]:
    """Measured with `--unsafe-fixes`."""
    asked = [record for record in records if record.select[:1] == ("--unsafe-fixes",) and record.steady]
    if not asked:
        return
    yield from ("## With unsafe fixes", "")
    yield from _table(
        _HEADINGS,
        (
            _row(", ".join([f"{_name(each)}, {each.phase}", *(f"{code} alone" for code in each.select[1:])]), each)
            for each in asked
        ),
    )
    yield ""


_EAGER = """\
## Eager mode

A header asks `torch.compiler.is_compiling()` at each call: 90 ns. In the first examples of 30 safe rules, with tensors
of a few elements and without gradients, a call takes 0.2 microseconds more (the median; 1.6%), 2.5 for GM604, at most
0.5 for all others, and below 5% in each (the least of 40 interleaved blocks of 60 calls, CPU seconds of one process,
torch 2.13, 2026-11-30, on a machine that others used). Where a statement does more it is the same time: 0.3% of
GM502's loop.
"""

_RECORDED = """\
## Operators of recorded runs

Measured with Inductor, 2026-11-30, torch 2.13, 2 cores that others used (CPU seconds, the median of 7 interleaved
pairs of blocks, load average 5; after `graphmend trace --calls` and `fix --opaque --trace`). In brackets what it was
before operators kept what autograd knows of a call and checked it in fewer steps, measured earlier on that day.

| module | graphs | forward | forward and backward | cold, forward |
|---|---:|---:|---:|---:|
| a loop of 8 small steps | 1 -> 1 | 0.34 -> 0.48 ms, 1.39 (1.64) | 1.21 -> 1.64 ms, 1.37 (1.69) | 1.51 |
| tokens looked up in a dict of Python | 2 -> 1 | 0.14 -> 0.23 ms, 1.78 (2.12) | 0.73 -> 0.83 ms, 1.02 (1.57) | 0.81 |
| a mean of 16 lengths, without a run | 2 -> 1 | 0.35 -> 0.60 ms, 1.69 (2.18) | 1.23 -> 2.34 ms, 1.99 (2.58) | 0.44 |
| a queue that is written, without a run | 4 -> 1 | 0.16 -> 0.36 ms, 2.21 (2.38) | | 0.83 |

Not measured again since then: Sinkhorn steps 0.32 -> 0.46 and 1.35 -> 1.73 ms, torchdiffeq (`rk4`, 4 steps) 1.31 ->
1.79 and 4.20 -> 5.40 ms, torchsde (`euler`, 4 steps) 5.57 -> 2.31 and 5.58 -> 4.34 ms.

Old and new operators against each other: an `nn.LSTM` of 128 units (8 x 32 steps, `fix --opaque`) 13.9 -> 6.5 ms
forward and backward, 1.9 -> 2.2 ms forward (1.06, within the noise). A loop over 8 experts (256 rows, width 256, a
safe fix) takes 9.1 -> 9.2 ms forward (1.01) and 27.5 -> 28.4 ms forward and backward (1.05) beside the unfixed code.

Around a product of 32 x 64 numbers, in microseconds (the least of 9 blocks; a module without the operator takes 16,
and 34 where a gradient is needed; one whose graph breaks there 35 and 58):

| a call | before | now |
|---|---:|---:|
| a function's operator, without gradients | 72 | 39 |
| the same, forward and backward | 501 | 364 |
| a recorded operator, without gradients | 79 | 48 |
| one that may need a gradient, without gradients | 76 | 56 |
| the same, forward and backward | 477 | 374 |
| one of a module's layers, without gradients | 55 | 44 |
| the same, forward and backward | 610 | 425 |

Parts of that, in microseconds, each measured alone in such a module: torch's dispatcher with a function of Python 6,
lists of tensors 1.5, six arguments 4, an argument that is counted up 5 (2 now, for one that only counts as written),
torch's own autograd key 6.5, `torch.compiler.disable` made at each call 8 and kept 4.5 (none now), a context for
autocast that changes nothing 6.5 (none now). What a recorded operator compares took 30: attributes and buffers 6,
memory 6.5, results of one memory 5, the rest is sizes, forms and what goes in. For a gradient: a token 4.5, autograd
switched on 6, the random state 1.6. Dynamo's tree of guards has 68 lines, 30 of them without the operator. Neither
the nested run of autograd nor the walk that looks for leaves was measured apart.

So an operator is still slower than the break where its statement takes less than a millisecond. The mean of lengths
is slower for another reason, too: behind `lengths.tolist()` Dynamo compiles the loop, with the lengths as symbols,
and Inductor makes one kernel of it; the operator runs it as eager mode does.
"""


def _not_measured(records: Sequence[Record]) -> Iterator[str]:
    yield from (_EAGER, _RECORDED, "## Not measured", "")
    names = {record.case for record in records}
    for group, what in ((EXPERTS, "expert blocks"), (RULES, "the rules' examples"), (TYPES, "model types")):
        if not any(name.startswith(f"{group}/") for name in names):
            yield f"- {what}: `cost.py --{group}` was not run."
    if not any(record.device == "cuda" for record in records):
        yield "- GPUs: none was at hand."
    yield from (f"- {each.case}, {each.phase}: {each.error}" for each in records if each.error)
    without = sorted({_name(each) for each in records if not each.gradients})
    if without:
        yield f"- With backward: {', '.join(without)} (what they return has no gradient)."
    known = {_name(record) for record in records if record.case.startswith(f"{RULES}/")}
    edits = {rule.code for rule in all_rules() if rule.safety is not Safety.ADVICE}
    if known and edits - known:
        yield f"- Rules, for want of time: {', '.join(sorted(edits - known))}."
    phases = {(record.case, record.phase) for record in records}
    every = [(case.id, phase.name) for case in expert_cases(None) for phase in case.phases if not phase.block]
    left = sorted({phase for case, phase in every if (case, phase) not in phases})
    if left and any(case.startswith(f"{EXPERTS}/") for case, _ in phases):
        yield f"- Expert blocks, not all of them with {'; '.join(left)}."
    types = {_name(record) for record in records if record.case.startswith(f"{TYPES}/")}
    if types:
        yield f"- Model types other than {', '.join(sorted(types))}, of those that fixes change."


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * 2}{'---:|' * (len(headings) - 3)}---|"
    yield from (f"| {' | '.join(cells)} |" for cells in rows)


def _name(record: Record) -> str:
    return record.case.partition("/")[2]


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _arrow(pairs: Sequence[tuple[float, float]], unit: str) -> str:
    before, after = (statistics.median(pair[arm] for pair in pairs) for arm in (0, 1))
    return f"{before:.1f} -> {after:.1f}{f' {unit}' if unit else ''}"


def _milliseconds(pairs: Sequence[tuple[float, float]]) -> str:
    before, after = (statistics.median(pair[arm] for pair in pairs) * 1000 for arm in (0, 1))
    digits = 1 if min(before, after) >= 1 else 3
    return f"{before:.{digits}f} -> {after:.{digits}f} ms"


def _bytes(memory: tuple[int | None, int | None]) -> str:
    before, after = memory
    if before is None or after is None:
        return ""
    return f"{before / 2**20:.1f} -> {after / 2**20:.1f} MiB"


def _lower_quartile(pairs: Sequence[tuple[float, float]]) -> float:
    ratios = sorted(after / before for before, after in pairs)
    return ratios[len(ratios) // 4]
