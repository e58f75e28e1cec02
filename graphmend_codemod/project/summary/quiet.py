"""Properties and methods that may do more than read, by one look at their text."""

from __future__ import annotations

import ast
from collections.abc import Sequence

LOUD = "does more than read"
"""How a summary notes such a property or method."""
AWAITED = "runs when it is awaited"
"""How a summary notes a coroutine, which Dynamo does not trace."""
MAKES_LOGGER = "makes a logger"
"""How a summary notes a function that returns a logger of the standard library."""
HARMLESS_BUILTINS = frozenset(
    """len str repr type list tuple set dict sorted min max sum round int float bool format abs isinstance issubclass
    getattr hasattr id any all range zip enumerate ascii next iter callable frozenset reversed map filter""".split()
)
HARMLESS_METHODS = frozenset(
    """format join keys values items get upper lower strip split replace startswith endswith title capitalize copy count
    index item tolist numpy size dim numel detach cpu float long int bool mean sum min max std var norm any all abs
    flatten view reshape unique state_dict""".split()
)
"""Methods that read, whatever has them, unless a class of the project says otherwise."""
_READ_IN_PROPERTIES = HARMLESS_METHODS | frozenset(
    """parameters named_parameters buffers named_buffers modules children named_modules children element_size nelement
    is_floating_point is_contiguous stride unsqueeze squeeze permute transpose expand contiguous lstrip rstrip
    rsplit partition rpartition is_alive warn warn_once warning warning_once""".split()
)
NOT_ASKED = frozenset(
    """__init__ __new__ __post_init__ __init_subclass__ __del__ __call__ __setattr__ __delattr__ __setitem__ __delitem__
    __enter__ __exit__ __copy__ __deepcopy__ __getstate__ __setstate__ __reduce__""".split()
)
"""Methods of Python's own that it calls for no operator, and not to show an object."""
_WRITES = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete)


def is_loud(node: ast.FunctionDef | ast.AsyncFunctionDef, decorators: Sequence[str]) -> bool:
    """True for a property, or a method that a message may call, whose text does more than compute and return."""
    properties = any("property" in each for each in decorators)
    if not properties and not _is_asked(node.name):
        return False
    return any(_acts(each) for statement in node.body for each in ast.walk(statement))


def _is_asked(name: str) -> bool:
    special = name.startswith("__") and name.endswith("__") and name not in NOT_ASKED
    return special or name in HARMLESS_METHODS or name == "extra_repr"


def _acts(node: ast.AST) -> bool:
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Name):
            return called.id not in HARMLESS_BUILTINS and called.id != "super" and not called.id[:1].isupper()
        if isinstance(called, ast.Attribute):
            root = called.value
            reads = called.attr in _READ_IN_PROPERTIES or _is_asked(called.attr)
            return not reads and not (isinstance(root, ast.Name) and root.id == "torch")
        return True
    return isinstance(node, _WRITES)
