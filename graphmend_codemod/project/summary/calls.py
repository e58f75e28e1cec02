"""What calls tell: what is called, and whether it may read a tensor back or write a message."""

from __future__ import annotations

import ast
from typing import Any

from graphmend_codemod.project.summary.assignments import REGISTRATIONS, SETTERS, changed, class_asked_for, registration
from graphmend_codemod.project.summary.body import Body
from graphmend_codemod.project.summary.candidates import (
    ANSWERS,
    CASTS,
    CHOOSES_ROWS,
    DIVIDES,
    EXTREMES,
    FILLS,
    GUESSED,
    LOG_METHODS,
    MADE_OF_NUMBERS,
    MARKS,
    NUMPY_NUMBERS,
    OLD_SIGNATURES,
    READS_VALUES,
    REDUCES,
    REFUSED,
    REFUSED_WITH_OWNER,
    REPLACED,
    TAKE_TENSORS,
    UNKNOWN_AS_NUMPY,
    UNKNOWN_TO_TORCH,
    is_log_call,
)
from graphmend_codemod.project.summary.numbers import READ_BACK, is_reduced
from graphmend_codemod.project.summary.records import Write
from graphmend_codemod.project.summary.spelling import dotted

_MAY_BE_REFUSED = frozenset({"one_hot", *GUESSED, *REFUSED, *(name.rpartition(".")[2] for name in REFUSED_WITH_OWNER)})
_SCRIPTS = frozenset({"script", "script_if_tracing"})
_SPECIAL_CALLS = frozenset({"compile", "isinstance", "is_scripting", *_SCRIPTS, *REGISTRATIONS, *SETTERS})
_KEEPS_MODULE = frozenset("eval train to cpu cuda half float double bfloat16 requires_grad_".split())
_ALL = frozenset({"all", "any"})
_ORDERS = frozenset({ast.Lt, ast.LtE, ast.Gt, ast.GtE})
_COUNTED = CASTS | frozenset(
    """arange chunk empty expand full interpolate kthvalue linspace narrow new_empty new_full new_ones new_zeros ones
    pad permute rand randn range repeat reshape roll round tile topk view zeros""".split()
)
"""What takes numbers, or sizes."""
_LAMBDAS = frozenset({"filter", "reduce", "sorted", "max", "min"})
_TEXTS = frozenset({"str", "repr"})
_LAYERS = frozenset(
    """BatchNorm1d BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d Embedding GRU GRUCell
    GroupNorm LSTM LSTMCell LayerNorm Linear MultiheadAttention RNN Sequential""".split()
)
_NUMPY = ("np.", "numpy.")
_LIBRARIES = (*_NUMPY, "torch.")
_FUNCTIONAL = ("F.", "nn.functional.", "torch.nn.functional.")
_REFUSED_MODULES = ("np.polynomial.", "numpy.polynomial.", "scipy.")
_TESTS = frozenset({ast.Name, ast.BoolOp, ast.Compare})
_SAID = frozenset({"requires_grad", "validate_args"})
_OTHERS = ("np.random.", "pot.")
_NOTED = (
    _SPECIAL_CALLS | LOG_METHODS | READS_VALUES | MARKS | MADE_OF_NUMBERS | NUMPY_NUMBERS | DIVIDES
    | CHOOSES_ROWS | REDUCES | REPLACED | ANSWERS | _MAY_BE_REFUSED | _ALL
    | {"open", "eval", "repeat_interleave", "split", "masked_select", "arange", "pad"}
    | {"where", "roll", "array", "asarray", "map", "apply"} | _LAMBDAS | _LAYERS | FILLS | _TEXTS
)  # fmt: skip
"""What calls are looked at for."""


