"""Rules for people and programs: a page each, from what the rule itself says."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from graphmend_codemod.core.colour import Paint
from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.examples import Clean, Declined, Example, module_text
from graphmend_codemod.rules.framework.rule import Cost, Rule

FAMILIES = {
    "1": "control flow",
    "2": "side effects",
    "3": "validation",
    "4": "tensor-to-Python values",
    "5": "dynamic shapes",
    "6": "Python constructs",
    "7": "compile-site settings",
    "8": "opaque operators",
}

_SAFETY = {
    Safety.SAFE: "safe fix: `graphmend fix` applies it",
    Safety.UNSAFE: "unsafe fix: applied only with `--unsafe-fixes`",
    Safety.OPAQUE: "opaque operator: applied only with `--opaque`",
    Safety.ADVICE: "advice: nothing is edited",
}

COSTS = {
    Cost.NONE: "nothing",
    Cost.BOTH_ARMS: "it computes or compiles what the test would have skipped: elementwise work, or one more branch",
    Cost.MULTIPLIED: "it does the work of the selected rows for all rows; never a safe fix",
    Cost.OUTLINED: "a region runs as one operator, which the compiler does not look into; "
    "where gradients go through it, its forward is computed again",
}
ERRORS = (
    "one graph where there were two raises what torch raises for an input when it is compiled, as a "
    "`TorchRuntimeError`, or ends as a whole. No `try` inside of compiled code catches it, so rules leave code alone "
    "whose exceptions something in the project may catch."
)
"""What every page's "kept" means for exceptions that torch itself raises."""


def summary(rule: Rule) -> str:
    """What the rule finds, in one line."""
    first = rule.documentation.strip().split("\n\n", 1)[0]
    words = " ".join(first.split()).removeprefix(f"{rule.slug} ({rule.code}): ")
    return words[:1].upper() + words[1:]


def explanation(rule: Rule) -> str:
    """Why it breaks and what is written instead: paragraphs."""
    return rule.documentation.strip().partition("\n\n")[2].strip()


def family(rule: Rule) -> str:
    """The family that the code's first digit names."""
    return FAMILIES.get(rule.code[2:3], "other")


def cost(rule: Rule) -> str:
    """What compiled code does more after the rule's fix: the kind, and a sentence where the rule has one."""
    contract = rule.contract
    return f"{contract.cost.value}: {contract.cost_note}" if contract.cost_note else contract.cost.value


def page_name(rule: Rule) -> str:
    """The file name of the rule's page."""
    return f"{rule.code}-{rule.slug}.md"


def as_dict(rule: Rule) -> dict[str, object]:
    """The rule as plain values for JSON."""
    return {
        "code": rule.code,
        "slug": rule.slug,
        "title": rule.title,
        "summary": summary(rule),
        "explanation": explanation(rule),
        "family": family(rule),
        "safety": rule.safety.value,
        "contract": {
            "compiled_exceptions": rule.contract.compiled_exceptions,
            "compiled_logs": rule.contract.compiled_logs,
            "compiled_state": rule.contract.compiled_state,
            "cost": rule.contract.cost.value,
            "cost_note": rule.contract.cost_note or None,
        },
        "fixes": [
            {"before": module_text(one.before, one.setup), "after": module_text(one.after, one.setup)}
            for one in rule.examples
            if isinstance(one, Example)
        ],
        "declines": [
            {"source": module_text(one.source, one.setup), "because": one.because}
            for one in rule.examples
            if isinstance(one, Declined)
        ],
        "not_found": [module_text(one.source, one.setup) for one in rule.examples if isinstance(one, Clean)],
    }


def as_json(rules: Rule | Sequence[Rule]) -> str:
    """One rule as a JSON object, several as a list."""
    return json.dumps(as_dict(rules) if isinstance(rules, Rule) else [as_dict(rule) for rule in rules], indent=2)


def table(rules: Sequence[Rule], paint: Paint) -> Iterator[str]:
    """One line a rule."""
    widest = max((len(rule.slug) for rule in rules), default=0)
    for rule in rules:
        yield f"{paint.red(rule.code)}  {rule.slug:<{widest}}  {rule.safety.value:<6}  {summary(rule)}"


