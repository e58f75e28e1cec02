"""Sums, means and losses of the rows that a mask chooses: functions of torch, and the layers of torch that call them.

A layer is asked for its class and its reduction while Dynamo traces, so that another one in its place runs the original
statement.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import all_names, is_integer, last_name, size_asked, written_integer
from graphmend_codemod.analysis.scope import dotted, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import stores_of
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks
from graphmend_codemod.rules.proofs.rowwise.chosen_elements import ChosenElements
from graphmend_codemod.rules.proofs.rowwise.row_values import OTHER, Held, NotRowwise, What, elementwise
from graphmend_codemod.rules.proofs.untraced.evidence import assigned

if TYPE_CHECKING:
    from typing import TypeGuard

_REDUCED = {"sum": "_sum_under", "mean": "_mean_under"}
_LOSSES = frozenset(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits".split()
)
_NUMBERS = frozenset({"beta", "delta"})
_CLASSES = frozenset({"cross_entropy", "nll_loss"})
_LAYERS = {
    "CrossEntropyLoss": "cross_entropy",
    "NLLLoss": "nll_loss",
    "MSELoss": "mse_loss",
    "L1Loss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss",
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
}
_OPTIONS = {"SmoothL1Loss": "beta", "HuberLoss": "delta"}
_ABSENT = {"BCELoss": ("weight",), "BCEWithLogitsLoss": ("weight", "pos_weight")}
_SAME_ELEMENTS = frozenset("contiguous clone to float double half bfloat16 long int cuda cpu".split())
REDUCTIONS = _LOSSES | _CLASSES | _REDUCED.keys()
"""What makes one element of the rows that a mask chooses."""


def is_loss(site: Site, call: ast.Call) -> bool:
    """True for `x.mean()`, `F.mse_loss(x, y)`, and for `self.loss(x, y)` where that is a loss of torch."""
    name = last_name(call.func)
    return name in REDUCTIONS or layer_of_loss(site, call.func) is not None


def layer_of_loss(site: Site, node: ast.expr) -> str | None:
    """`MSELoss` for what the source says to be such a layer; None for any other."""
    if dotted(node) is None:
        return None
    name = torch_api.torch_module_class(site.value(node).instance_of)
    if name is None and isinstance(node, ast.Name):
        made = {_class_of(site, each) for each in assigned(site, node.id)}
        name = made.pop() if len(made) == 1 else None
    return name if name in _LAYERS else None


def _class_of(site: Site, node: ast.expr) -> str | None:
    return torch_api.torch_module_class(site.resolve(node.func)) if isinstance(node, ast.Call) else None


class MaskedLosses(ChosenElements):
    """What losses make of rows. `made` are the layers that the statements make, `called` what stands for a loss."""

    def __init__(self, site: Site, mask: ast.expr, ranks: dict[str, int], bare: dict[str, None]) -> None:
        super().__init__(site, mask, ranks, bare)
        self.made: dict[str, ast.Call] = {}
        self.called: dict[int, tuple[str, list[str]]] = {}

    def bind(self, target: ast.expr, held: Held, node: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            self.made.pop(target.id, None)
            value = node.value if isinstance(node, ast.Assign) else None
            if isinstance(value, ast.Call) and _class_of(self.site, value) in _LAYERS:
                self.made[target.id] = value
        super().bind(target, held, node)

    def call(self, node: ast.Call) -> Held:
        """`loss(x, y)` of a layer that computes a loss."""
        root, made = (dotted(node.func) or "").partition(".")[0], self.maker(node.func)
        own = isinstance(node.func, ast.Name) and self.site.evaluator.scope.is_local(root)
        layer = _class_of(self.site, made) if made is not None else None
        if root and root not in self.env and not own:
            layer = layer_of_loss(self.site, node.func)
        if layer is None or len(node.args) != 2 or node.keywords:
            return super().call(node)
        given = [self.value(each) for each in node.args]
        if not self.enter(given):
            return self.unread(node)
        held = self._of_layer(node, layer, given) if self.lifted is None else None
        if held is None:
            raise NotRowwise(f"`{short(node)}` may not process each row independently")
        return held

    def maker(self, node: ast.expr) -> ast.Call | None:
        """What makes the layer of a local name. Dynamo knows no attribute of one that the same code makes."""
        name = node.id if isinstance(node, ast.Name) else ""
        if name in self.env:
            return self.made.get(name)
        if not name or not self.site.evaluator.scope.is_local(name):
            return None
        function = self.site.evaluator.scope.node
        blocks = self.site.remembered("blocks", function, lambda: Blocks(function), anywhere=True)
        bound = blocks.binding_before(self.site.place.statement, name)
        value = bound.value if bound is not None and isinstance(bound.targets[0], ast.Name) else None
        return value if isinstance(value, ast.Call) and _class_of(self.site, value) in _LAYERS else None

    def operator(self, node: ast.Call, name: str, first: Held, rest: list[Held], words: dict[str, Held]) -> Held:
        if first.what is What.ROWS and name not in self.env:
            if name in _SAME_ELEMENTS and not self.enter([*rest, *words.values()]):
                return first if name in {"contiguous", "clone"} else first._replace(boolean=False)
            if name in {"view", "reshape"} and not words and self._keeps_shape(node, first):
                return first
        if name in REDUCTIONS and first.what is What.ROWS and name not in self.env:
            made = self._each_loss(node, name, [first, *rest], words)
            made = made or (self.reduced(node, name, [first, *rest], words) if self.lifted is None else None)
            if made is not None:
                return made
        return super().operator(node, name, first, rest, words)

    def _keeps_shape(self, node: ast.Call, first: Held) -> bool:
        """True for `rows.view(-1)` and `rows.view(-1, n)`, where the compile path asks that rows have `n` elements."""
        sizes = node.args if isinstance(node.func, ast.Attribute) else []
        if len(sizes) != first.rank or first.rank not in {1, 2} or written_integer(sizes[0]) != -1:
            return False
        self.looked.append(node)
        if first.rank == 1:
            return True
        return self._is_own_size(node, sizes[1]) or self._asks_for_size(first, sizes[1])

    def _is_own_size(self, node: ast.Call, size: ast.expr) -> bool:
        """True for the `x.size(-1)` or `x.shape[-1]` of `x.view(-1, x.size(-1))`."""
        owner = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0]
        asked = size_asked(size)
        if asked is None or written_integer(asked[1]) not in {-1, 1}:
            return False
        return dotted(owner) is not None and dotted(asked[0]) == dotted(owner)

    def _asks_for_size(self, first: Held, size: ast.expr) -> bool:
        names = all_names(size)
        if not first.spelled or not names.isdisjoint(self.env) or not (is_integer(size) or dotted(size)):
            return False
        self.conditions[f"{first.spelled}.shape[-1] == {self.site.text(size)}"] = None
        return True

    def _each_loss(self, node: ast.Call, name: str, given: list[Held], words: dict[str, Held]) -> Held | None:
        """`F.mse_loss(x, y, reduction="none")`, which looks at each element alone."""
        options = {word: held for word, held in words.items() if word != "reduction"}
        plain = name in _LOSSES and words.get("reduction", OTHER).constant == "none" and options.keys() <= _NUMBERS
        if not plain or len(given) != 2:
            return None
        return elementwise([*given, *map(self.as_number, options.values())], short(node))

    def reduced(self, node: ast.Call, name: str, given: list[Held], words: dict[str, Held]) -> Held | None:
        """`rows.mean()`, `F.mse_loss(rows, others)`: one element, made of the rows that the mask chooses."""
        mask = self.choice
        if name in _REDUCED:
            if len(given) + len(words) > 1:
                return None
            owner = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else node.args[0]
            return self._make(node, self.reducer(name), [mask, self.text(owner)])
        options = {word.arg or "": word.value for word in node.keywords}
        kind = getattr(options.pop("reduction", ast.Constant("mean")), "value", None)
        if len(node.args) != 2 or not _are_rows(given) or kind not in _REDUCED:
            return None
        texts = list(map(self.text, node.args))
        texts += [f"{word}={self.text(value)}" for word, value in options.items()]
        function = self.text(node.func)
        if name in _CLASSES:
            ignored = options.get("ignore_index", ast.Constant(-100))
            plain = isinstance(ignored, (ast.Constant, ast.UnaryOp, ast.Name, ast.Attribute))
            if not plain or not options.keys() <= {"ignore_index", "label_smoothing", "weight"}:
                return None
            texts += [] if kind == "mean" else ['reduction="sum"']
            return self.of_classes(node, function, texts, given, ast.unparse(ignored))
        if not options.keys() <= _NUMBERS:
            return None
        elementwise([*given, *map(self.as_number, words.values())], short(node))
        return self.mean_of(node, str(kind), function, texts)

    def _of_layer(self, node: ast.Call, layer: str, given: list[Held]) -> Held | None:
        """A loss by a layer: one that takes classes is called, of others the function that they call."""
        if not _are_rows(given):
            return None
        text, made = self.text(node.func), self.maker(node.func)
        kind, ignored = self._asked_of(node.func, text, layer, made)
        if kind is None:
            return None
        texts = list(map(self.text, node.args))
        if _LAYERS[layer] in _CLASSES:
            return self.of_classes(node, text, texts, given, ignored)
        elementwise(given, short(node))
        if made is not None and (made.args or {word.arg for word in made.keywords} - {"reduction"}):
            return None
        texts += [f"{each}={text}.{each}" for each in [_OPTIONS.get(layer)] if each is not None and made is None]
        return self.mean_of(node, kind, f"{self.site.torch}.nn.functional.{_LAYERS[layer]}", texts)

    def _asked_of(self, node: ast.expr, text: str, layer: str, made: ast.Call | None) -> tuple[str | None, str]:
        """How a layer reduces, and which label it ignores; the compile path asks what only a constructor tells."""
        calls = [made] if made is not None else self._constructors(node)
        words = {word.arg: word.value for each in calls for word in each.keywords}
        kind = getattr(words.get("reduction", ast.Constant("mean")), "value", "mean")
        old = {"size_average", "reduce", None} & words.keys()
        if kind not in _REDUCED or (made is not None and old):
            return None, ""
        if made is not None:
            ignored = words.get("ignore_index", ast.Constant(-100))
            sure = not made.args and (written_integer(ignored) is not None or self._stays(ignored))
            return (kind if sure and isinstance(words.get("reduction", ast.Constant("")), ast.Constant) else None), (
                ast.unparse(ignored)
            )
        certain = CertainCalls(self.site, self.calls)
        try:
            certain.demand_names(certain.start())
            certain.demand_method(set(), "forward", text)
        except NotProven as why:
            raise NotRowwise(str(why)) from why
        asked = [f"type({text}) is {self.site.torch}.nn.{layer}", f'{text}.reduction == "{kind}"']
        asked += [f"{text}.{each} is None" for each in _ABSENT.get(layer, ())]
        # A hook, or a `forward` that somebody gave the instance, gets what the author's call gives it.
        asked += [f"len({text}._forward_hooks) + len({text}._forward_pre_hooks) == 0", f'"forward" not in vars({text})']
        self.conditions.update(dict.fromkeys(asked))
        return kind, f"{text}.ignore_index"

    def _stays(self, node: ast.expr) -> bool:
        """True for `self.pad` and `pad`, which nothing in the function sets."""
        name = dotted(node)
        parts = walk_scope(self.site.evaluator.scope.node)
        return name is not None and all(isinstance(part.ctx, ast.Load) for part in parts if _spells(part, name))

    def _constructors(self, node: ast.expr) -> list[ast.Call]:
        """What gives a name or an attribute of the instance its layer."""
        if isinstance(node, ast.Name):
            values = assigned(self.site, node.id)
        else:
            stores = stores_of(self.calls, self.caller.owner, (dotted(node) or "").rpartition(".")[2])
            values = [each.value for each in stores if each.value is not None]
        return [each for each in values if isinstance(each, ast.Call) and _class_of(self.site, each) in _LAYERS]

    def of_classes(
        self, node: ast.Call, function: str, texts: list[str], given: list[Held], ignored: str
    ) -> Held | None:
        """A loss of rows and of one label for each, where what the mask leaves out has the label that it ignores."""
        if [each.rank for each in given if each.what is What.ROWS] != [2, 1]:
            return None
        self.looked.append(node)
        if getattr(getattr(node.args[1], "func", None), "attr", "") != "long":
            # -100 is another label in uint8, and torch compiles no loss of such labels.
            for each in [given[1].spelled] if given[1].spelled else self.sources:
                self.conditions[f"{each}.dtype != {self.site.torch}.uint8"] = None
        texts[1] = f"{self.site.torch}.where({self.chooser}.flatten(), {texts[1]}, {ignored})"
        return self._make(node, function, texts)

    def mean_of(self, node: ast.Call, kind: str, function: str, texts: list[str]) -> Held:
        # Eager mode divides before it multiplies, which matters where a gradient is near the largest number.
        self.fused = True
        texts.append('reduction="none"')
        return self._make(node, self.reducer(kind), [self.choice, f"{function}({', '.join(texts)})"])

    def reducer(self, kind: str) -> str:
        """The helper that makes a sum or mean of the rows."""
        return _REDUCED[kind]

    def _make(self, node: ast.expr, function: str, texts: list[str]) -> Held:
        self.changes[id(node)] = (node, f"{function}({', '.join(texts)})")
        self.called[id(node)] = (function, texts)
        self.single.add(id(node))
        return OTHER


def _spells(node: ast.AST, name: str) -> TypeGuard[ast.Name | ast.Attribute]:
    return isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) in {name, name.partition(".")[0]}


def _are_rows(given: list[Held]) -> bool:
    return [each.what for each in given] == [What.ROWS, What.ROWS]