def call(node: ast.Call, body: Body, stack: list[Any]) -> None:
    """Note a call in `body`, and put the parts that are to be looked at next on `stack`."""
    spelled, last = _name(node.func, body, stack)
    if not body.value and _makes_worth_a_look(node, spelled, last, body):
        body.value = True
    first = node.args[0] if node.args else None
    if type(first) is ast.Name and (
        (last in TAKE_TENSORS and spelled.startswith("torch.")) or spelled.startswith(_FUNCTIONAL)
    ):
        body.given.add(first.id)
    if last in _COUNTED or spelled.startswith("math."):
        body.numbers += _operands(node)
    if last in _NOTED:
        _note(node, spelled, last, body)
    elif last[-1:] == "_":
        changed(spelled, body)
        if last == "requires_grad_" or (last in OLD_SIGNATURES and len(node.args) > 1):
            body.value = True
        if type(first) is ast.Attribute:  # `nn.init.zeros_(model.scale)`
            changed(f"{dotted(first)}._", body, class_asked_for(node, dotted(first.value), body))
    stack += node.args
    _keywords(node, body, stack)


def _name(function: ast.expr, body: Body, stack: list[Any]) -> tuple[str, str]:
    """What is called, as spelled, "" for no dotted name, and its last part, which a method of a call has, too."""
    spelled = function.id if type(function) is ast.Name else dotted(function)
    if spelled:
        body.calls.add(spelled)
        return spelled, spelled.rpartition(".")[2]
    if type(function) is ast.Attribute:
        body.calls.add(f"?.{function.attr}")
        stack.append(function.value)
        return "", function.attr
    stack.append(function)
    made = dotted(function.func) if type(function) is ast.Call else ""
    if made:
        body.calls.add(f"{made}.forward")  # `Part(3)(x)`
    return "", ""


def _makes_worth_a_look(node: ast.Call, spelled: str, last: str, body: Body) -> bool:
    """True for calls that Dynamo may refuse, or whose arguments may be read back, whatever else is noted of them."""
    numpy = spelled.startswith(_NUMPY)
    if (
        spelled.startswith(_OTHERS)
        or ".random." in spelled
        or (body.lines.foreign and _may_be_foreign(spelled, last, body))
        or spelled.startswith(_REFUSED_MODULES)
        or last in UNKNOWN_TO_TORCH
        or (last in UNKNOWN_AS_NUMPY and numpy)
        or _gets_new_array(node, spelled)
        or (last == "byte" and not node.args)  # Dynamo refuses its result as a mask
        or (node.args and asks_reduced(node.args[0]))
    ):
        return True
    if last.endswith("Tensor") and len(node.args) == 1:
        given = node.args[0]
        if _is_size(given) or (spelled[:6] == "torch." and type(given) in {ast.Name, ast.Call}):
            return True
    return (last == "astype" or numpy) and any(
        isinstance(each, ast.Attribute) and each.attr == "dtype" for each in _operands(node)
    )


def _keywords(node: ast.Call, body: Body, stack: list[Any]) -> None:
    for keyword in node.keywords:
        stack.append(keyword.value)
        if keyword.arg in _SAID or (keyword.arg == "alpha" and type(keyword.value) is not ast.Constant):
            body.value = True
        if keyword.arg == "key" and type(node.func) is ast.Name and node.func.id in ("min", "max"):
            body.value = True
        if keyword.arg == "is_causal" and type(keyword.value) in _TESTS:
            body.value = True
        if keyword.arg == "out" and type(keyword.value) is ast.Attribute:
            body.writes[Write(keyword.value.attr, dotted(keyword.value.value), "changed")] = None


def _gets_new_array(node: ast.Call, spelled: str) -> bool:
    """True for `reflect(np.arange(n))`: a function of the project may do more with an array than Dynamo traces."""
    made = (each.func for each in node.args if type(each) is ast.Call and type(each.func) is ast.Attribute)
    return any(dotted(each).startswith(_NUMPY) for each in made) and not spelled.startswith(_LIBRARIES)


def _may_be_foreign(spelled: str, last: str, body: Body) -> bool:
    """True for a call of what the module imports from a library that Dynamo does not trace, or of an object from it."""
    root = spelled.partition(".")[0]
    if root in body.lines.foreign or last == "len":
        return True
    said = body.parameters.get(root, "")
    return root == body.own or any(name in said for name in body.lines.foreign)


