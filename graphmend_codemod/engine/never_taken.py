"""Compile paths whose header asks for what the analysis knows to be false: they would be written and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.values import BOOL, UNKNOWN, Value, is_floating_dtype
from graphmend_codemod.core.findings import CompilePath, Edit, EditForm
from graphmend_codemod.rules.framework.conditions import expression
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site

_NUMBERS = frozenset({"int", "float", "bool", "str", "tuple", "list"})


def taken(diagnostic: Diagnostic, site: Site) -> Diagnostic:
    """The diagnostic without its edit where a condition of its header cannot hold at the site."""
    edit = diagnostic.edit
    if edit is None or edit.form is not EditForm.BESIDE:
        return diagnostic
    false = next((each for each in header_conditions(edit, site) if _is_false(site, each)), None)
    if false is None:
        return diagnostic
    reason = f"a compile path would ask for `{ast.unparse(false)}`, which is never so here"
    return diagnostic._replace(edit=None, declined=reason)


def header_conditions(edit: Edit, site: Site) -> Iterator[ast.expr]:
    """What the header in front of the site's own statement asks beside the compiler."""
    line = site.place.statement.lineno
    for path in (each.parts[0] for each in edit.replacements if each.parts and each.span.start_line == line):
        if isinstance(path, CompilePath) and not path.negated:
            for condition in path.conditions[1:]:
                test = expression(condition)
                both = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
                yield from test.values if both else [test]  # type: ignore[attr-defined]


def _is_false(site: Site, test: ast.expr) -> bool:
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.expr() as asked, kind]):
            return _value(site, asked).is_tensor and _names(kind) <= _NUMBERS
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="type"), args=[ast.expr() as asked]), ops=[ast.Is()], comparators=[kind]
        ):
            return _value(site, asked).is_tensor and _names(kind) <= _NUMBERS
        case ast.Compare(left=ast.Attribute(value=asked, attr="dtype"), ops=[ast.Eq()], comparators=[kind]):
            dtype = _value(site, asked).dtype or ""
            return ast.unparse(kind).endswith("bool") and dtype.startswith("torch.") and dtype != BOOL
        case ast.Call(func=ast.Attribute(value=asked, attr="is_floating_point"), args=[]):
            dtype = _value(site, asked).dtype or ""
            return dtype.startswith("torch.") and not is_floating_dtype(dtype)
    return False


def _value(site: Site, node: ast.expr) -> Value:
    """What is known of an expression; nothing where only an annotation tells, which may be wrong."""
    value = site.evaluator.value(node, site.place.env)
    return UNKNOWN if value.hint else value


def _names(kind: ast.expr) -> set[str]:
    """The classes in `int` and `(int, float)`; what is no plain name is itself."""
    return {ast.unparse(each) for each in (kind.elts if isinstance(kind, ast.Tuple) else [kind])}
