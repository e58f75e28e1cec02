"""The module in which a project keeps helpers once (the setting `helpers`), and what its files import from there."""

from __future__ import annotations

import ast
import builtins
import contextlib
import symtable
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.project.index.modules import PackageLayout
from graphmend_codemod.rewriting.blocks import CodeBlocks
from graphmend_codemod.rewriting.imports import own_imports, sorted_in_own, under_condition
from graphmend_codemod.rewriting.insertions import Insertion
from graphmend_codemod.rewriting.names import Binding, ModuleNames
from graphmend_codemod.rewriting.text import Change, RewriteError

_BEGINNING = '''"""What `graphmend fix` uses in the files of this package, for torch.compile.

graphmend adds to this file. What no file imports any more can be deleted.
"""
'''
_KNOWN = frozenset({*dir(builtins), "torch", "__name__"})


@dataclass(frozen=True, eq=False)
class HelperModule:
    """The module of helpers: its text, and whether helpers may be added to it.

    Files of its package import from it, with dots where they import so from their package. A file that imports nothing
    from there does if a file in its folder or one above imports it as part of the package, and none without that. One
    that can be imported without torch does not.
    """

    source: SourceFile
    root: Path
    grows: bool = True

    @cached_property
    def _layout(self) -> PackageLayout:
        return PackageLayout(self.root)

    @cached_property
    def definitions(self) -> dict[str, str]:
        """The functions of the module: their trees as text, by name."""
        return {node.name: ast.dump(node) for node in self.source.parse().body if isinstance(node, ast.FunctionDef)}

    def named_by(self, blocks: CodeBlocks) -> str | None:
        """The module as a file spells it in `from ... import`, None where the file is not to import from it."""
        path, own = blocks.layout.source.path, self.source.path
        if not path.endswith(".py"):
            return None
        base = self._layout.base(path)
        inside, module = path[len(base) :].strip("/"), own[len(base) :].strip("/")
        if path == own or base != self._layout.base(own) or inside.partition("/")[0] != module.partition("/")[0]:
            return None
        if "/" not in inside or under_condition(blocks, "torch") is not None:
            return None
        absolute = self._layout.name(own)
        relative = _relative(inside.split("/")[:-1], module.removesuffix(".py").split("/"))
        imported = {level for level, _ in own_imports(blocks, absolute.partition(".")[0])}
        if any(imported) or (not imported and self._is_part(path) and not _is_a_script(blocks.tree)):
            return relative
        return absolute if imported else None

    def _is_part(self, path: str) -> bool:
        """True for a file that others around it import as part of its package, and none without it."""
        folder, _, stem = path.rpartition("/")
        if stem == "__init__.py":
            return True
        stem, dotted = stem.removesuffix(".py"), self._layout.name(path)
        modules = set[str]()
        base = self._layout.base(path)
        while True:
            for other in sorted(each.relative_to(self.root).as_posix() for each in (self.root / folder).glob("*.py")):
                with contextlib.suppress(SourceError):
                    source = SourceFile.below(str(self.root), other)
                    if other != path and stem in source.text:
                        modules |= _imported_modules(source, self._layout.name(other))
            if folder == base:
                break
            folder = folder.rpartition("/")[0]
        return dotted in modules and stem not in modules

    def with_helpers(self, helpers: Sequence[Helper]) -> HelperModule:
        """The module with more helpers; those that it has already are left. RewriteError if it cannot take them."""
        if not helpers:
            return self
        from graphmend_codemod.rewriting.edits import apply

        beginning = self.source
        if not beginning.parse().body:
            beginning = beginning.with_text(f"{beginning.text}{_BEGINNING}")
        made = apply(beginning, [Edit((), ("torch",), tuple(helpers))])
        for _, reason in made.skipped:
            raise RewriteError(f"{self.source.path} cannot hold its helpers: {reason}")
        return replace(self, source=self.source.with_text(made.text))

    def only(self, before: SourceFile, names: Iterable[str]) -> HelperModule:
        """What the module was before, with those of its helpers alone that files import by these names."""
        nodes = {node.name: node for node in self.source.parse().body if isinstance(node, ast.FunctionDef)}
        texts = {name: _whole(self.source, node) for name, node in nodes.items()}
        wanted, waiting = set[str](), list(names)
        while waiting:
            name = waiting.pop()
            if name in texts and name not in wanted:
                wanted.add(name)
                waiting += _of_the_module(texts[name])
        earlier = HelperModule(before, self.root)
        kept = [name for name in texts if name in wanted and name not in earlier.definitions]
        return earlier.with_helpers([Helper(name, texts[name], tuple(kept[:n])) for n, name in enumerate(kept)])

    def has(self, names: ModuleNames, binding: Binding, spelled: str) -> bool:
        """True for what a file imports from this module under its own name."""
        node = binding.node
        if names.conditional(binding) or not isinstance(node, ast.ImportFrom) or _spelled(node) != spelled:
            return False
        return any(each.name == binding.name and each.asname is None for each in node.names)

    def can_hold(self, helper: Helper, coming: Collection[str]) -> bool:
        """True for a helper that means the same there; `coming` are names of others that the same edits bring."""
        if not helper.shared:
            return False
        known = self.definitions.get(helper.name)
        if not self.grows and known is None:
            return False
        return _of_the_module(helper.source) <= _KNOWN.union(self.definitions, coming, [helper.name])