def _is_size(node: ast.expr) -> bool:
    """True for `x.size()`, `x.shape` and `x.shape[1:]`."""
    if type(node) is ast.Subscript and type(node.slice) is ast.Slice:
        node = node.value
    if type(node) is ast.Attribute:
        return node.attr == "shape"
    return type(node) is ast.Call and type(node.func) is ast.Attribute and node.func.attr == "size" and not node.args


def _note(node: ast.Call, spelled: str, last: str, body: Body) -> None:
    if spelled and last in _SPECIAL_CALLS:
        _special(node, spelled, last, body)
    if last in LOG_METHODS and not body.log:
        body.log = is_log_call(node)
    elif (
        (last in READS_VALUES and not node.args)
        or last == "repeat_interleave"
        or last in MARKS
        or last in ANSWERS
        or last in MADE_OF_NUMBERS
        or last in REPLACED
        or spelled == "torch.jit.isinstance"
    ):
        body.value = True
    elif last == "split" and node.args and node.args[0].__class__ is ast.Name:
        body.pieces.append(node.args[0].id)
    elif last == "split" and node.args and node.args[0].__class__ is ast.ListComp:
        body.value = True
    elif last == "masked_select":
        body.selects = body.rows = True
    elif (asked := _asks_of_arguments(node, spelled, last, body)) is not None:
        body.value = body.value or asked
    elif last in CHOOSES_ROWS or (last == "where" and len(node.args) == 1) or (last in REDUCES and _is_masked(node)):
        body.rows = True
    elif last in _MAY_BE_REFUSED and not body.value:
        body.value = _is_refused(node, spelled, last)


def _asks_of_arguments(node: ast.Call, spelled: str, last: str, body: Body) -> bool | None:
    """True for a call with arguments that make it worth a look; None for one that is not judged by its arguments."""
    if last in _ALL:
        given = node.args[0] if spelled == last and node.args else None
        compared = isinstance(given, (ast.GeneratorExp, ast.ListComp)) and type(given.elt) is ast.Compare
        return compared and type(given.elt.ops[0]) in _ORDERS  # type: ignore[union-attr]
    if last in NUMPY_NUMBERS and spelled.startswith(_NUMPY):
        return True
    if last in DIVIDES:
        return len(node.args) == 2
    if last == "arange":
        return body.lines.asks_for_ends or _is_shifted(node) or body.lines.tests_elements
    if last in {"array", "asarray"}:
        return len(node.args) == 1 and isinstance(node.args[0], (ast.Name, ast.Subscript))
    if last in FILLS:
        filled = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "fill_value")]
        return any(isinstance(each, (ast.Name, ast.Subscript, ast.Attribute, ast.Call)) for each in filled)
    if last == "roll":
        return any(isinstance(each, ast.Call) for each in _operands(node))
    if last == "pad":
        return body.lines.keeps_integers or spelled.startswith(_NUMPY)
    if last in _LAMBDAS:
        read = last == "sorted" and (_is_given_tensor(node, body) or any(map(is_reduced, node.args)))
        return read or _chooses(node)
    if last in _TEXTS:
        return spelled == last and _is_given_tensor(node, body)
    if last == "map":
        return bool(node.args) and getattr(node.args[0], "id", "") in CASTS
    if last == "apply":
        return body.lines.has_class_methods and spelled[:1].isupper()
    if last in _LAYERS:
        return spelled in {f"nn.{last}", f"torch.nn.{last}"}
    if last in {"open", "eval"}:
        return spelled == last
    return None


def _is_given_tensor(node: ast.Call, body: Body) -> bool:
    """True for `sorted(x)` of a parameter that is annotated as a tensor."""
    return any("Tensor" in body.parameters.get(each.id, "") for each in node.args if type(each) is ast.Name)


def _special(node: ast.Call, spelled: str, last: str, body: Body) -> None:
    if last == "compile" and (node.args or node.keywords):
        body.compiles.append((spelled, dotted(node.args[0] if node.args else node.keywords[0].value)))
    elif last in _SCRIPTS and (node.args or node.keywords):
        body.compiles.append((spelled, _scripted(node.args[0] if node.args else node.keywords[0].value)))
    elif last == "is_scripting":
        body.compiles.append((spelled, ""))
    elif last == "isinstance" and len(node.args) == 2:
        _isinstance(node.args, body)
    else:
        registration(node, spelled, body)


