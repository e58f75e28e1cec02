"""How expressions are spelled: dotted names, short texts, and what an assigned value looks like from outside."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from graphmend_codemod.project.summary import Value

WRAPPERS = frozenset({"partial", "compile", "disable", "wraps"})
_LONGEST_TEXT = 120
_INTEGER_TENSOR = re.compile(r"tensor\([^\n]*\b(?:int64|long)\b")
_TENSOR_AS_BUFFER = re.compile(r"register_buffer\(\s*[\"']\w+[\"'],\s*\w+\.(?:as_)?tensor\(")


class Lines:
    """Source text by `ast` positions. Lines end where the tokenizer ends them; columns count UTF-8 bytes.

    `asks_for_ends` is true where a size may be one more than the last of some positions, and `keeps_integers` where a
    constructor may keep an integer in a tensor.
    """

    def __init__(self, text: str) -> None:
        self.asks_for_ends = "[-1] + 1" in text
        self.keeps_integers = "register_buffer(" in text and (
            _TENSOR_AS_BUFFER.search(text) is not None or _INTEGER_TENSOR.search(text) is not None
        )
        self._lines = text.encode("utf-8", "surrogatepass").splitlines()

    def text(self, node: ast.expr) -> str:
        """The source of `node` when it stands on one line and is short, else an empty string."""
        end = node.end_col_offset
        if node.lineno != node.end_lineno or end is None or end - node.col_offset > _LONGEST_TEXT:
            return ""
        return self._lines[node.lineno - 1][node.col_offset : end].decode("utf-8", "surrogatepass")

    def annotation(self, node: ast.expr | None) -> str:
        """The source of an annotation in one line, without the quotes of forward references."""
        if node is None:
            return ""
        if node.__class__ is ast.Name:
            return node.id
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value.strip()
        text = self.text(node) or ast.unparse(node)
        return text.replace('"', "").replace("'", "")


def dotted(node: ast.AST) -> str:
    """`a.b.c`, `super().f` for what is spelled so, else an empty string; `type(self)`, `self.__class__` are `self`."""
    parts: list[str] = []
    while node.__class__ is ast.Attribute:
        if node.attr != "__class__":
            parts.append(node.attr)
        node = node.value
    if node.__class__ is ast.Name:
        root = node.id
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("super", "type"):
        if node.func.id == "super":
            root = "super()"
        elif len(node.args) == 1 and isinstance(node.args[0], ast.Name):
            root = node.args[0].id
        else:
            return ""
    else:
        return ""
    if not parts:
        return root
    parts.append(root)
    parts.reverse()
    return ".".join(parts)


def decorator(node: ast.expr) -> str:
    """`name`, `name()` for a decorator with arguments, `partial(name)` for a partial of it; empty for others."""
    if not isinstance(node, ast.Call):
        return dotted(node)
    name = dotted(node.func)
    if name.rpartition(".")[2] == "partial" and node.args:
        return f"{name}({dotted(node.args[0])})"
    return f"{name}()" if name else ""


def value_of(
    node: ast.expr, lines: Lines, parameters: Collection[str] = (), annotations: dict[str, str] | None = None
) -> Value:
    """Classify an assigned value. `parameters` are those of `__init__` that still have the value they came with."""
    text = lines.text(node)
    if _is_constant(node):
        return Value("constant", text=text)
    if isinstance(node, ast.Call):
        return _call(node, text, parameters)
    if isinstance(node, (ast.Attribute, ast.Name)):
        spelled = dotted(node)
        root, _, rest = spelled.partition(".")
        if root in parameters and not rest:
            return Value("argument", (annotations or {}).get(root, ""), text)
        if root in parameters or (parameters and spelled.startswith("self.config.")):
            return Value("config", text=text)
        return Value("other", spelled, text)
    holds = _displayed(node)
    return Value("other", text=text, holds=holds)


def _call(node: ast.Call, text: str, parameters: Collection[str]) -> Value:
    spelled = dotted(node.func)
    if spelled == "getattr" and len(node.args) >= 2 and dotted(node.args[0]).partition(".")[0] in parameters:
        return Value("config", text=text)
    if not spelled:
        return Value("other", text=text)
    wraps = ""
    if spelled.rpartition(".")[2] in WRAPPERS and node.args:
        wraps = dotted(node.args[0])
    holds = tuple(name for part in node.args if (name := ",".join(_displayed(part)))) if node.args else ()
    return Value("call", spelled, text, wraps, tuple(name for group in holds for name in group.split(",")))


def _displayed(node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.Dict):
        parts: list[ast.expr] = node.values
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        parts = node.elts
    elif isinstance(node, ast.Subscript):
        parts = [node.value]
    else:
        return ()
    return tuple(dict.fromkeys(name for part in parts if part and (name := dotted(part))))


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, (bytes, type(...)))
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    return isinstance(node, ast.Tuple) and all(map(_is_constant, node.elts))
