"""Functions in which an expression stands, in this file or another, and what their files say."""

from __future__ import annotations

import ast
from functools import cached_property, lru_cache
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.scope import FunctionNode, dotted, parameter_names
from graphmend_codemod.analysis.values import Value
from graphmend_codemod.core.source import SourceError
from graphmend_codemod.project.index.facts import ClassFacts, Home, IndexView
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced import other_files
from graphmend_codemod.rules.proofs.untraced.bindings import reaching


class Frame:
    """A function in which an expression stands; `own` is that of the site, of which the dataflow knows more.

    `through` is the call by which what is asked for comes from its result, and the frame of that call: parameters then
    hold what this call gives, and not what others do. `home` is the file, where that is not the one of the site.
    """

    def __init__(
        self,
        node: FunctionNode,
        definition: Definition | None = None,
        files: Files | None = None,
        through: tuple[ast.Call, Frame] | None = None,
        home: Home | None = None,
    ) -> None:
        self.node = node
        self.through = through
        self.home = home
        self.own = files is not None
        self._definition, self._files = definition, files

    @property
    def definition(self) -> Definition | None:
        """The function in the tree of the whole file, which is read only where somebody asks."""
        if self._definition is None and self._files is not None and self._files.calls is not None:
            self._definition = self._files.calls.at(self.node.lineno)
        return self._definition


class Source(NamedTuple):
    """One expression that another one may get its value from."""

    node: ast.expr
    frame: Frame


class Files:
    """The file of a site, and what is known of the others."""

    def __init__(self, site: Site) -> None:
        self.site = site

    @cached_property
    def calls(self) -> ModuleCalls | None:
        """Who calls whom in the file; None where it takes longer to read than a guess is worth."""
        if len(self.site.source.text) > other_files.LONGEST:
            return None
        try:
            return calls_in(self.site.source.text)
        except SourceError:
            return None

    @property
    def index(self) -> IndexView:
        """What the project says."""
        return self.site.evaluator.scope.index

    def calls_at(self, frame: Frame) -> ModuleCalls | None:
        """The same in the file of a frame."""
        return self.calls if frame.home is None else other_files.calls_of(frame.home.text)

    def module_of(self, frame: Frame) -> str:
        """The name of the module in which a frame stands."""
        return self.site.summary.name if frame.home is None else frame.home.module

    def class_facts(self, frame: Frame) -> ClassFacts | None:
        """What is known of the class whose method a frame is."""
        if frame.own:
            return self.site.evaluator.scope.class_facts
        owner = frame.definition.owner if frame.definition is not None else ""
        return self.index.class_facts(f"{self.module_of(frame)}.{owner}") if owner else None

    def around(self, frame: Frame) -> Frame | None:
        """The function or method of the file around a function that is defined inside of it."""
        calls = self.calls_at(frame) if frame.definition is None else None
        found = calls.around(frame.node.lineno) if calls is not None else None
        return Frame(found.node, found, home=frame.home) if found is not None else None

    def resolve(self, source: Source, node: ast.expr) -> str | None:
        """The qualified name of what an expression of a frame spells."""
        if source.frame.own:
            return self.site.resolve(node)
        name = dotted(node)
        if name is None or name.partition(".")[0] in parameter_names(source.frame.node):
            return None
        if source.frame.home is not None:
            return self.index.resolve(source.frame.home.module, name)
        return self.site.evaluator.scope.resolve_global(name)

    def value(self, source: Source) -> Value | None:
        """What the dataflow knows, in the function of the site alone."""
        return self.site.value(source.node) if source.frame.own else None

    def before(self, frame: Frame, name: ast.Name) -> list[ast.expr]:
        """What a name may hold of what its function assigns to it."""
        again = frame.own and self.site.place.in_loop
        lines = self.site.source.lines if frame.home is None else _lines(frame.home.text)
        return list(reaching(frame.node, name, lines, again=again))


@lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    return text.splitlines()
