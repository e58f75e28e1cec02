"""What an expression seems to hold: a tensor, a mask, a random number. Guesses; an edit asks anew while traced."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.likely_tensors import first_input, is_no_tensor
from graphmend_codemod.analysis.patterns import all_given, asks_identity, is_name, is_target
from graphmend_codemod.analysis.scope import defaults_of, parameters, walk
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.project.index.facts import AttributeFact, AttributeKind
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.bindings import is_assigned
from graphmend_codemod.rules.proofs.untraced.frames import Source
from graphmend_codemod.rules.proofs.untraced.value_sources import AS_THEIR_ARGUMENTS, Guess, Leaf

_OF_PYTHON = frozenset(name for kind in (str, bytes, list, dict, set, tuple, int, float) for name in dir(kind))
_TENSOR_METHODS = ((torch_api.RETURNS_TENSOR - _OF_PYTHON) | {"topk", "kthvalue", "cummax", "cummin", "aminmax"}) - {
    "where",
    "tensor",
    "pad",
    "normalize",
    "linear",
    "embedding",
}
"""Methods whose name says that the result is a tensor, an array, or several."""
_NO_TENSORS = ("is_", "get_", "set_", "are_", "_")
_NO_TENSOR = frozenset(
    """allclose autocast broadcast_shapes broadcast_tensors can_cast chunk compile cond device dtype enable_grad equal
    finfo iinfo inference_mode initial_seed load manual_seed meshgrid no_grad numel promote_types result_type save seed
    split tensor_split typename unbind unique_consecutive use_deterministic_algorithms vmap while_loop""".split()
)
"""Functions of torch that return no tensor, or several; most others return one."""
_KEEPS_MASK = torch_api.LAYOUT | {"clone", "contiguous", "detach", "repeat", "roll", "flip", "gather"}
"""Methods whose result is a mask where what they are asked of is one."""
_PARTS_OF_TORCH = ("torch.linalg.", "torch.fft.", "torch.special.")
_RANDOM = frozenset({"random.randint", "random.randrange", "random.uniform", "random.randbytes", "random.getrandbits"})
_OF_NUMPY = frozenset(
    """abs add all allclose amax amin any arange arccos arcsin arctan argmax argmin argsort array asarray ceil clip
    concatenate cos cumsum diff divide dot exp eye flip floor full hstack inner isfinite isinf isnan linspace log log10
    log1p log2 matmul max maximum mean median meshgrid min minimum mod multiply nonzero ones outer pad power prod round
    sign sin sort sqrt square stack std subtract sum tan tanh tile transpose unique var vstack where zeros
    int8 int16 int32 int64 uint8 float16 float32 float64""".split()
)
_COMPARES = frozenset("eq ne gt lt ge le bool logical_and logical_or logical_not isin isnan isinf".split())


_MAKES = re.compile(r"torch\.|[<>]|[!=]=")
_CALLED = re.compile(r"torch\.(\w+)\(")
_TENSOR = re.compile(r"[\"']?(?:torch\.)?\w*Tensor[\"']?")


def seems_tensor(site: Site, node: ast.expr) -> bool:
    """True where `node` is a tensor, or an array of NumPy, by the dataflow or by what the rest of the file says."""
    return _seems(site, node, "seems tensor", _is_tensor)


def seems_tensor_of_torch(site: Site, node: ast.expr) -> bool:
    """The same, but for arrays of NumPy: in eager mode they are no tensors."""
    return _seems(site, node, "seems tensor of torch", _is_tensor_of_torch)


def _seems(site: Site, node: ast.expr, question: str, leaf: Leaf) -> bool:
    value = site.value(node)
    if value.is_tensor or value.is_python:
        return value.is_tensor
    return site.remembered(question, node, lambda: Guess(site).holds(node, leaf))


def _is_tensor_of_torch(guess: Guess, source: Source) -> bool | None:
    node: ast.AST = source.node
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Call):
            of_numpy = (guess.resolve(source, node.func) or "").startswith("numpy.")
            if of_numpy or getattr(node.func, "attr", "") == "numpy":
                return False
        node = node.func if isinstance(node, ast.Call) else node.value
    return _is_tensor(guess, source)


def seems_number(site: Site, node: ast.expr) -> bool:
    """True for a tensor in the place of a number, where that is no index of several elements for all one sees."""
    if isinstance(node, (ast.Constant, ast.Compare, ast.BoolOp)):
        return False
    return seems_tensor(site, node)


def seems_mask(site: Site, node: ast.expr) -> bool:
    """True where `node` seems to be the result of a comparison of tensors."""
    value = site.value(node)
    if (value.is_python and not _is_item(node)) or value.dtype is not None:
        return value.is_tensor and value.dtype == "torch.bool"
    return site.remembered("seems mask", node, lambda: Guess(site).holds(node, _is_mask))


def _has_word(site: Site, question: str, asked: Callable[[str], bool]) -> bool:
    """True where the function reads a name like that: most have none, and are not looked at any closer."""
    outline = site.evaluator.scope.outline
    if question not in outline.notes:
        outline.notes[question] = any(map(asked, outline.words))
    found: bool = outline.notes[question]
    return found


_NAMES_OF_LENGTHS = ("lens", "lengths")
_DRAWS = frozenset({"randint", "randrange", "uniform", "randbytes", "getrandbits"})


def _is_item(node: ast.expr) -> bool:
    """True for `self.kept["rows"]`: what the dict was made of says nothing of what it was given since."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is str