def _relative(package: Sequence[str], module: Sequence[str]) -> str:
    """The module as files in a package spell it, both as names below one folder."""
    shared = 0
    while shared < min(len(package), len(module) - 1) and package[shared] == module[shared]:
        shared += 1
    return "." * (len(package) - shared + 1) + ".".join(module[shared:])


def _whole(source: SourceFile, node: ast.FunctionDef) -> str:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return "\n".join(source.lines[first - 1 : node.end_lineno])


def imported_from(module: str, source: SourceFile) -> set[str]:
    """The names that a file imports from a module of this path, as its last part tells."""
    stem = module.rpartition("/")[2].removesuffix(".py")
    nodes = [node for node in ast.walk(source.parse()) if isinstance(node, ast.ImportFrom)]
    return {each.name for node in nodes if (node.module or "").rpartition(".")[2] == stem for each in node.names}


def _imported_modules(source: SourceFile, name: str) -> set[str]:
    """The modules that a file of this dotted name imports; each may be a name in a module as well."""
    found = set[str]()
    package = name if source.path.endswith("__init__.py") else name.rpartition(".")[0]
    for node in ast.walk(source.parse()):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found.update([module, *(f"{module}.{each.name}" for each in node.names)])
    return found


def _is_a_script(tree: ast.Module) -> bool:
    """True where the file asks for `__name__` at the top, as what runs as a script does."""
    tests = (node.test for node in tree.body if isinstance(node, ast.If))
    return any(isinstance(part, ast.Name) and part.id == "__name__" for test in tests for part in ast.walk(test))


def _spelled(node: ast.ImportFrom) -> str:
    return "." * node.level + (node.module or "")


def _of_the_module(source: str) -> set[str]:
    """Names that a definition takes from its module, or from Python itself."""
    whole = symtable.symtable(source, "<helper>", "exec")
    found = {each.get_name() for each in whole.get_symbols() if not each.is_assigned()}
    tables = list(whole.get_children())
    while tables:
        table = tables.pop()
        found.update(each.get_name() for each in table.get_symbols() if each.is_global())
        tables += table.get_children()
    return found


def new_names(blocks: CodeBlocks, spelled: str, names: Iterable[str]) -> Insertion | Change:
    """More names from a module: with those that the file imports from there already, else on a line of their own."""
    wanted = sorted(set(names))
    for node in blocks.tree.body:
        if not isinstance(node, ast.ImportFrom) or _spelled(node) != spelled or node.names[0].name == "*":
            continue
        start, end = blocks.start(node), blocks.end(node)
        if blocks.layout.first_on_line(start) and not blocks.layout.comments(start, end):
            parts = [each.name if each.asname is None else f"{each.name} as {each.asname}" for each in node.names]
            parts = sorted([*parts, *wanted]) if parts == sorted(parts) else [*parts, *wanted]
            return Change(start, end, _import(blocks.layout.source, spelled, parts))
    return sorted_in_own(blocks, spelled, _import(blocks.layout.source, spelled, wanted), wanted)


def _import(source: SourceFile, spelled: str, names: Sequence[str]) -> str:
    """The statement on one line, or with a line for each name where that is longer than lines of the file."""
    line = f"from {spelled} import {', '.join(names)}"
    if len(line) <= source.line_limit:
        return line
    inner = "".join(f"{source.indent}{name},{source.newline}" for name in names)
    return f"from {spelled} import ({source.newline}{inner})"
