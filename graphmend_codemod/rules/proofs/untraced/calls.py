"""Calls that Dynamo cannot trace: one function per kind, which returns the break and advice for a manual fix."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.calls import keyword
from graphmend_codemod.analysis.iterated import in_step
from graphmend_codemod.analysis.patterns import is_constant, is_name, is_none, listed, owner_of, root_of, written_text
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.project.summary.candidates import ANSWERS, CHECKS
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraceable_calls import refused
from graphmend_codemod.rules.proofs.untraced.evidence import (
    absent_parameters,
    assigned,
    is_given_to_forward,
    is_number,
    is_registered,
    is_tensor_or_number,
    steps_through_tensor,
)
from graphmend_codemod.rules.proofs.untraced.foreign import compiled_elsewhere, made_foreign, of_foreign_object
from graphmend_codemod.rules.proofs.untraced.kinds import CAPTURE, Ask, Untraced
from graphmend_codemod.rules.proofs.untraced.layers import constructed, recurrent
from graphmend_codemod.rules.proofs.untraced.subscripts import sized_by

FINDS = frozenset("nonzero argwhere unique unique_consecutive bincount masked_select".split())
READS = {"item": "a Python scalar", "tolist": "a Python list", "numpy": "a NumPy array"}
_CASTS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "builtins.range"})
SIZED = frozenset("arange zeros ones empty full rand randn".split())
RESHAPES = frozenset("new_zeros new_ones new_empty new_full view reshape expand repeat narrow permute tile".split())
_TAKES_SIZES = SIZED | RESHAPES | {"pad", "interpolate", "one_hot", "split", "topk"}
_DRAWS_ARRAYS = frozenset("normal rand randint randn random random_sample uniform".split())
_AS_NUMBERS = "manually pass them as numbers of Python, or build masks from them"
_TRACED_DRAWS = _DRAWS_ARRAYS | {"choice", "shuffle", "sample", "seed"}
"""Functions of `np.random` that Dynamo traces; the result is a tensor, and no number."""


def found(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`mask.nonzero()`, `torch.where(mask)`, `torch.unique(x)`."""
    name = torch_api.torch_function(called)
    if getattr(node.func, "attr", "") == "tensor_split":
        places = node.args[(name is not None) : 1 + (name is not None)]
        read = bool(places) and site.value(places[0]).is_tensor
        return Untraced(node, "splits at places that a tensor tells (device sync)", _AS_NUMBERS) if read else None
    if name == "repeat_interleave" or getattr(node.func, "attr", "") == "repeat_interleave":
        return _repeated(site, node, name)
    if called is None and isinstance(node.func, ast.Attribute) and node.func.attr in FINDS:
        known = site.value(node.func.value)
        sure = known.kind is ValueKind.TENSOR or (known.kind is ValueKind.UNKNOWN and node.func.attr != "unique")
        sure = sure or is_given_to_forward(site, node.func.value)
        name = node.func.attr if sure else None
    if name in FINDS or (name == "where" and len(node.args) == 1 and not node.keywords):
        return Untraced(
            node,
            "output has a data-dependent shape",
            "no static-shape rewrite; manually keep the mask and select with `torch.where`, or try " + CAPTURE,
        )
    return None


def _repeated(site: Site, node: ast.Call, name: str | None) -> Untraced | None:
    """`x.repeat_interleave(counts)`, and `x.repeat_interleave(counts, output_size=size)` where `size` may be None."""
    advice = "manually pass `output_size`, where the total is known"
    message = "output has a data-dependent shape"
    if name is not None and len(node.args) == 1 and not node.keywords:
        return Untraced(node, message, advice)
    named = [word.value for word in node.keywords if word.arg == "repeats"]
    counts = next(iter([*node.args[0 if name is None else 1 :][:1], *named]), None)
    size = keyword(node, "output_size")
    if counts is None or not (site.value(counts).is_tensor or is_given_to_forward(site, counts)):
        return None
    if size is None and all(word.arg is not None for word in node.keywords):
        return Untraced(node, message, advice)
    if not isinstance(size, ast.Name) or size.id not in absent_parameters(site):
        return None
    advice = f"Dynamo traces it where `{size.id}` is a number: pass one at each call"
    return Untraced(node, f"{message} where `{size.id}` is None", advice)