def seems_length(site: Site, node: ast.expr) -> bool:
    """True for an element, or the largest one, of what is named as a tensor of lengths: `ys_lens`, `input_lengths`."""
    if not _has_word(site, "lengths", lambda word: word.endswith(_NAMES_OF_LENGTHS)) or site.value(node).is_python:
        return False
    return site.remembered("seems length", node, lambda: Guess(site).holds(node, _is_length))


def is_drawn(site: Site, node: ast.expr) -> bool:
    """True for the call itself that draws such a number, or for a name that holds its result."""
    if not _has_word(site, "draws", lambda word: word in _DRAWS):
        return False
    return site.remembered("drawn", node, lambda: Guess(site).holds(node, _is_draw))


def seems_drawn(site: Site, node: ast.expr) -> bool:
    """True for a number that `random.randint` or `random.uniform` drew: Dynamo keeps it in a tensor."""
    if not _has_word(site, "draws", lambda word: word in _DRAWS):
        return False
    return site.remembered("seems drawn", node, lambda: Guess(site).holds(node, _is_drawn))


def _is_tensor(guess: Guess, source: Source) -> bool | None:
    node, value = source.node, guess.value(source)
    if value is not None and value.kind is not ValueKind.UNKNOWN:
        return value.kind is ValueKind.TENSOR
    if isinstance(node, ast.Name) and _LENGTHS.search(node.id) is not None:
        return _is_length(guess, source)
    if isinstance(node, ast.Name):
        return _says_tensor(source)
    if isinstance(node, ast.Compare):
        return False if asks_identity(node) else None
    if isinstance(node, ast.Attribute):
        if node.attr in torch_api.PYTHON_ATTRIBUTES:
            return False
        own = is_name(node.value, "self")
        return _is_held_tensor(guess, source) if own else _is_others_tensor(guess, source)
    if isinstance(node, ast.Call):
        return _returns_tensor(guess, source, node)
    follows = (ast.BinOp, ast.BoolOp, ast.IfExp, ast.NamedExpr, ast.Subscript, ast.UnaryOp)
    return None if isinstance(node, follows) else False


def _says_tensor(source: Source) -> bool | None:
    """What the annotation or the default of a parameter says; None without either, and for other names."""
    assert isinstance(source.node, ast.Name)
    name = source.node.id
    given = next((each for each in parameters(source.frame.node) if each.arg == name), None)
    if given is None:
        return None
    if given.annotation is None and name == first_input(source.frame.node):
        return None if any(is_no_tensor(each, name) for each in walk(source.frame.node)) else True
    if given.annotation is not None and _TENSOR.fullmatch(ast.unparse(given.annotation)) is not None:
        return True
    if given.annotation is not None:  # `size: int | None = None` says nothing of what the function puts there
        return None if is_assigned(source.frame.node, name) else False
    default = next((default for each, default in defaults_of(source.frame.node) if each is given), None)
    plain = isinstance(default, ast.Constant) and default.value is not None
    return False if plain and not is_assigned(source.frame.node, name) else None


def _is_held_tensor(guess: Guess, source: Source) -> bool | None:
    """True for `self.scale` where the class gives it a tensor or registers it."""
    assert isinstance(source.node, ast.Attribute)
    facts = guess.class_facts(source.frame)
    fact = facts.attributes.get(source.node.attr) if facts is not None else None
    if fact is None and source.frame.own:
        return None if facts is not None and source.node.attr in facts.properties else False
    return _is_tensor_fact(guess, fact)


def _is_others_tensor(guess: Guess, source: Source) -> bool | None:
    """True for `self.state.step` where the class of `self.state`, in whatever file, registers or makes a tensor."""
    assert isinstance(source.node, ast.Attribute)
    value = guess.site.value(source.node.value) if source.frame.own else None
    made = value.instance_of if value is not None else None
    facts = guess.site.evaluator.scope.index.class_facts(made) if made is not None else None
    return _is_tensor_fact(guess, facts.attributes.get(source.node.attr) if facts is not None else None)


def _is_tensor_fact(guess: Guess, fact: AttributeFact | None) -> bool | None:
    """Whether an attribute holds a tensor by what a class gives it once; None where that has to be followed."""
    if fact is None or fact.kind is AttributeKind.CHANGED:
        return None
    if fact.kind is AttributeKind.OTHER:
        function = _CALLED.match(fact.text)
        made = function is not None and function[1] in torch_api.FUNCTIONS_RETURNING_TENSOR
        return True if made else None if _MAKES.search(fact.text) else False
    if fact.kind is AttributeKind.ARGUMENT:
        return None if fact.callee is None else _TENSOR.fullmatch(fact.callee) is not None
    if fact.kind is AttributeKind.CALL:
        of_project = fact.callee is not None and guess.index.function(fact.callee) is not None
        return None if of_project else torch_api.torch_function(fact.callee) in torch_api.FUNCTIONS_RETURNING_TENSOR
    return fact.kind in {AttributeKind.BUFFER, AttributeKind.PARAMETER, AttributeKind.ANNOTATED}


