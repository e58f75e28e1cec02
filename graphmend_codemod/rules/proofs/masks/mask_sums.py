"""Sums with a mask, `scores = scores + mask[..., :n]`: whether a mask of zeros leaves them as they are.

Zeros are what a mask of ones becomes before it is added to the scores of attention. A mask of zeros does what None does
where `if mask is not None:` adds it to scores that a softmax of a given dtype reads next, where
`scaled_dot_product_attention` gets it, and where transformers' table of attention functions has one that does the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from graphmend_codemod.analysis.callgraph import Definition, Key, ModuleCalls
from graphmend_codemod.analysis.patterns import (
    given_by_name,
    is_attribute,
    is_name,
    names_beyond,
    only_target,
    reads_name,
    values_given,
)
from graphmend_codemod.analysis.scope import dotted, parameters, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import stores_of
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.masks.mask_products import about_shape, asked_beside, is_view
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks, binds, blocks_of
from graphmend_codemod.rules.proofs.memory.shared_memory import SharedMemory

_SDPA = "torch.nn.functional.scaled_dot_product_attention"
_OF_SDPA = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
_SOFTMAX = frozenset({"torch.softmax", "torch.nn.functional.softmax"})
_TABLES = frozenset({"transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS", "transformers.ALL_ATTENTION_FUNCTIONS"})
_OF_TABLE = ("module", "query", "key", "value", "attention_mask")
CHOICE = "self.config._attn_implementation"
ADDING = ("eager", "sdpa")
"""The kinds of attention in transformers that add the mask, or take zeros for what None is."""


@dataclass(frozen=True)
class Sums:
    """What the functions of a module add masks to.

    `choosers` are the classes whose configuration chooses how. No layer is `asked` for its class.
    """

    site: Site
    calls: ModuleCalls
    choosers: dict[str, None] = field(default_factory=dict)
    asked: dict[Key, list[tuple[ast.expr, str]]] = field(default_factory=dict)

    def demand(self, function: Definition, node: ast.If, name: str) -> None:
        """NotProven unless an `if` adds the mask, where there is one, and does nothing else."""
        where = f"`if {short(node.test)}` in `{function.qualname}`"
        others, target = asked_beside(node.test, name), self._target(function, node, name)
        if others is None or node.orelse or target is None or not all(about_shape(each, name) for each in others):
            raise NotProven(f"{where} does more than add the mask")
        blocks = blocks_of(self.calls, function)
        if blocks.in_loop(node) or not self._goes_into_softmax(function, blocks, node, target):
            raise NotProven(f"{where} may change the dtype of `{target}`")
        SharedMemory(self.site, self.calls).demand_no_write(function, node, {target})

    def _target(self, function: Definition, node: ast.If, name: str) -> str | None:
        """`x` for `part = mask[:, :n]`, `x = x + part`, of which the sum is enough."""
        views = {name}
        *before, last = node.body
        for each in before:
            target = only_target(each)
            if not isinstance(each, ast.Assign) or not isinstance(target, ast.Name) or target.id == name:
                return None
            seen = any(is_view(each.value, view) for view in views)
            if not seen or any(names_beyond(function.node, {target.id}, [node])):
                return None
            views.add(target.id)
        if isinstance(last, ast.AugAssign) and isinstance(last.op, ast.Add) and isinstance(last.target, ast.Name):
            target, sides = last.target, [last.value]
        elif isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.value, ast.BinOp):
            target = last.targets[0] if isinstance(last.value.op, ast.Add) else None
            sides = [last.value.left, last.value.right]
            if not isinstance(target, ast.Name) or sum(is_name(side, target.id) for side in sides) != 1:
                return None
            sides = [side for side in sides if not is_name(side, target.id)]
        else:
            return None
        added = any(is_view(sides[0], view) for view in views)
        return target.id if added and isinstance(target, ast.Name) and target.id not in views else None

    def _goes_into_softmax(self, function: Definition, blocks: Blocks, node: ast.If, target: str) -> bool:
        """True when all that reads the sum is `softmax(x, dtype=torch.float32)`, which has that dtype anyway."""
        following = blocks.following(node)
        last = next((each for each in following if isinstance(each, ast.Assign) and binds(each, target)), None)
        end = 10**9 if last is None else last.end_lineno or 0
        read: set[int] = set()
        softmaxes = 0
        for part in walk_in_layers(function.node):
            if isinstance(part, ast.Call) and (operand := self._of_softmax(part)) is not None:
                read.add(id(operand))
                softmaxes += is_name(operand, target)
        for part in walk_in_layers(function.node):
            used = reads_name(part, target)
            if used and (node.end_lineno or 0) < part.lineno <= end and id(part) not in read:  # type: ignore[attr-defined]
                return False
        return bool(softmaxes)

    def _of_softmax(self, call: ast.Call) -> ast.expr | None:
        """The operand of a softmax with a dtype of its own."""
        given = [word.value for word in call.keywords if word.arg == "dtype"]
        if len(given) != 1 or not (self.site.resolve_global(given[0]) or "").startswith("torch."):
            return None
        if self.site.resolve_global(call.func) in _SOFTMAX:
            return call.args[0] if call.args else None
        return call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "softmax" else None

    def takes(self, function: Definition, call: ast.Call, name: str) -> list[tuple[Definition, str]] | None:
        """The functions that get the mask from a call, and as what; None for calls that are not about attention.

        NotProven where such a call tells zeros from None.
        """
        root = (dotted(call.func) or "").partition(".")[0]
        local = any(each.arg == root for each in parameters(function.node)) or any(
            binds(each, root) for each in function.node.body
        )
        if not local and self.site.resolve_global(call.func) == _SDPA:
            self._demand_place(function, call, name, _OF_SDPA, "attn_mask")
            if self._causal(function, call, _OF_SDPA) == "maybe":
                raise NotProven(f"`{short(call)}` in `{function.qualname}` may attend to later positions")
            return []
        if local and isinstance(call.func, ast.Name):
            values = values_given(function.node, call.func.id)
            if any(self._is_table(each) for each in values):
                return list(self._chosen(function, call, name, values))
        return None

    def _chosen(
        self, function: Definition, call: ast.Call, name: str, values: list[ast.expr | None]
    ) -> Iterator[tuple[Definition, str]]:
        """Follow `attend = eager_attention`, `attend = ALL_ATTENTION_FUNCTIONS[...]`, `attend(self, q, k, v, mask)`."""
        self._demand_place(function, call, name, _OF_TABLE, "attention_mask")
        if self._causal(function, call, _OF_TABLE) != "no":
            # Without a word of the caller, attention without a mask looks at nothing that comes later.
            raise NotProven(f"`{short(call)}` in `{function.qualname}` does not pass `is_causal=False`")
        self.choosers[function.owner] = None
        for value in values:
            if isinstance(value, ast.Call) and self._is_table(value):
                value = value.args[1]  # noqa: PLW2901
            if value is not None and self._is_table(value):
                continue
            made = ast.Call(value, call.args, call.keywords) if isinstance(value, ast.Name) else None
            callee = self.calls.callee(function, made) if made is not None else None
            if callee is None or made is None:
                raise NotProven(f"cannot infer what `{short(call.func)}` in `{function.qualname}` does with the mask")
            found = [parameter for parameter, given in callee.arguments(made).plain.items() if is_name(given, name)]
            if len(found) != 1:
                raise NotProven(f"cannot infer which parameter of `{callee.qualname}` receives the mask")
            yield callee, found[0]

    def _is_table(self, node: ast.expr | None) -> bool:
        """True for `ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]`, and for the same as a method."""
        if isinstance(node, ast.Subscript):
            table, key = node.value, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_interface":
            if len(node.args) != 2 or node.keywords:
                return False
            table, key = node.func.value, node.args[0]
        else:
            return False
        return self.site.resolve_global(table) in _TABLES and dotted(key) == CHOICE

    def _demand_place(
        self, function: Definition, call: ast.Call, name: str, order: tuple[str, ...], wanted: str
    ) -> None:
        """NotProven unless the mask, and nothing made of it, is given once, as what is wanted."""
        given = given_by_name(call, order)
        mentions = [part for part in walk_in_layers(call) if is_name(part, name)]
        starred = any(isinstance(each, ast.Starred) for each in call.args)
        if starred or len(mentions) != 1 or given.get(wanted) is not mentions[0]:
            raise NotProven(f"`{short(call)}` in `{function.qualname}` may treat a mask of ones differently from None")

    def _causal(self, function: Definition, call: ast.Call, order: tuple[str, ...]) -> str | None:
        """`no` where the call says so, None where it says nothing, else `maybe`."""
        said = given_by_name(call, order).get("is_causal")
        if said is None:
            return None
        return "no" if self._is_false(function, said) else "maybe"

    def _is_false(self, function: Definition, node: ast.expr) -> bool:
        """True for False, and for `self.name` that nothing in the module sets to anything else."""
        if isinstance(node, ast.Constant):
            return node.value is False
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            return any(self._is_false(function, each) for each in node.values)
        if isinstance(node, ast.IfExp):
            return self._is_false(function, node.test) and self._is_false(function, node.orelse)
        if isinstance(node, ast.Name):
            values = values_given(function.node, node.id)
            return len(values) == 1 and values[0] is not None and self._is_false(function, values[0])
        if not is_attribute(node, "self"):
            return False
        stores = stores_of(self.calls, function.owner, node.attr)
        values = [each.value for each in stores]
        return bool(values) and all(isinstance(each, ast.Constant) and each.value is False for each in values)