def read(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`x.item()`, `x.tolist()`, `int(x)`, `math.sqrt(x)`."""
    if called is not None and (called in _CASTS or called.startswith("math.")):
        counts = called == "builtins.range"
        tensors = (each for each in node.args if _is_read(site, each) or (counts and is_number(site, each)))
        return readback(node, "a Python scalar") if next(tensors, None) is not None else None
    if called is not None or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr in READS and not node.args and not site.value(node.func.value).is_python:
        return readback(node, READS[node.func.attr])
    return None


def told(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`str(x)`, `repr(x)`."""
    if called not in {"builtins.str", "builtins.repr"} or not any(site.value(each).is_tensor for each in node.args):
        return None
    advice = "a tensor has no value while Dynamo traces; manually make the text outside of the compiled function"
    return Untraced(node, "makes text of a tensor (device sync)", advice)


def _is_read(site: Site, node: ast.expr) -> bool:
    return (
        site.value(node).is_tensor
        or is_registered(site, node)
        or steps_through_tensor(site, node)
        or is_tensor_or_number(site, node)
    )


def readback(node: ast.Call, result: str) -> Untraced:
    """What is said of a value that is read back to Python."""
    advice = (
        "the result is used as a Python value; manually keep it a tensor, or compute it from shapes or Python values"
    )
    return Untraced(node, f"converts a tensor to {result} (device sync)", advice)


def sized(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`torch.arange(t)`, `x.view(t, -1)`."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _TAKES_SIZES:
        return None
    each = sized_by(site, node, sizes(node, called))
    if each is not None and torch_api.torch_function(called) is None and site.value(node.func.value).is_python:
        return None
    return each


def sizes(node: ast.Call, called: str | None) -> Iterator[ast.expr]:
    """Expressions that say how large the result is, if what is called is a function of torch or a method of tensors."""
    of_tensor = isinstance(node.func, ast.Attribute) and not is_name(node.func.value, "self")  # else a layer
    method = node.func.attr if of_tensor else ""  # type: ignore[attr-defined]
    name = torch_api.torch_function(called)
    given: list[ast.expr] = []
    if called == "torch.nn.functional.one_hot":
        given = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "num_classes")]
    elif name in SIZED:
        given = node.args[:1] if name == "full" else node.args
    elif name in {"pad", "interpolate"}:
        given = [*node.args[1:2], *(word.value for word in node.keywords if word.arg in {"pad", "size"})]
    elif name == "topk" or (name is None and method == "topk"):
        position = 0 if name is None else 1
        given = [*node.args[position : position + 1], *(word.value for word in node.keywords if word.arg == "k")]
    elif method == "split":
        given = [each.elt for each in node.args if isinstance(each, ast.ListComp)]
    elif name is None and method in RESHAPES:
        given = node.args[:1] if method == "new_full" else node.args
    for each in given:
        yield from listed(each)