def text(rule: Rule, paint: Paint) -> Iterator[str]:
    """The rule's page for a terminal."""
    yield f"{paint.red(rule.code)} {paint.bold(rule.slug)} ({family(rule)})"
    yield ""
    yield summary(rule)
    if explanation(rule):
        yield ""
        yield explanation(rule)
    yield ""
    yield paint.bold("Fix") + f": {rule.title} ({_SAFETY[rule.safety]})"
    for name, value in _contract_rows(rule):
        yield f"  {name}: {value}"
    for number, example in enumerate(_fixes(rule), 1):
        yield from _block(f"Example {number}, before", example.before, paint)
        yield from _block(f"Example {number}, after", example.after, paint)
    for declined in _declines(rule):
        yield from _block(f'Not applied ("{declined.because}")', declined.source, paint)


def markdown(rule: Rule) -> str:
    """The rule's page for the documentation."""
    parts = [
        f"# {rule.slug} ({rule.code})",
        summary(rule),
        explanation(rule),
        f"**Fix:** {rule.title}. {_SAFETY[rule.safety].capitalize()}.",
        "## Contract",
        "Eager mode does not change. Under `torch.compile`:",
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in _contract_rows(rule)),
    ]
    if _fixes(rule):
        parts.append("## Examples")
    for example in _fixes(rule):
        parts += ["Before:", _fenced(example.before), "After:", _fenced(example.after)]
    if _declines(rule):
        parts.append("## When it is not applied")
    for declined in _declines(rule):
        parts += [f'Reported with the reason "{declined.because}":', _fenced(declined.source)]
    quiet = [example for example in rule.examples if isinstance(example, Clean)]
    if quiet:
        parts += ["## What it does not report", *(_fenced(example.source) for example in quiet)]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_index(rules: Sequence[Rule], seen: Mapping[str, tuple[int, int]] | None = None, projects: int = 0) -> str:
    """The list of all pages, by family.

    `seen` says for a code in how many places, and in how many of the `projects` that were looked at, a rule has a fix.
    """
    parts = [
        "# Rules",
        "Each page says what the rule finds, what it writes, and when it leaves the code alone.",
        "Cost is the extra work of compiled code after the fix:",
        "\n".join(f"- *{kind.value}*: {words}" for kind, words in COSTS.items()),
        f"Exceptions: {ERRORS}",
        f"*Places* is how many fixes a rule has in the code of {projects} projects (`seen.json` names them), "
        "*projects* in how many of these it has one.",
    ]
    for name in dict.fromkeys(family(rule) for rule in rules):
        rows = [
            f"| [{rule.code}]({page_name(rule)}) | {rule.slug} | {rule.safety.value} | {rule.contract.cost.value} "
            f"| {' | '.join(map(str, (seen or {}).get(rule.code, (0, 0))))} | {_cell(summary(rule))} |"
            for rule in rules
            if family(rule) == name
        ]
        parts += [
            f"## {name[:1].upper()}{name[1:]}",
            "| code | name | fix | cost | places | projects | finds |\n|---|---|---|---|---:|---:|---|\n"
            + "\n".join(rows),
        ]
    return "\n\n".join(parts) + "\n"


def _fixes(rule: Rule) -> list[Example]:
    return [example for example in rule.examples if isinstance(example, Example)]


def _declines(rule: Rule) -> list[Declined]:
    return [example for example in rule.examples if isinstance(example, Declined)]


def _contract_rows(rule: Rule) -> tuple[tuple[str, str], ...]:
    contract = rule.contract
    return (
        ("exceptions when compiled", contract.compiled_exceptions),
        ("logs, prints and warnings when compiled", contract.compiled_logs),
        ("attributes, buffers and random state when compiled", contract.compiled_state),
        ("cost when compiled", cost(rule)),
    )


def _block(heading: str, source: str, paint: Paint) -> Iterator[str]:
    yield ""
    yield f"{paint.bold(heading)}:"
    yield textwrap.indent(_dedented(source), "    ")


def _dedented(source: str) -> str:
    return textwrap.dedent(source).strip("\n").rstrip()


def _fenced(source: str) -> str:
    return f"```python\n{_dedented(source)}\n```"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
