"""How expressions are spelled: dotted names, short texts, and what an assigned value looks like from outside."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from graphmend_codemod.project.summary.records import Value

WRAPPERS = frozenset({"partial", "compile", "disable", "wraps"})
SINCE_TORCH = "_since_torch_"
"""How the names of functions begin that a fix writes and that give `decorator` for `lambda: decorator`, or nothing with
an older torch."""
_LONGEST_TEXT = 120
_DISPLAYS = frozenset({ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Subscript})
ELEMENT_TESTED = re.compile(r"\b(?:if|while|assert)\b[^\n]*(?<![\w.])\w+\[-?\d+\][ \n:)\]]")
"""A test of an element, as text."""
_INTEGER_TENSOR = re.compile(r"tensor\([^\n]*\b(?:int64|long)\b")
_LOGGING = re.compile(r"^(?:import logging\s*$|from logging import )", re.MULTILINE)
_TENSOR_AS_BUFFER = re.compile(r"(?:register_buffer\(\s*[\"']\w+[\"'],|\bBuffer\()\s*\w+\.(?:as_)?tensor\(")


class Lines:
    """Source text by `ast` positions. Lines end where the tokenizer ends them; columns count UTF-8 bytes.

    `asks_for_ends` is true where a size may be one more than the last of some positions. `foreign` are the names that
    the module binds to parts of libraries that Dynamo does not trace.
    """

    def __init__(self, text: str) -> None:
        self.asks_for_ends = "[-1] + 1" in text
        self.has_class_methods = "@classmethod" in text
        self.switches_off = ".disable" in text
        self.makes_loggers = "getLogger(" in text and _LOGGING.search(text) is not None
        self.makes_operators = "library.define" in text or "library.custom_op" in text
        self.foreign: set[str] = set()
        self._keeps_integers: bool | None = None
        self._tests_elements: bool | None = None
        self._text = text
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._lines = text.split("\n")

    @property
    def tests_elements(self) -> bool:
        """True where a test may ask for an element of what a name holds: `if positions[0] > 0:`."""
        if self._tests_elements is None:
            self._tests_elements = ELEMENT_TESTED.search(self._text) is not None
        return self._tests_elements

    @property
    def keeps_integers(self) -> bool:
        """True where a constructor may keep an integer in a tensor."""
        if self._keeps_integers is None:
            self._keeps_integers = ("register_buffer(" in self._text or "Buffer(" in self._text) and (
                _TENSOR_AS_BUFFER.search(self._text) is not None or _INTEGER_TENSOR.search(self._text) is not None
            )
        return self._keeps_integers

    def text(self, node: ast.expr) -> str:
        """The source of `node` when it stands on one line and is short, else an empty string."""
        number, start, end = node.lineno, node.col_offset, node.end_col_offset
        if number != node.end_lineno or end is None or end - start > _LONGEST_TEXT:
            return ""
        line = self._lines[number - 1]
        if line.isascii():
            return line[start:end]
        return line.encode("utf-8", "surrogatepass")[start:end].decode("utf-8", "surrogatepass")

    def annotation(self, node: ast.expr | None) -> str:
        """The source of an annotation in one line, without the quotes of forward references."""
        if node is None:
            return ""
        if type(node) is ast.Name:
            return node.id
        if type(node) is ast.Constant and isinstance(node.value, str):
            return node.value.strip()
        text = self.text(node) or ast.unparse(node)
        return text.replace('"', "").replace("'", "")


def dotted(node: ast.AST) -> str:
    """`a.b.c`, `super().f` for what is spelled so, else an empty string; `type(self)`, `self.__class__` are `self`."""
    parts: list[str] = []
    while type(node) is ast.Attribute:
        attr, node = node.attr, node.value
        if attr == "__class__":
            continue
        if type(node) is ast.Name and not parts:
            return f"{node.id}.{attr}"
        parts.append(attr)
    if type(node) is ast.Name:
        root = node.id
    elif type(node) is not ast.Call or type(node.func) is not ast.Name:
        return ""
    elif node.func.id == "super":
        root = "super()"
    elif node.func.id == "type" and len(node.args) == 1 and type(node.args[0]) is ast.Name:
        root = node.args[0].id
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
    if name.startswith(SINCE_TORCH) and len(node.args) == 1 and isinstance(node.args[0], ast.Lambda):
        return decorator(node.args[0].body)
    if name.rpartition(".")[2] == "partial" and node.args:
        return f"{name}({dotted(node.args[0])})"
    return f"{name}()" if name else ""


def value_of(
    node: ast.expr, lines: Lines, parameters: Collection[str] = (), annotations: dict[str, str] | None = None
) -> Value:
    """Classify an assigned value. `parameters` are those of `__init__` that still have the value they came with."""
    text = lines.text(node)
    value = _classified(node, text, parameters, annotations)
    return value if text else value._replace(reads=_reads(node))


def _classified(node: ast.expr, text: str, parameters: Collection[str], annotations: dict[str, str] | None) -> Value:
    if type(node) is ast.Call:
        return _call(node, text, parameters)
    if _is_constant(node):
        return Value("constant", text=text)
    if type(node) is ast.Attribute or type(node) is ast.Name:
        spelled = dotted(node)
        root, _, rest = spelled.partition(".")
        if root in parameters and not rest:
            return Value("argument", (annotations or {}).get(root, ""), text)
        if root in parameters or (parameters and spelled.startswith("self.config.")):
            return Value("config", text=text)
        return Value("other", spelled, text)
    holds = _between(node) if type(node) is ast.IfExp or type(node) is ast.BoolOp else _displayed(node)
    return Value("other", text=text, holds=holds)


def _reads(node: ast.expr) -> tuple[str, ...]:
    """Names that an expression reads and does not bind, each with what is behind it: `nn.ModuleList`, `self.width`."""
    bound = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    found: set[str] = set()
    todo: list[ast.AST] = [node]
    while todo:
        part = todo.pop()
        name = dotted(part)
        if name:
            found |= {name} - bound
        else:
            todo += ast.iter_child_nodes(part)
    return tuple(sorted(found))


def _between(node: ast.expr) -> tuple[str, ...]:
    """What `Default() if given is None else given` and `given or default` choose between, a call as `Default()`."""
    parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else getattr(node, "values", [])
    called = (part.func if isinstance(part, ast.Call) else part for part in parts)
    ends = ("()" if isinstance(part, ast.Call) else "" for part in parts)
    return tuple(f"{name}{end}" for each, end in zip(called, ends, strict=True) if (name := dotted(each)))


def _call(node: ast.Call, text: str, parameters: Collection[str]) -> Value:
    spelled = dotted(node.func)
    if spelled == "getattr" and len(node.args) >= 2 and dotted(node.args[0]).partition(".")[0] in parameters:
        default = dotted(node.args[2]) if len(node.args) > 2 else ""
        return Value("other", default, text) if default.startswith("self.") else Value("config", text=text)
    if not spelled:
        return Value("other", text=text, holds=_looked_up(node))
    wraps = ""
    if spelled.rpartition(".")[2] in WRAPPERS and node.args:
        wraps = dotted(node.args[0])
    holds = tuple([name for part in node.args for name in _displayed(part)]) if node.args else ()
    return Value("call", spelled, text, wraps, holds)


def _looked_up(node: ast.Call) -> tuple[str, ...]:
    """The names in `{"a": self.one, "b": self.other}.get(kind, self.default)`."""
    table = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "get" else None
    if not isinstance(table, ast.Dict):
        return ()
    return tuple(dict.fromkeys([*_displayed(table), *(name for part in node.args[1:] for name in _names(part))]))


def _names(node: ast.expr) -> list[str]:
    """The name that an expression is, or those between which it chooses."""
    if type(node) is ast.IfExp:
        return [*_names(node.body), *_names(node.orelse)]
    name = dotted(node)
    return [name] if name else []


def _displayed(node: ast.expr) -> tuple[str, ...]:
    if type(node) not in _DISPLAYS:
        return ()
    if isinstance(node, ast.Dict):
        parts: list[ast.expr] = node.values
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        parts = node.elts
    elif isinstance(node, ast.Subscript):
        parts = [node.value]
    return tuple(dict.fromkeys(name for part in parts if part for name in _names(part)))


def _is_constant(node: ast.expr) -> bool:
    if type(node) is ast.Constant:
        return not isinstance(node.value, (bytes, type(...)))
    if type(node) is ast.UnaryOp:
        return type(node.operand) is ast.Constant
    return type(node) is ast.Tuple and all(map(_is_constant, node.elts))
