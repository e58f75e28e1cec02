"""What every rule shows as its examples is true: text, reasons, behaviour in eager mode, one graph when compiled."""

from __future__ import annotations

import ast
from functools import cache
from importlib import resources
from typing import Any

import pytest

from graphmend_codemod import rules
from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.examples import Clean, Declined, Example
from graphmend_codemod.rules.framework.registry import all_rules
from graphmend_codemod.rules.framework.rule import Rule
from tests.tools.behaviour import EVERYTHING, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, embedded, fixed
from tests.tools.observe import Scenario

WITH_GRADIENTS = (*((Scenario(),) if EVERYTHING else ()), Scenario(training=True, gradients="leaves"))


def cases(kind: type) -> list[Any]:
    """Every example of one kind, with the rule that shows it."""
    return [
        pytest.param(rule, example, id=f"{rule.code}-{number}")
        for rule in all_rules()
        for number, example in enumerate((item for item in rule.examples if isinstance(item, kind)), 1)
    ]


@pytest.mark.parametrize(("rule", "example"), cases(Example))
def test_an_example_becomes_what_the_rule_shows(rule: Rule, example: Example) -> None:
    expected = embedded(example.after, example.setup)
    ast.parse(expected)
    written = _without_helpers(_fixed(rule, example), known=expected)
    assert written == expected, f"{rule.code} writes:\n\n{written}"


@pytest.mark.parametrize(("rule", "example"), cases(Declined))
def test_a_declined_example_is_left_alone_with_its_reason(rule: Rule, example: Declined) -> None:
    source, opaque = embedded(example.source, example.setup), rule.safety is Safety.OPAQUE
    finding = declined(source, example.because, select=(rule.code,), opaque=opaque)
    assert finding.code == rule.code
    # `fix` leaves what `check` finds, so that other tests need not ask both.
    assert finding in checked(source, select=(rule.code,), opaque=opaque).findings


@pytest.mark.parametrize(("rule", "example"), cases(Clean))
def test_a_clean_example_has_no_finding(rule: Rule, example: Clean) -> None:
    source = embedded(example.source, example.setup)
    assert checked(source, select=(rule.code,)).findings == ()
    assert fixed(source, select=(rule.code,))[1].remaining == ()


@pytest.mark.parametrize(("rule", "example"), cases(Example))
def test_an_example_behaves_and_is_one_graph(rule: Rule, example: Example) -> None:
    if not example.inputs:
        pytest.skip("the example gives no inputs")
    before = embedded(example.before, example.setup)
    after = _fixed(rule, example)
    behaves(before, after, example.inputs)
    state = rule.contract.compiled_state == "kept"
    compiles(after, example.inputs, scenarios=[Scenario(gradients="off")], state=state)
    # A rewrite may leave the break where gradients flow; a wrong result it may not give.
    compiles(after, example.inputs, scenarios=WITH_GRADIENTS, state=state, strict=False)


def test_every_file_of_examples_belongs_to_a_rule() -> None:
    files = {file.name for file in (resources.files(rules) / "examples").iterdir()}
    assert files == {f"{rule.code.lower()}.toml" for rule in all_rules()}


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_rule_shows_a_fix_a_refusal_and_innocent_code(rule: Rule) -> None:
    shown = {type(example) for example in rule.examples}
    assert {Declined, Clean} <= shown
    assert Example in shown or rule.safety is Safety.ADVICE


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_rule_is_tried_with_inputs(rule: Rule) -> None:
    if rule.safety is Safety.ADVICE:
        pytest.skip("an advice never edits")
    assert any(isinstance(example, Example) and example.inputs for example in rule.examples)


def _unsafe(rule: Rule) -> bool:
    return rule.safety is Safety.UNSAFE


@cache
def _fixed(rule: Rule, example: Example) -> str:
    """The fixed text, for both tests of the example."""
    before = embedded(example.before, example.setup)
    after, result = fixed(before, select=(rule.code,), unsafe_fixes=_unsafe(rule), opaque=rule.safety is Safety.OPAQUE)
    assert {finding.code for fix in result.fixes for finding in fix.applied} == {rule.code}, _why_idle(rule, before)
    again, _ = fixed(after, select=(rule.code,), unsafe_fixes=_unsafe(rule), opaque=rule.safety is Safety.OPAQUE)
    assert again == after, "fixing the result again changes it"
    return after


def _why_idle(rule: Rule, source: str) -> str:
    """Where to look when a rule is not asked."""
    others = sorted({finding.code for finding in checked(source).findings} - {rule.code})
    if others:
        return f"{', '.join(others)} speaks for the site; scripts/document_rules.py (`_precedence`) has the order"
    return (
        f"{rule.code} finds nothing: run `make docs`, look whether its `words` are in the function, and whether "
        "project/summary/candidates.py calls anything in it worth a look"
    )


def _without_helpers(text: str, known: str) -> str:
    """`text` without the functions at its top level that `known` does not have: examples do not spell them out."""
    names = {node.name for node in ast.parse(known).body if isinstance(node, ast.FunctionDef)}
    lines = text.splitlines(keepends=True)
    for node in reversed(ast.parse(text).body):
        if not isinstance(node, ast.FunctionDef) or node.name in names:
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        last = node.end_lineno or node.lineno
        while last < len(lines) and not lines[last].strip():
            last += 1
        while last == len(lines) and not lines[first - 1].strip():
            first -= 1
        del lines[first:last]
    return "".join(lines)