def _scripted(node: ast.expr) -> str:
    """`Model()` for `Model(config).eval()`, `model` for `model.to(device)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS_MODULE:
        node = node.func.value
    if isinstance(node, ast.Call):
        made = dotted(node.func)
        return f"{made}()" if made else ""
    return dotted(node)


def _isinstance(arguments: list[ast.expr], body: Body) -> None:
    subject = arguments[0]
    if isinstance(subject, ast.Name):
        kinds = arguments[1].elts if isinstance(arguments[1], ast.Tuple) else [arguments[1]]
        for kind in kinds:
            if spelled := dotted(kind):
                body.types[subject.id, f":{spelled}"] = None


def _is_refused(node: ast.Call, spelled: str, last: str) -> bool:
    if last == "one_hot":
        given = [*node.args[1:], *(word.value for word in node.keywords)]
        return not given or isinstance(given[0], (ast.Name, ast.Call))
    return (
        last in REFUSED or last in GUESSED or spelled == last or ".".join(spelled.split(".")[-2:]) in REFUSED_WITH_OWNER
    )


def is_extreme(node: ast.Call) -> bool:
    """True for `max(lengths)`, `x.max()` and `sizes.get("n")`."""
    function = node.func
    if isinstance(function, ast.Name):
        return function.id in {"max", "min", "sum"}
    return isinstance(function, ast.Attribute) and (function.attr in READ_BACK or function.attr == "get")


def _chooses(node: ast.Call) -> bool:
    """True for `max(xs, key=lambda x: x.sum())` and `filter(lambda x: x.sum() > 0, xs)`."""
    given = [*node.args, *(word.value for word in node.keywords)]
    bodies = (part for each in given if type(each) is ast.Lambda for part in ast.walk(each.body))
    return any(type(part) is ast.Call and type(part.func) is ast.Attribute for part in bodies)


def _is_shifted(node: ast.Call) -> bool:
    """True for `arange(start, start + n)`, also with a step, and for a step that is computed: `arange(0, 1, 1 / n)`."""
    kinds = [each.__class__ for each in node.args]
    return kinds[:2] == [ast.Name, ast.BinOp] or kinds[2:] == [ast.BinOp]


def asks_reduced(node: ast.expr) -> bool:
    """True for the argument of `check(x.sum() == n)`, `check(torch.all(x > 0))` and `check(any(x > 0))`."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Call) and type(node.func) is ast.Name and len(node.args) == 1:
        name, given = node.func.id, node.args[0]
        return asks_reduced(given) if name == "bool" else name in _ALL and type(given) is ast.Compare
    if isinstance(node, ast.Compare):
        sides = (node.left, node.comparators[0])
        return any(isinstance(each, ast.Call) and getattr(each.func, "attr", "") in EXTREMES for each in sides)
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _ALL


def decision(node: ast.BoolOp, body: Body, stack: list[Any]) -> None:
    """`x.any() and y.any()`."""
    body.value = body.value or any(asks_reduced(each) or is_reduced(each) for each in node.values)
    stack += node.values


def _operands(node: ast.Call) -> list[ast.expr]:
    """The arguments, without signs: `int(t)` of `-int(t)`."""
    given = [*node.args, *(word.value for word in node.keywords)]
    return [each.operand if isinstance(each, ast.UnaryOp) else each for each in given]


def _is_masked(node: ast.Call) -> bool:
    """True for `x[mask].sum()` and `x.masked_select(mask).sum()`."""
    chosen = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None
    if isinstance(chosen, ast.Call):
        return dotted(chosen.func).endswith("masked_select") or getattr(chosen.func, "attr", "") == "masked_select"
    return isinstance(chosen, ast.Subscript) and isinstance(chosen.slice, (ast.Name, ast.Compare))
