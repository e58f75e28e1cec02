"""An index view that records every query, so that a cached answer can be validated."""

from __future__ import annotations

from graphmend_codemod.core.digests import blake2b
from graphmend_codemod.project.index.facts import AttributeFact, ClassFacts, FunctionFacts, Home
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.summary.records import Write

Question = tuple[str, str, str]


class Answers:
    """Questions to one index and the names of its answers, each worked out once."""

    def __init__(self, index: ProjectIndex) -> None:
        self._index = index
        self._names: dict[Question, str] = {}

    def name(self, question: Question) -> str:
        """A short text that is equal when the answer is: the resolved name, or a digest of the facts."""
        name = self._names.get(question)
        if name is None:
            kind, first, second = question
            if kind == "resolve":
                name = self._index.resolve(first, second) or ""
            elif kind == "function":
                name = _digest(self._index.function(first))
            elif kind == "class":
                name = _digest(self._index.class_facts(first))
            elif kind == "heirs":
                name = " ".join(self._index.heirs(first))
            elif kind == "users":
                name = " ".join(self._index.users(first))
            elif kind == "scripted":
                qualname, _, line = second.rpartition(":")
                name = str(self._index.is_scripted(first, qualname, int(line)))
            elif kind == "caught":
                qualname, _, line = second.rpartition(":")
                name = self._index.caught(first, qualname, int(line)) or ""
            elif kind == "loud":
                name = str(self._index.is_loud(first))
            elif kind == "torch":
                name = str(self._index.imports_torch(first))
            elif kind == "home":
                home = self._index.home(first)
                name = "" if home is None else _digest_of(repr(home))
            elif kind == "naming":
                name = _digest_of(repr(self._index.naming(first)))
            elif kind == "writing":
                name = _digest_of(repr(self._index.writing_callers(first)))
            elif kind == "spells":
                name = str(self._index.spells(first, second))
            elif kind == "readers":
                name = " ".join(self._index.readers(first))
            elif kind == "writers":
                name = repr(self._index.writers(first))
            else:
                name = _digest(self._index.global_fact(first, second))
            self._names[question] = name
        return name


class RecordingView:
    """`IndexView` over an index; `asked` are the questions of one file."""

    _index: ProjectIndex

    def __init__(self, index: ProjectIndex) -> None:
        self._index = index
        self.asked: dict[Question, None] = {}

    def close(self) -> None:
        """Let the index go: whoever still holds this view shall not keep a whole project in memory."""
        del self._index

    def resolve(self, module: str, dotted: str) -> str | None:
        """See `IndexView.resolve`."""
        self.asked["resolve", module, dotted] = None
        return self._index.resolve(module, dotted)

    def function(self, qualified: str) -> FunctionFacts | None:
        """See `IndexView.function`."""
        self.asked["function", qualified, ""] = None
        return self._index.function(qualified)

    def class_facts(self, qualified: str) -> ClassFacts | None:
        """See `IndexView.class_facts`."""
        self.asked["class", qualified, ""] = None
        return self._index.class_facts(qualified)

    def global_fact(self, module: str, name: str) -> AttributeFact | None:
        """See `IndexView.global_fact`."""
        self.asked["global", module, name] = None
        return self._index.global_fact(module, name)

    def heirs(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.heirs`."""
        self.asked["heirs", qualified, ""] = None
        return self._index.heirs(qualified)

    def users(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.users`."""
        self.asked["users", qualified, ""] = None
        return self._index.users(qualified)

    def is_scripted(self, path: str, qualname: str, line: int) -> bool:
        """See `IndexView.is_scripted`."""
        self.asked["scripted", path, f"{qualname}:{line}"] = None
        return self._index.is_scripted(path, qualname, line)

    def caught(self, path: str, qualname: str, line: int) -> str | None:
        """See `IndexView.caught`."""
        self.asked["caught", path, f"{qualname}:{line}"] = None
        return self._index.caught(path, qualname, line)

    def is_loud(self, name: str) -> bool:
        """See `IndexView.is_loud`."""
        self.asked["loud", name, ""] = None
        return self._index.is_loud(name)

    def imports_torch(self, module: str) -> bool:
        """See `IndexView.imports_torch`."""
        self.asked["torch", module, ""] = None
        return self._index.imports_torch(module)

    def home(self, qualified: str) -> tuple[Home, str] | None:
        """See `IndexView.home`."""
        self.asked["home", qualified, ""] = None
        return self._index.home(qualified)

    def naming(self, qualified: str) -> tuple[Home, ...]:
        """See `IndexView.naming`."""
        self.asked["naming", qualified, ""] = None
        return self._index.naming(qualified)

    def writing_callers(self, qualified: str) -> tuple[Home, ...]:
        """See `IndexView.writing_callers`."""
        self.asked["writing", qualified, ""] = None
        return self._index.writing_callers(qualified)

    def spells(self, path: str, name: str) -> bool:
        """See `IndexView.spells`."""
        self.asked["spells", path, name] = None
        return self._index.spells(path, name)

    def readers(self, attribute: str) -> tuple[str, ...]:
        """See `IndexView.readers`."""
        self.asked["readers", attribute, ""] = None
        return self._index.readers(attribute)

    def writers(self, attribute: str) -> tuple[tuple[str, Write], ...]:
        """See `IndexView.writers`."""
        self.asked["writers", attribute, ""] = None
        return self._index.writers(attribute)


def _digest(facts: FunctionFacts | ClassFacts | AttributeFact | None) -> str:
    if facts is None:
        return ""
    if isinstance(facts, ClassFacts):
        text = repr(
            (
                (facts.qualified, facts.is_module, facts.bases, sorted(facts.properties)),
                sorted(facts.methods.items()),
                sorted((name, repr(fact)) for name, fact in facts.attributes.items()),
            )
        )
    else:
        text = repr(facts)
    return _digest_of(text)


def _digest_of(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