def by_name(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`pack_padded_sequence(x, lengths)`, `random.random()`, `F.one_hot(ids)`."""
    function = node.func
    own = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    found = refused(node, called, site.value(function).instance_of if own else None)
    if found is None or (
        called is None and isinstance(function, ast.Attribute) and site.value(function.value).is_python
    ):
        return None
    return Untraced(node, found.does, found.advice)


def compared(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`torch.equal(a, b)`, `a.allclose(b)`, which read a bool back."""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if torch_api.torch_function(called) not in ANSWERS and not (
        called is None and method in ANSWERS and site.value(node.func.value).is_tensor  # type: ignore[attr-defined]
    ):
        return None
    advice = "manually keep it a tensor: `(a == b).all()`, `torch.isclose(a, b).all()`"
    return Untraced(node, "converts a comparison of tensors to a Python bool (device sync)", advice)


def ordered(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`all(x < y for x, y in zip(times[:-1], times[1:]))`, where `times` is a tensor."""
    if called not in {"builtins.any", "builtins.all"} or len(node.args) != 1:
        return None
    given = node.args[0]
    if not isinstance(given, (ast.GeneratorExp, ast.ListComp)) or not isinstance(given.elt, ast.Compare):
        return None
    sides = [each.id for each in (given.elt.left, given.elt.comparators[0]) if isinstance(each, ast.Name)]
    if len(sides) < 2 or not isinstance(given.elt.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
        return None
    pairs = (pair for each in given.generators for pair in in_step(each.target, each.iter, site.resolve))
    sources = [source for target, source in pairs if isinstance(target, ast.Name) and target.id in sides]
    if any(site.value(each).is_tensor for each in sources):
        advice = "manually compare the whole tensors: `(x < y).all()`"
        return Untraced(node, "data-dependent branch on the elements of a tensor", advice)
    return None


def apart(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`zip(*t)`, whose numbers make an index that cannot be traced."""
    if called != "builtins.zip" or len(node.args) != 1:
        return None
    given = node.args[0]
    if not isinstance(given, ast.Starred) or not site.value(given.value).is_tensor:
        return None
    return Untraced(
        node,
        "unpacks a tensor into 0-dim tensors",
        "torch.compile fails where one of them is an index; manually unpack it with `unbind`",
    )


def drawn(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`np.random.uniform()`, `np.random.default_rng().random()`."""
    if called is None:
        called = _generator(site, node)
    if called is None or not called.startswith("numpy.random.") or called == "numpy.random.seed":
        return None
    name = called.rpartition(".")[2]
    if name not in _TRACED_DRAWS:
        advice = "Dynamo does not trace it; manually draw it with `torch.rand`, or pass it in as an argument"
    elif name in _DRAWS_ARRAYS and _is_sized(node, name):
        return None
    else:
        advice = (
            "Dynamo traces it as a tensor of unknown value; "
            "manually draw it with `torch.rand`, or pass it in as an argument"
        )
    return Untraced(node, "draws a random number with NumPy", advice)


def _is_sized(node: ast.Call, name: str) -> bool:
    """True for `np.random.rand(3)` and `np.random.normal(0, 1, 3)`, which make an array of known shape."""
    if any(word.arg == "size" for word in node.keywords):
        return True
    return len(node.args) > (0 if name in {"rand", "randn", "random", "random_sample"} else 2)


def _generator(site: Site, node: ast.Call) -> str | None:
    """What `generator` was made by, for `generator.random()`: `numpy.random.default_rng`."""
    owner = owner_of(node)
    values = assigned(site, owner.id) if isinstance(owner, ast.Name) else [owner]
    made = {site.resolve(each.func) if isinstance(each, ast.Call) else None for each in values}
    name = next(iter(made)) if len(made) == 1 else None
    return name if name is not None and name.rpartition(".")[2] not in _TRACED_DRAWS else None


def given_generator(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`torch.randn(3, generator=generator)`, where that is a `torch.Generator` made here."""
    given = keyword(node, "generator")
    values = assigned(site, given.id) if isinstance(given, ast.Name) else []
    if not any(_is_generator(site, each) for each in values):
        return None
    return Untraced(
        node,
        "draws random numbers with a `torch.Generator`",
        "Dynamo does not trace it; manually draw them before the compiled function and pass them in as an argument",
    )


def _is_generator(site: Site, node: ast.expr) -> bool:
    while isinstance(node, ast.Call):
        if site.resolve(node.func) == "torch.Generator":
            return True
        node = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return False


def differentiable(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`torch.zeros(3, requires_grad=True)`, `x.detach().requires_grad_()`."""
    flag = keyword(node, "requires_grad")
    never = flag is None or (isinstance(flag, ast.Constant) and not flag.value)
    if not never and torch_api.torch_function(called) in torch_api.CREATION:
        return Untraced(
            node,
            f"creates a tensor that {'requires' if isinstance(flag, ast.Constant) else 'may require'} gradients",
            "Dynamo does not trace it; manually leave `requires_grad=True` out, or create the tensor before compiling",
        )
    function = node.func
    if called is not None or not isinstance(function, ast.Attribute) or function.attr != "requires_grad_":
        return None
    owner = function.value
    if site.value(owner).is_python:
        return None
    off = any(is_constant(each, False) for each in node.args)
    if isinstance(owner, ast.Attribute) or (not off and _is_handed_in(site, node, owner)):
        advice = "Dynamo does not trace it; manually set it before compiling, or compute with `detach()`"
        return Untraced(node, "changes whether gradients are required", advice)
    if not isinstance(owner, (ast.Call, ast.BinOp)) and (off or not _is_made_here(site, owner)):
        return None
    return Untraced(
        node,
        "makes an intermediate tensor require gradients",
        "Dynamo cannot return it, or what is computed from it, from a graph; "
        "manually call `requires_grad_` before the compiled function, or detach what is returned",
    )


def _is_handed_in(site: Site, node: ast.Call, owner: ast.expr) -> bool:
    """True for `data["pos"].requires_grad_()` and `y = x.requires_grad_()`; GM203 tells of the call alone."""
    if isinstance(owner, ast.Subscript):
        return written_text(owner.slice) is not None and root_of(owner) != site.evaluator.scope.self_name
    statement = site.place.statement
    alone = isinstance(statement, ast.Expr) and statement.value is node
    return isinstance(owner, ast.Name) and site.value(owner).is_tensor and not alone and not _is_made_here(site, owner)


def _is_made_here(site: Site, owner: ast.expr) -> bool:
    """True for the `y` of `y = x.clone()`."""
    return isinstance(owner, ast.Name) and site.value(owner).is_tensor and site.is_fresh(site.value(owner))


def explained(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`torch._check(n > 0, "no rows")`, and a message that is made of a tensor."""
    if torch_api.torch_function(called) not in CHECKS:
        return None
    message = keyword(node, "message") or next(iter(node.args[1:2]), None)
    if isinstance(message, (ast.Constant, ast.JoinedStr)) and not is_none(message):
        advice = "Dynamo takes a function alone; manually write `lambda: ...` around the message"
        return Untraced(node, "checks a condition with a message that is no function", advice)
    said = ast.walk(message) if isinstance(message, ast.Lambda) else ()
    names = (each for each in said if isinstance(each, ast.Name))
    tensor = next((each.id for each in names if site.value(each).is_tensor), None)
    if tensor is None:
        return None
    advice = f"Dynamo takes no message that reads `{tensor}`; manually give its numbers names in front of the check"
    return Untraced(node, "checks a condition with a message that is made of a tensor", advice)


def custom_function(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`Entmax.apply(x)`, where `forward` of the autograd function is a class method."""
    owner, _, method = (called or "").rpartition(".")
    facts = site.evaluator.scope.index.class_facts(owner) if method == "apply" else None
    forward = site.evaluator.scope.index.function(facts.methods.get("forward", "")) if facts is not None else None
    if (
        facts is None
        or forward is None
        or "classmethod" not in {each.rpartition(".")[2] for each in forward.decorators}
    ):
        return None
    return Untraced(
        node,
        "runs an autograd function whose `forward` is a class method",
        "Dynamo traces only static methods there; manually make `forward` and `backward` static methods",
    )


CALLS: tuple[Ask, ...] = (
    found, compared, apart, ordered, given_generator, differentiable, drawn, by_name, read, told, sized, recurrent,
    constructed, custom_function, of_foreign_object, made_foreign, compiled_elsewhere, explained,
)  # fmt: skip
CALLS_IN_LOOPS: tuple[Ask, ...] = (found, apart, read, sized)