def _returns_tensor(guess: Guess, source: Source, node: ast.Call) -> bool | None:
    called = guess.resolve(source, node.func)
    if called is not None:
        if called in AS_THEIR_ARGUMENTS:
            return None
        function = torch_api.torch_function(called)
        if function is not None:
            return function[:1].islower() and function not in _NO_TENSOR and not function.startswith(_NO_TENSORS)
        if called.startswith("numpy."):
            return called[6:] in _OF_NUMPY or called.startswith("numpy.linalg.")
        if called.startswith(_PARTS_OF_TORCH):
            return True
        return None if guess.index.function(called) is not None else False
    if not isinstance(node.func, ast.Attribute):
        return None if isinstance(node.func, ast.Name) else False
    method = node.func.attr
    if method == "numpy":
        return True  # Dynamo traces arrays of NumPy as tensors
    if method in torch_api.PYTHON_METHODS or method in {"keys", "items", "values"}:
        return False
    if method == "get":
        return None
    if method in _TENSOR_METHODS or (method.endswith("_") and method[:-1] in _TENSOR_METHODS):
        base = guess.resolve(source, node.func.value)
        return base is None or not base.startswith(("math", "random", "os"))
    return None


def _is_mask(guess: Guess, source: Source) -> bool | None:
    node, value = source.node, guess.value(source)
    known = value is not None and (value.is_python or (value.dtype or "").startswith("torch."))
    if value is not None and known and not _is_item(node):
        return value.is_tensor and value.dtype == "torch.bool"
    if isinstance(node, ast.UnaryOp):
        return bool(isinstance(node.op, ast.Invert))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = all_given(node)
        if node.func.attr in _COMPARES or any(guess.resolve(source, each) == "torch.bool" for each in given):
            return True
        if node.func.attr in {"any", "all"} and given:
            return True  # along a dimension
        if node.func.attr in torch_api.RETURNS_TENSOR - _KEEPS_MASK:
            return False
    return (
        None if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.IfExp, ast.Compare)) else False
    )


def _is_length(guess: Guess, source: Source) -> bool | None:
    node = source.node
    if isinstance(node, ast.Name):
        given = next((each for each in parameters(source.frame.node) if each.arg == node.id), None)
        named = given is not None and _LENGTHS.search(node.id) is not None
        if named and given is not None and given.annotation is not None:
            return _TENSOR.fullmatch(ast.unparse(given.annotation)) is not None
        return True if named else None
    if isinstance(node, ast.Call):
        called = guess.resolve(source, node.func)
        if called is not None:
            reduces = torch_api.torch_function(called) in {"max", "amax", "min", "amin", "sum", "clamp"}
            return any(guess.holds_in(each, source.frame, _is_length) for each in node.args) if reduces else False
        return None if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS_LENGTHS else False
    return None if isinstance(node, (ast.BinOp, ast.Subscript, ast.UnaryOp)) else False


_LENGTHS = re.compile(r"(?:lens|lengths)$")
_KEEPS_LENGTHS = frozenset({"max", "min", "sum", "to", "long", "int", "cpu", "clamp"})


def _is_drawn(guess: Guess, source: Source) -> bool | None:
    node = source.node
    if isinstance(node, ast.Call):
        called = guess.resolve(source, node.func)
        if called in _RANDOM or _is_seeded_draw(guess, source, node):
            return True
        return None if called in AS_THEIR_ARGUMENTS or called == "builtins.int" else False
    if isinstance(node, ast.Name) and _is_symbol(source, node.id):
        return False
    return None if isinstance(node, (ast.Name, ast.BinOp, ast.Compare, ast.UnaryOp)) else False


def _is_symbol(source: Source, name: str) -> bool:
    """True for a name that a compile path gives a symbol of the graph, in the place of what eager mode draws."""
    made = (part.value for part in walk(source.frame.node) if isinstance(part, ast.Assign) and is_target(part, name))
    return any(isinstance(each, ast.Call) and is_name(each.func, "_number_in_graph") for each in made)


def _is_draw(guess: Guess, source: Source) -> bool | None:
    node = source.node
    if isinstance(node, ast.Call):
        return guess.resolve(source, node.func) in _RANDOM or _is_seeded_draw(guess, source, node)
    return None if isinstance(node, ast.Name) else False


def _is_seeded_draw(guess: Guess, source: Source, call: ast.Call) -> bool:
    """True for `rand.randrange(3)` where the file shows that `rand` is a `random.Random`."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _DRAWS:
        return False
    return guess.holds_in(function.value, source.frame, _is_generator)


def _is_generator(guess: Guess, source: Source) -> bool | None:
    if isinstance(source.node, ast.Call):
        return guess.resolve(source, source.node.func) == "random.Random"
    return None if isinstance(source.node, (ast.Name, ast.Attribute)) else False
