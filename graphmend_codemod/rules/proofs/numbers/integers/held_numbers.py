"""Which Python integers a tensor holds, where it was made of them.

What an expression holds is a `Held`: one integer, a list of them, or a list of rows, as text. It is found through
names, elements, arithmetic, what joins tensors, attributes that the constructor sets, and calls of short methods.
Beside a statement that makes such a tensor, the compile path keeps a copy of the numbers: what becomes of the list
afterwards does not matter, and nothing is computed twice. Only the tensor must not be written before it is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.patterns import (
    all_given,
    is_integer,
    is_literal,
    is_name,
    is_none,
    is_shape,
    is_size,
    last_name,
    only_target,
    rebinds,
    without_minus,
    written_integer,
)
from graphmend_codemod.analysis.scope import FunctionNode, dotted, parameters, walk, walk_in_layers
from graphmend_codemod.analysis.speculation import is_loud_property, short
from graphmend_codemod.analysis.torch_api import INT64_NAMES, TENSOR_MAKERS, torch_function
from graphmend_codemod.analysis.values import UNKNOWN, Value
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks
from graphmend_codemod.rules.proofs.number_read import number_read
from graphmend_codemod.rules.proofs.numbers.integers.held import ARITHMETIC, Copy, Held, added
from graphmend_codemod.rules.proofs.numbers.integers.integer_arrays import ARRAYS
from graphmend_codemod.rules.proofs.sizes.shapes_here import is_shape_here

TYPED = frozenset({"torch.IntTensor", "torch.LongTensor"})
WHOLE = INT64_NAMES | {"torch.int32", "torch.int"}
_MAKERS = TENSOR_MAKERS | TYPED | ARRAYS
_OF_LIST = {"max": "max", "amax": "max", "min": "min", "amin": "min", "sum": "sum"}
_FILLED = {"ones_like": 1, "zeros_like": 0}
_MOVES = frozenset("clone contiguous cpu cuda detach long to".split())
_COPIED = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple,
    ast.ListComp, ast.comprehension, ast.operator, ast.unaryop, ast.expr_context, ast.Starred,
)  # fmt: skip


_COPIES = ("number_in_", "numbers_in_", "rows_in_")


class HeldNumbers:
    """What expressions of a function hold; `copies` are what that needs."""

    def __init__(self, site: Site, function: FunctionNode) -> None:
        self.site, self.function = site, function
        self.blocks = Blocks(function)
        self.copies: list[Copy] = []
        self._inlined = False

    def held(self, node: ast.expr, at: ast.stmt, depth: int) -> Held | None:
        """What a node of a statement holds: a number, a list (`depth` 1), or rows; None where that is not known."""
        if isinstance(node, ast.Name):
            return self._named(node, at, depth)
        found = self._several(node, at, depth) if depth else self._number(node, at)
        return found if found is not None or depth else self._leaf(node, at)

    # one number

    def _number(self, node: ast.expr, at: ast.stmt) -> Held | None:
        if is_integer(node) or is_size(node):
            return Held(self._text(node), tensor=False, once=self._once(node))
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            return self._end(node, at) or self._sum(node, at)
        if isinstance(node, ast.UnaryOp) and (inner := without_minus(node)) is not node:
            held = self.held(inner, at, 0)
            return held and Held(f"-{held.operand()}", 0, held.tensor, asked=held.exact(), once=held.once)
        if isinstance(node, ast.Subscript) and (place := written_integer(node.slice)) is not None:
            several = self.held(node.value, at, 1)
            return several and Held(f"{several.text}[{place}]", asked=several.exact(), once=several.once)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        return self._called(node, at) if isinstance(node, ast.Call) else None

    def _sum(self, node: ast.BinOp, at: ast.stmt) -> Held | None:
        left, right = self.held(node.left, at, 0), self.held(node.right, at, 0)
        if left is None or right is None:
            return None
        text = added(left, node.op, right)
        once = left.once or right.once
        return Held(text, 0, left.tensor or right.tensor, asked=(*left.exact(), *right.exact()), once=once)

    def _called(self, call: ast.Call, at: ast.stmt) -> Held | None:
        read = number_read(self.site, call, {"builtins.int"})
        if read is not None:
            held = self.held(read, at, 0)
            return held and held._replace(tensor=False)
        if (given := self.made_of(call)) is not None:
            held = self.held(given, at, 0)
            return held and held._replace(tensor=True)
        name, operands = self.site.operation(call)
        if name in _OF_LIST and len(operands) == 1 and not call.keywords:
            return self._reduced(_OF_LIST[name], operands[0], at)
        if self.site.resolve(call.func) in {"builtins.max", "builtins.min"} and not call.keywords:
            numbers = [self.held(each, at, 0) for each in call.args]
            known = [each for each in numbers if each is not None]
            text = f"{self._text(call.func)}({', '.join(each.text for each in known)})"
            asked = tuple(part for each in known for part in each.exact())
            whole = len(known) == len(numbers) > 1
            once = next((each.once for each in known if each.once is not None), None)
            return Held(text, 0, any(each.tensor for each in known), asked=asked, once=once) if whole else None
        return self.held(call.func.value, at, 0) if self._moves(call) else None  # type: ignore[attr-defined]

    def _reduced(self, function: str, node: ast.expr, at: ast.stmt) -> Held | None:
        several = self.held(node, at, 1)
        if several is None:
            return None
        text = f"{function}({several.text})"
        bounds = (f"-(2**63) <= {text} < 2**63",) if function == "sum" else ()  # a tensor counts on from the smallest
        return Held(text, asked=(*several.exact(), *bounds), once=several.once)

    def _leaf(self, node: ast.expr, at: ast.stmt) -> Held | None:
        """A name, attribute or element that may be a Python number; what a call gave may as well be a tensor."""
        bound = self.blocks.binding_before(at, node.id) if isinstance(node, ast.Name) else None
        if bound is not None and isinstance(bound.value, ast.Call) and not self._value(node, at).is_python:
            return None
        looks = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and next(self._effects(node), None) is None
        if not looks or dotted(getattr(node, "value", node)) is None or self._is_tensor(node, at):
            return None
        return Held(self._text(node), tensor=False, sure=False)

    def _attribute(self, node: ast.Attribute) -> Held | None:
        """A tensor that the constructor keeps."""
        return None

    def _end(self, node: ast.BinOp, at: ast.stmt) -> Held | None:
        """`positions[-1] + 1`, where positions were counted."""
        return None

    # lists

    def _several(self, node: ast.expr, at: ast.stmt, depth: int) -> Held | None:
        if isinstance(node, ast.Subscript):
            return self._cut(node, at) if depth == 1 else None
        if not isinstance(node, ast.Call):
            return None
        if (given := self.made_of(node)) is not None:
            return self._listed(node, given, at, depth)
        name, operands = self.site.operation(node)
        if depth == 1 and name in {"cat", "concat", "stack"} and operands and self._is_first(node):
            return self._joined(operands[0], at, int(name != "stack"))
        if depth == 1 and name == "unsqueeze" and len(all_given(node)) == 1 and is_literal(all_given(node)[0], 0):
            held = self.held(operands[0], at, 0)
            return held and held._replace(text=f"[{held.text}]", depth=1)
        if depth == 1 and name in _FILLED and len(operands) == 1 and self._is_whole(node):
            held = self.held(operands[0], at, 1)
            return held and Held(f"[{_FILLED[name]}] * len({held.text})", 1, asked=held.asked)
        return self.held(node.func.value, at, depth) if self._moves(node) else None  # type: ignore[attr-defined]

    def _cut(self, node: ast.Subscript, at: ast.stmt) -> Held | None:
        if is_none(node.slice):
            held = self.held(node.value, at, 0)
            return held and held._replace(text=f"[{held.text}]", depth=1)
        cut = node.slice
        if not isinstance(cut, ast.Slice) or cut.step is not None:
            return None
        if not all(bound is None or is_integer(bound) for bound in (cut.lower, cut.upper)):
            return None
        held = self.held(node.value, at, 1)
        return held and held._replace(text=f"{held.text}[{ast.unparse(cut)}]")

    def _joined(self, given: ast.expr, at: ast.stmt, depth: int) -> Held | None:
        parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
        found = [self.held(each, at, depth) for each in parts]
        known = [each for each in found if each is not None and each.tensor]
        if not known:
            return None
        if len(known) < len(parts):
            unknown = next(part for part, each in zip(parts, found, strict=True) if each not in known)
            raise NotProven(f"cannot infer that `{short(unknown)}` is made of sizes")
        texts = []
        for each in known:
            inner = each.text if each.depth == 0 else f"*{each.text}"
            plain = each.depth == 1 and each.text.startswith("[") and each.text.endswith("]") and "*[" not in inner[2:]
            texts.append(inner[2:-1] if plain and "] * len(" not in each.text else inner)
        asked = tuple(part for each in known for part in each.asked)
        once = next((each.once for each in known if each.once is not None), None)
        return Held(f"[{', '.join(texts)}]", 1, sure=all(each.sure for each in known), asked=asked, once=once)

    def _listed(self, made: ast.Call, given: ast.expr, at: ast.stmt, depth: int) -> Held | None:
        once = self._once(given)
        text = self._text(given)
        if isinstance(given, (ast.List, ast.Tuple)):
            rows = sum(isinstance(each, (ast.List, ast.Tuple, ast.ListComp)) for each in given.elts)
            if not given.elts or rows != (len(given.elts) if depth == 2 else 0):
                return None
            if depth == 2:
                return Held(f"[{text[1:-1]}]", 2, sure=False, once=once)
            found = [self._element(each, at) for each in given.elts]
            parts = [each.text for each in found]
            sure = all(each.sure for each in found)
            needs = tuple(part for each in found for part in each.asked)
            return Held(f"[{', '.join(parts)}]", 1, sure=sure, asked=needs, once=once)
        if isinstance(given, ast.ListComp):
            rows = isinstance(given.elt, (ast.List, ast.Tuple))
            if isinstance(given.elt, ast.BinOp) and isinstance(given.elt.op, ast.Div):
                return None  # never integers: a header that asks for them would not hold
            return Held(text, depth, sure=False, once=once) if rows is (depth == 2) else None
        read = isinstance(given, (ast.Name, ast.Attribute, ast.Subscript)) or is_shape(given)
        method = isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and not all_given(given)
        if not (read or method) or self._is_tensor(given, at):
            return None
        sized = self.site.resolve(made.func) in TYPED  # of a shape, it would make one of that shape
        asks = f"type({text}) in (list, tuple)" if sized else f"isinstance({text}, (list, tuple))"
        sure = self._is_shape(given) and not sized
        typed = sized or any(word.arg == "dtype" for word in made.keywords)
        some = () if typed else (f"len({text}) > 0",)  # of no sizes, torch makes a floating tensor
        asked = some if sure else () if once else (asks,)
        if depth == 2:
            asked = (*asked, f"all(isinstance(row, (list, tuple)) for row in {text})")
            return Held(f"[tuple(row) for row in {text}]", 2, sure=False, asked=asked, once=once)
        return Held(f"[*{text}]", 1, sure=sure, asked=asked, once=once)

    def _element(self, node: ast.expr, at: ast.stmt) -> Held:
        """One element of a list that is written out, or several with a star."""
        if isinstance(node, ast.Starred):
            return Held(self._text(node), sure=self._is_shape(node.value))
        held = self.held(node, at, 0)
        if held is None and not isinstance(node, ast.Name):
            raise NotProven(f"cannot infer that `{short(node)}` is an integer; assign it to a variable first")
        return held if held is not None else Held(self._text(node), tensor=False, sure=False)

    # names

    def _named(self, node: ast.Name, at: ast.stmt, depth: int) -> Held | None:
        name = node.id
        if self._is_shadowed(at, name):
            return None
        bound = self.blocks.binding_before(at, name)
        if bound is None:
            return self._leaf(node, at) if depth == 0 else None
        held = self.held(bound.value, bound, depth) if len(bound.targets) == 1 else None
        if held is None or not held.tensor or not isinstance(bound.targets[0], ast.Name):
            return self._leaf(node, at) if depth == 0 else None
        return self._kept(bound, name, held, at)

    def _kept(self, statement: ast.Assign, tensor: str, held: Held, at: ast.stmt) -> Held:
        """A copy of what a statement gives a name, kept beside it; another copy that says the same is one, too."""
        wish = f"{('number', 'numbers', 'rows')[held.depth]}_in_{tensor}"
        made = next((each for each in self.copies if each.statement is statement and each.wish == wish), None)
        if made is None:
            known = held.text.startswith("end_of_") or any(held.text == each.name for each in self.copies)
            there = held.text if known else self._copied_before(statement, wish, held)
            taken = sum(each.wish == wish for each in self.copies)
            name = there or self.site.free_name(f"{wish}_{taken + 1}" if taken else wish)
            made = Copy(statement, tensor, name, wish, "" if there else held.text, held.asked, held.once, [])
            self.copies.append(made)
        made.readers.append(at)
        if held.text == made.name:
            return held
        return held._replace(
            text=made.name, asked=(made.name if held.depth else f"{made.name} is not None",), once=None
        )

    def _copied_before(self, statement: ast.stmt, wish: str, held: Held) -> str | None:
        """The name of a copy that stands there already."""
        wanted = ast.dump(ast.parse(held.text, mode="eval").body)
        for before in reversed(self.blocks.preceding(statement)):
            copies = [part for part in walk(before) if last_name(only_target(part) or part).startswith(_COPIES)]
            for each in (part for part in copies if isinstance(part, ast.Assign)):
                value = each.value.body if isinstance(each.value, ast.IfExp) else each.value
                if last_name(each.targets[0]).startswith(wish) and ast.dump(value) == wanted:
                    return last_name(each.targets[0])
            if not copies:
                break
        return None

    # small questions

    def _text(self, node: ast.expr) -> str:
        return ast.unparse(node) if self._inlined else self.site.text(node)

    def _is_shape(self, node: ast.expr) -> bool:
        return not self._inlined and is_shape_here(self.site, node)

    def _value(self, node: ast.expr, at: ast.stmt) -> Value:
        site = self.site.at(at)
        return site.value(node) if site is not None else UNKNOWN

    def _is_tensor(self, node: ast.expr, at: ast.stmt) -> bool:
        """True for what is a tensor for certain, or as its annotation says."""
        value = self._value(node, at)
        if not value.is_tensor or not value.hint:
            return value.is_tensor
        named = (each.annotation for each in parameters(self.function) if is_name(node, each.arg))
        return any(each is not None and "Tensor" in ast.unparse(each) for each in named)

    def _is_shadowed(self, at: ast.stmt, name: str) -> bool:
        """True where a comprehension, a lambda or `:=` of the statement binds the name."""
        inner = (ast.comprehension, ast.Lambda, ast.NamedExpr)
        parts = [part for part in walk_in_layers(at) if isinstance(part, inner)]
        targets = [part.args if isinstance(part, ast.Lambda) else part.target for part in parts]
        return any(rebinds(each, name) or any(getattr(a, "arg", "") == name for a in walk(each)) for each in targets)

    def made_of(self, call: ast.Call) -> ast.expr | None:
        """`given` for `torch.tensor(given, dtype=torch.long)`."""
        qualified, words = self.site.resolve_global(call.func), {word.arg: word.value for word in call.keywords}
        if qualified not in _MAKERS and torch_function(qualified) not in {"tensor", "as_tensor"}:
            return None
        if len(call.args) != 1 or isinstance(call.args[0], ast.Starred) or not words.keys() <= {"dtype", "device"}:
            return None
        plain = not words or qualified not in TYPED | ARRAYS
        return call.args[0] if plain and self._is_whole(call) else None

    def _is_whole(self, call: ast.Call) -> bool:
        """False where a call asks for a dtype that is no integer of 32 or 64 bits."""
        asked = [word.value for word in call.keywords if word.arg == "dtype"]
        return all(self.site.resolve_global(each) in WHOLE for each in asked)

    def _is_first(self, call: ast.Call) -> bool:
        """True for what is joined along the first dimension."""
        asked = [*call.args[1:], *(word.value for word in call.keywords)]
        return all(is_literal(each, 0) for each in asked) and all(word.arg == "dim" for word in call.keywords)

    def _moves(self, call: ast.Call) -> bool:
        """True for `t.to(x.device)`, `t.cuda()`, `t.long()`: methods after which a tensor has the same integers."""
        name, given = self.site.operation(call)
        if (
            not isinstance(call.func, ast.Attribute)
            or name not in _MOVES
            or not given
            or given[0] is not call.func.value
        ):
            return False
        kinds = (each for each in all_given(call) if self.site.resolve_global(each) not in INT64_NAMES)
        return all(isinstance(each, ast.Constant) or (dotted(each) or "").endswith("device") for each in kinds)

    def _once(self, node: ast.expr) -> str | None:
        """Why the numbers may not be computed a second time."""
        if next(self._effects(node), None) is None:
            return None
        return f"`{short(node)}` would be computed twice; assign it to a variable first"

    def _effects(self, node: ast.AST) -> Iterator[ast.AST]:
        for part in walk_in_layers(node):
            size = isinstance(part, ast.Call) and (is_size(part) or is_shape(part))
            length = isinstance(part, ast.Call) and self.site.resolve_global(part.func) == "builtins.len"
            loud = isinstance(part, ast.Attribute) and is_loud_property(self.site.evaluator, part.attr)
            if loud or not (isinstance(part, _COPIED) or size or length):
                yield part
