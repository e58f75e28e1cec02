"""tensor-guard (GM301): a check of a tensor's values that raises.

`if (x < 0).any(): raise` and `assert t, f"..."` read the tensor back to Python at every call. Under `torch.compile`
the same check runs on the device: `torch._assert_async`, with the message as far as it is a constant. Eager mode runs
the original statement, word for word.

Compiled code raises RuntimeError instead of the original type, and on CUDA at the next synchronisation, after which
the CUDA context of the process cannot be used any more. Where a device has no kernel for it, as MPS had none before
torch 2.13, compiled code fails: set `guards = "skip"` there. What a call wrote into attributes before its check failed
is not there afterwards: a compiled function writes them when its graph has run.

Python skips operands of `or` once a check has failed; compiled code computes them all. That makes no difference, for
what they may be: the check fails in any case. Operands that are skipped where a check may still pass
(`if a and b: raise`) must be single elements. What reads no tensor stands in the header, so that the tensors decide:
`n == m` for `if not (n == m and (x == y).all()): raise`. Where it says otherwise, the original statement runs.

What only an annotation says to be a tensor is asked for in the header, as is that `any()` gives bool, which it does
not of uint8. The message is the constant text of the exception, with `...` for what eager mode fills in; a message that
is computed elsewhere is a reason to leave the guard alone.

A call of a function that does nothing but check a parameter (`torch._check`, a helper of the project that raises
unless its argument is true) is a check as well. Rows that a mask chooses are counted by the mask:
`x[mask].numel() == n` is `mask.sum() == n` on the device. Where a variable of the environment switches the helper
off, compiled code asks it, too. Where a variable of its module does, and the helper answers in place of raising if it
is told to (`check(ok, raises=False)`), compiled code asks the helper itself whether it would object to False. What else
the call is given, such as its message, may only read: eager mode computes that at each call. A call that may want the
answer is left alone, as is a helper that another file replaces.

`any(x > 0)` and `all(x > 0)` of Python ask a tensor row by row; the header asks that each row is one element.

A Python condition inside may choose the exception (`if t: if self.strict: raise ...`); where it wants a message in its
place, compiled code sends none.

The setting `guards` chooses: `assert` (default), `skip` (no check in compiled code) or `advice` (no edit). A guard
inside `try`, or inside a context manager that may catch, is left alone: its exception is part of the control flow. So
is one that code anywhere in the project calls where its exception may be caught (also by an exit stack, a `return` in
`finally`, a decorator, or a function that it is given to), and one in an `except` handler, which compiled code does not
get to. Around calls, context managers that cannot be looked up are taken to let exceptions through. A handler there
that always raises again, and changes no attribute, catches nothing: compiled code then raises the check's own error in
the place of the one that the handler would have made of it. Nor does one for exceptions of the project or of another
library (`except TooShort`), for a check that raises one of Python's own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import all_names
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Safety
from graphmend_codemod.rules.framework.edits import in_front, judged, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import BRANCH_MESSAGES, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.guards import checking_calls
from graphmend_codemod.rules.guards.device_check import DeviceCheck
from graphmend_codemod.rules.proofs.conditions.condition import (
    Condition,
    combines,
    fails_early,
    is_traced_assertion,
    reads_tensor,
    split,
)
from graphmend_codemod.rules.proofs.conditions.repeated_reads import acts
from graphmend_codemod.rules.proofs.conditions.trace_time_conditions import asked_of_bytes, tensor_checks
from graphmend_codemod.rules.proofs.exceptions import caught_above, message_of, swallowing
from graphmend_codemod.rules.proofs.logging.argument_effects import effect_of
from graphmend_codemod.rules.proofs.logging.log_calls import find_log_call, why_it_is_read
from graphmend_codemod.rules.proofs.logging.log_guard import effect, without_messages
from graphmend_codemod.rules.proofs.untraced import places as untraced

rule = Rule(
    __name__,
    __doc__,
    title="check tensor values on the device under torch.compile",
    contract=Contract(
        cost=Cost.NONE,
        cost_note="the check runs on the device",
        compiled_exceptions="RuntimeError, on CUDA at the next synchronisation; none with guards = skip",
        may_raise=False,
        compiled_logs=BRANCH_MESSAGES,
        compiled_state="kept; where the check fails, attributes that the call wrote before it keep their old values",
    ),
)


@rule.on(ast.If, candidate="test")
def raising_branch(site: Site, node: ast.If) -> Diagnostic | None:
    """`if t: raise ...`, also where a Python condition inside chooses the exception."""
    if not raises(node.body) or (condition := split(site, node.test)) is None:
        return None
    message = f"data-dependent `raise`: `{speculation.short(node.test)}`"
    early = len(condition.tensors) == 1 and fails_early(condition.tensors[0], ast.Or)
    if (settled := _without_check(site, node, message, _why_not(site, condition, early, nested=True))) is not None:
        return settled
    if node.orelse:
        return Diagnostic(message, declined="the check has an `else`; move it into a separate `if` without `else`")
    return judged(message, lambda: _in_front(site, node, condition, early))


def _without_check(site: Site, node: ast.stmt, message: str, reason: str | None) -> Diagnostic | None:
    """The answer where there is a reason against a check on the device, or the setting `guards` wants none."""
    if reason is not None:
        return Diagnostic(message, declined=reason, safety=Safety.ADVICE if site.settings.guards == "advice" else None)
    if site.settings.guards != "skip":
        return None
    from graphmend_codemod.rules.proofs.logging.log_guard import guard, guard_test  # few settings need it

    return Diagnostic(message, edit=guard_test(site, node) if isinstance(node, ast.If) else guard(site, [node]))


def _in_front(site: Site, node: ast.If, condition: Condition, early: bool) -> Edit:
    """The check on the device in front of the guard. Raises NotProven.

    A static part that stands behind a tensor goes below the header: were it in the header and false, Dynamo would come
    to the guard itself, and read the tensor first.
    """
    facts = _facts(site, condition, early)

    def checked(deeper: int) -> str:
        return checks(site, node.body, lambda said: _check(site, condition, said, inverse=True), deeper)

    first, later = _static_parts(site, node.test, condition)
    if not later:
        return in_front(site, node, [*first, *facts], [checked(1)])
    before = len(first) < _position(node.test, condition.tensors[0])
    if before and any("." in fact.partition(",")[0] for fact in facts):
        # Whether there is such an attribute may be what the static part asks.
        raise NotProven(f"`{later[0]}` may have side effects; test it in a separate `if` around the guard")
    inner = site.header("if", later).replace("\n", "\n    ")
    return in_front(site, node, [*first, *facts], [f"{inner}\n        ", checked(2)])


def _position(test: ast.expr, operand: ast.expr) -> int:
    return test.values.index(operand) if isinstance(test, ast.BoolOp) and operand in test.values else 0


def _static_parts(site: Site, test: ast.expr, condition: Condition) -> tuple[list[str], list[str]]:
    """The static parts that may stand in the header, and those that have to be asked below it, once.

    In the header there is room for what stands before all tensors, and may be asked again by the guard itself.
    """
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    first: list[str] = []
    later: list[str] = []
    for part in parts:
        if part in condition.static:
            plain = not later and len(first) == parts.index(part) and acts(site, part) is None
            (first if plain else later).append(site.operand_of_and(part))
    return first, later


@rule.on(ast.Expr, when=checking_calls.may_check)
def checking_call(site: Site, node: ast.Expr) -> Diagnostic | None:
    """`check(x[mask].numel() == n, "...")` where the function does nothing but check."""
    if not isinstance(node.value, ast.Call) or (asked := checking_calls.checked(site, node.value)) is None:
        return None
    counts = checking_calls.counted(site, asked.condition)
    condition = None if counts is not None else split(site, asked.condition)
    if counts is None and (condition is None or condition.static):
        return None
    message = f"data-dependent check: `{speculation.short(node.value)}`"
    early = fails_early(asked.condition, ast.And)
    reason = counts.impure or _place_is_bad(site) if counts is not None else _why_not(site, condition, early)  # type: ignore[arg-type]
    reason = reason or _argument_acts(site, asked)
    if (settled := _without_check(site, node, message, reason)) is not None and reason is not None:
        return settled
    try:
        facts, text = _on_device(site, asked, condition, counts)
        said, name = message_of(site, asked.message)
    except NotProven as why:
        return Diagnostic(message, declined=str(why))
    if settled is not None:
        return settled
    facts += asked.switches
    by_environment = any("os" in all_names(ast.parse(each)) for each in asked.switches)
    if by_environment and site.evaluator.scope.is_local("os"):
        return Diagnostic(message, declined=name_taken("os"))
    missing = by_environment and site.evaluator.scope.resolve_global("os") is None
    imports = (*site.imports, *(("os",) if missing else ()))
    lines = [DeviceCheck(site, text, said, name).at(1)]
    edit = two_paths(site, node, [site.compiling, *facts], lines, imports=imports, scriptable=True)
    return Diagnostic(message, edit=edit._replace(reaches=True))


def _argument_acts(site: Site, asked: checking_calls.Checked) -> str | None:
    """Why what else the call is given may not be left out: eager mode computes it whether the check fails or not."""
    found = next((effect for each in asked.rest if (effect := effect_of(site, each)) is not None), None)
    return None if found is None else f"`{found}` in its arguments would not run under torch.compile"


def _on_device(
    site: Site, asked: checking_calls.Checked, condition: Condition | None, counts: checking_calls.Counted | None
) -> tuple[list[str], str]:
    """What the header asks for and the condition for the device. Raises NotProven."""
    if condition is None:
        return list(counts.facts if counts is not None else ()), counts.text if counts is not None else ""
    facts = _facts(site, condition, fails_early(asked.condition, ast.And))
    return facts, f"({condition.text}).all()" if asked.every and condition.several is not None else condition.text


@rule.on(ast.Assert, candidate="test")
def assertion(site: Site, node: ast.Assert) -> Diagnostic | None:
    """`assert t, message` with a message that is no constant; Dynamo traces the others itself."""
    if (condition := split(site, node.test)) is None:
        return None
    if is_traced_assertion(site, node, condition):
        return None
    message = f"data-dependent `assert`: `{speculation.short(node.test)}`"
    early = all(fails_early(each, ast.And) for each in condition.tensors)
    if (settled := _without_check(site, node, message, _why_not(site, condition, early))) is not None:
        return settled
    try:
        facts = _facts(site, condition, early)
        check = _check(site, condition, node.msg, inverse=False)
    except NotProven as why:
        return Diagnostic(message, declined=str(why))
    static = [site.operand_of_and(operand) for operand in condition.static]
    edit = two_paths(site, node, [site.compiling, *static, *facts], [check.at(1)], scriptable=True)
    return Diagnostic(message, edit=edit)


def _facts(site: Site, condition: Condition, early: bool) -> list[str]:
    """What the header asks for: that tensors are tensors. Raises NotProven.

    Where a check fails `early`, what eager mode skips may raise: it skips it only to raise itself.
    """
    for operand in condition.static:
        inside = {id(part) for part in walk(operand)}
        for suspect in untraced.suspects(site).of(site.place.statement):
            if id(suspect) in inside and (other := untraced.break_at(site, suspect)) is not None:
                raise NotProven(f"`{speculation.short(other.node)}` in its test breaks the graph too; fix that first")
    facts = [fact for fact in condition.facts if not early or fact not in condition.if_skipped]
    return list(dict.fromkeys([*tensor_checks(site, list(condition.tensors)), *facts]))


def _why_not(site: Site, condition: Condition, early: bool, *, nested: bool = False) -> str | None:
    """Why the check stays; `nested` says that what acts is asked below the header, where nothing asks it again."""
    if condition.several is not None and combines(condition) and not early:
        return _place_is_bad(site) or (
            f"`{condition.several}` may have more than one element; reduce it with `.any()` or `.all()`"
        )
    hazards = condition.once if nested else condition.hazards
    return _place_is_bad(site, hazards.impure or (None if early else condition.skipped))


def _place_is_bad(site: Site, why: str | None = None) -> str | None:
    """Why no check may be moved at this place, or `why`."""
    if site.place.in_try:
        return "the check is inside `try`, and its exception may be caught"
    if site.place.in_handler:
        return "the check is in an `except` handler and raises from the caught exception"
    manager = swallowing(site)
    if manager is not None:
        return f"the check is inside `with {manager}`, which may catch its exception; move it above the `with`"
    if why is not None:
        return why
    catcher = caught_above(site, torch_alone=_raises_as_torch_does(site))
    if catcher is not None:
        return f"its exception may be caught: {catcher}; check before that call"
    if site.settings.guards == "advice":
        return 'not rewritten because of the setting `guards = "advice"`'
    return None


def _raises_as_torch_does(site: Site) -> bool:
    """True where the statement raises an assertion or an exception of Python, by its class."""
    raised = [part.exc for part in walk(site.place.statement) if isinstance(part, ast.Raise)]
    made = [each.func if isinstance(each, ast.Call) else each for each in raised]
    names = [site.resolve(each) if each is not None else None for each in made]
    known = all(name is not None and name.startswith("builtins.") for name in names)
    return (
        known
        and "builtins.NotImplementedError" not in names
        and (bool(raised) or isinstance(site.place.statement, ast.Assert))
    )


def _check(site: Site, condition: Condition, described: ast.expr | None, *, inverse: bool) -> DeviceCheck:
    """The check of a condition with the message of an assertion or an exception. Raises NotProven."""
    message, name = message_of(site, described)
    alone = asked_of_bytes(site, condition.tensors[0]) if len(condition.tensors) == 1 else None
    if alone is None:
        return DeviceCheck(site, condition.inverse if inverse else condition.text, message, name)
    asked, negated = alone
    return DeviceCheck(site, f"{site.text(asked)} {'==' if negated is not inverse else '!='} 0", message, name)


# What a branch raises: one exception, or several between which Python conditions choose (GM301)

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
    if isinstance(first, ast.If) and (unbound := all_names(first.test) & told.keys()):
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
