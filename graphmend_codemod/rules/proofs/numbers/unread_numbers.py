"""Numbers that are read out of a tensor in every call, and used in some: `n = int(self.steps)` and `if self.training:`.

Where a test of Python says that nothing uses the number, the compile path does not read it.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.compile_paths import in_front
from graphmend_codemod.rules.proofs.outlining.passed_by import never_read

_READS = frozenset({"item", "tolist"})
_CASTS = frozenset({"builtins.int", "builtins.float", "builtins.bool"})
_PARTS = frozenset("cpu detach clone float double long int max min sum mean abs numpy squeeze".split()) | _READS
_COMMENT = "# Nothing uses the number where this is so, and to read it back would end the graph."


def not_read(site: Site, node: ast.Assign) -> Edit | None:
    """The edit that leaves `n = t.item()` out of compiled code where a test says that nothing uses `n`."""
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Name) or site.torch is None or site.place.in_try:
        return None
    if not _reads_back(site, node.value):
        return None
    conditions = never_read(site, node, target.id)
    if not conditions:
        return None
    path = in_front(site, [node], [site.compiling, *conditions], [_COMMENT, f"{target.id} = None"])
    return Edit((path,), imports=site.imports)


def _reads_back(site: Site, node: ast.expr) -> bool:
    """True for `t.item()` and `int(t.cpu().data)`, which read a tensor and do nothing else."""
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _READS and not node.args:
        return _only_reads(node.func.value)
    if site.resolve(node.func) not in _CASTS or len(node.args) != 1 or not _only_reads(node.args[0]):
        return False
    given = node.args[0]
    known = site.value(given).kind is ValueKind.TENSOR
    return known or any(_is_of_tensors(part) for part in ast.walk(given))


def _is_of_tensors(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in {"data", "cpu", "detach", *_READS}


def _only_reads(node: ast.expr) -> bool:
    """True for names and attributes under methods that compute or copy: nobody can tell that they did not run."""
    while dotted(node) is None:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARTS:
            if node.args or node.keywords:
                return False
            node = node.func.value
        else:
            return False
    return True
