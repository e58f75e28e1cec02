"""What a branch raises: one exception, or several between which Python conditions choose (GM301)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.guards.device_check import DeviceCheck
from graphmend_codemod.rules.proofs.conditions.condition import reads_tensor
from graphmend_codemod.rules.proofs.conditions.repeated_reads import acts
from graphmend_codemod.rules.proofs.logging.log_calls import find_log_call, why_it_is_read
from graphmend_codemod.rules.proofs.logging.log_guard import effect
from graphmend_codemod.rules.proofs.logging.skipped_messages import without_messages

Check = Callable[[ast.expr], DeviceCheck]


def raises(body: Sequence[ast.stmt]) -> bool:
    """True for a branch that raises, perhaps under further conditions, and seems to do nothing else but tell.

    Names may be assigned where the branch raises in any case, so that nobody else reads them.
    """
    certain = bool(body) and isinstance(body[-1], ast.Raise)
    plain = all(
        isinstance(each, (ast.Raise, ast.Expr, ast.If, ast.Pass)) or (certain and _names(each)) for each in body
    )
    found = any(
        isinstance(each, ast.Raise) or (isinstance(each, ast.If) and raises([*each.body, *each.orelse]))
        for each in body
    )
    nested = [each for each in body if isinstance(each, ast.If)]
    return plain and found and all(_is_plain(each) for each in nested)


def _is_plain(node: ast.If) -> bool:
    return all(
        isinstance(each, (ast.Raise, ast.Expr, ast.Pass)) or (isinstance(each, ast.If) and _is_plain(each))
        for each in [*node.body, *node.orelse]
    )


def checks(site: Site, body: Sequence[ast.stmt], check: Check, deeper: int) -> str:
    """The checks for what a branch raises, `deeper` levels below the guard. Raises NotProven.

    Python conditions inside are asked whatever the tensors hold, so they may only read.
    """
    rest = [each for each in without_messages(site, body) if not isinstance(each, ast.Pass)]
    if not rest:
        return "pass"
    told = _told(site, rest)
    first = next((each for each in rest if not _tells(site, each) and not _names(each)), rest[0])
    if isinstance(first, ast.Raise):
        if first.exc is None:
            raise NotProven("it re-raises an exception, which compiled code cannot do")
        return check(_with_values(first.exc, told)).at(deeper)
    if isinstance(first, ast.If) and (unbound := _read(first.test) & told.keys()):
        raise NotProven(f"`{short(first.test)}` inside the check reads `{min(unbound)}`; compute that above the check")
    there = site.at(first)
    if isinstance(first, ast.If) and first is not rest[-1]:
        raise NotProven(f"more follows `if {short(first.test)}:` inside the check; raise in a separate `if`")
    if there is None or not isinstance(first, ast.If):
        raise NotProven(f"`{short(first)}` may have side effects; raise in a separate `if`")
    if reads_tensor(there, first.test):
        raise NotProven(f"`{short(first.test)}` inside the check reads a tensor too; use one `if` for each exception")
    reason = acts(there, first.test) or there.judge(first.test).raises
    if reason is not None:
        raise NotProven(reason)
    newline = "\n" + "    " * deeper
    text = f"if {site.text(first.test)}:{newline}    {checks(site, first.body, check, deeper + 1)}"
    other = checks(site, first.orelse, check, deeper + 1)
    return text if other == "pass" else f"{text}{newline}else:{newline}    {other}"


def _names(statement: ast.stmt) -> list[str]:
    """The name that a plain assignment gives a value: `message = f"..."`; none for any other statement."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return [target.id] if isinstance(target, ast.Name) else []


def _read(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _told(site: Site, body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """What a branch assigns to names before it raises. Raises NotProven for a name of the module."""
    found: dict[str, ast.expr] = {}
    for statement in body:
        if not isinstance(statement, ast.Assign):
            continue
        for name in _names(statement):
            if name not in site.evaluator.scope.locals:
                raise NotProven(f"the check assigns `{name}`, which others read as well; assign it above the check")
            found[name] = ast.Name(name, ast.Load()) if name in found else statement.value
    return found


def _with_values(raised: ast.expr, told: Mapping[str, ast.expr]) -> ast.expr:
    """An exception with what the branch assigned in place of a name: `raise ValueError(message)`, `raise error`."""
    if isinstance(raised, ast.Name):
        return told.get(raised.id, raised)
    if not isinstance(raised, ast.Call):
        return raised
    given = [told.get(each.id, each) if isinstance(each, ast.Name) else each for each in raised.args]
    return ast.Call(raised.func, given, raised.keywords)


def _tells(site: Site, statement: ast.stmt) -> bool:
    """True for a message in front of an exception, which needs no guard of its own."""
    there = site.at(statement)
    call = find_log_call(there, statement.value) if there is not None and isinstance(statement, ast.Expr) else None
    return (
        there is not None and call is not None and effect(there, call) is None and why_it_is_read(there, call) is None
    )
