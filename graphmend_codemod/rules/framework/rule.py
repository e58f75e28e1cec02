"""What a rule is: metadata and match functions for `ast` node types."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from graphmend_codemod.core.findings import Edit, Safety

if TYPE_CHECKING:
    from graphmend_codemod.analysis.outline import Outline
    from graphmend_codemod.rules.framework.examples import Shown
    from graphmend_codemod.rules.framework.site import Site


class Cost(enum.Enum):
    """What compiled code does more after a fix than before, breaks and syncs aside.

    `BOTH_ARMS` computes or compiles what a test would have skipped, or looks at all elements where some were chosen:
    elementwise work, or one more arm. `MULTIPLIED` does the work of chosen rows for every row, and is never safe.
    `OUTLINED` runs a region as one operator, in eager mode: Inductor does not see inside, and each call takes some
    0.05 ms more.
    """

    NONE = "none"
    BOTH_ARMS = "both arms"
    MULTIPLIED = "multiplied"
    OUTLINED = "outlined"


FLOAT_WARNING = "kept, but for torch's own warning about `float()` of a tensor that needs gradients"
BRANCH_MESSAGES = f"those of the branch are left out, others {FLOAT_WARNING}"
ASKS_CLASSES = "kept; asking for the class of a layer reads its attribute once more"
EIGHT_BITS = "kept; a gradient of 8-bit floats raises one: torch cannot add those of both arms"
WRITES_ANYWAY = "where the mask chooses nothing, a gradient that needs what is written as it was raises one as well"
"""What several contracts say."""


class Contract(NamedTuple):
    """What holds under `torch.compile`; in eager mode everything is kept, always, and costs the same.

    `cost` says what the compiled code does more, `cost_note` in what way, in one line. Each other field is one of
    `kept`, `once per compilation`, `dropped`, or a sentence. `may_raise` is False where the rule itself asks who
    catches its exceptions, or what it leaves to compiled code raises none: other fixes are left to code in which no
    `try` catches. `saves_masks` is True where a gradient of the compile path needs the masks or indices of the site,
    which eager mode does not save: they may not change in place later. `saves_inputs` says so of all that it reads.
    """

    cost: Cost
    cost_note: str = ""
    compiled_exceptions: str = "kept"
    compiled_logs: str = "kept"
    compiled_state: str = "kept"
    may_raise: bool = True
    saves_masks: bool = False
    saves_inputs: bool = False


class About(enum.Enum):
    """What the reason of a diagnostic is about, where that decides which of two reasons is told."""

    OPERATOR = enum.auto()  # nothing but why the code cannot be called as an opaque operator
    BOTH = enum.auto()  # something else, and that as well
    RECORDED_RUN = enum.auto()  # why what a recorded run tells is not enough for an operator


class Diagnostic(NamedTuple):
    """A match's answer: a message with an edit, or with the condition that failed (`declined`).

    `safety` overrides the rule's own; `node` moves the finding away from the node that was matched. A fix that
    multiplies work is never safe, whatever `safety` says. `needs_torch` is the torch, as (2, 6), with which a fix would
    be written that was declined for the project's lowest torch alone. `about` says what `declined` is about.
    """

    message: str
    edit: Edit | None = None
    declined: str | None = None
    safety: Safety | None = None
    node: ast.AST | None = None
    needs_torch: tuple[int, int] | None = None
    about: About | None = None


Match = Callable[["Site", Any], "Diagnostic | None"]
"""Given a site and its node: what is said of it; None for a node that is no break of this kind."""
Look = Callable[[Any], bool]
"""Whether a node, by its tree alone, is worth asking a match function for."""
Lines = Callable[["Outline"], Sequence[int]]
"""The lines of a function that hold what a match function looks for."""


class Asked(NamedTuple):
    """A match function and when it is worth asking: the arguments of `Rule.on`."""

    match: Match
    candidate: str = ""
    words: frozenset[str] = frozenset()
    here: bool = False
    when: Look | None = None
    lines: Lines | None = None


class Rule:
    """One rule.

    `module` is the name of its module, `gmNNN_what_it_finds`, which tells its code and slug.
    `title` is an imperative phrase for commits ("select with torch.where instead of branching"). `documentation` is the
    docstring of the rule's module: `slug (CODE): one line.`, a blank line, paragraphs. `yields` is true for a rule that
    leaves a break in some runs: any other rule with a safe fix for the site goes first. `for_own` is true for a rule
    that fixes only what something in the project compiles, and not what is there for models of others.
    """

    def __init__(
        self,
        module: str,
        documentation: str,
        title: str,
        contract: Contract,
        *,
        safety: Safety = Safety.SAFE,
        yields: bool = False,
        for_own: bool = False,
    ) -> None:
        code, _, words = module.rpartition(".")[2].partition("_")
        self.code, self.slug = code.upper(), words.replace("_", "-")
        self.title = title
        self.documentation = documentation
        self.safety = safety
        self.contract = contract
        self.yields = yields
        self.for_own = for_own
        self.matches: dict[type[ast.AST], list[Asked]] = {}
        if contract.cost is Cost.MULTIPLIED and safety is Safety.SAFE:
            raise ValueError(f"{self.code} multiplies work, so its fix cannot be safe")

    @cached_property
    def examples(self) -> Sequence[Shown]:
        """What the rule fixes, declines and does not find, as its file in `rules/examples` tells."""
        from graphmend_codemod.rules.framework.examples import shown_by  # not needed where code is looked at

        return shown_by(self.code)

    def safety_of(self, diagnostic: Diagnostic) -> Safety:
        """How safe the fix of one diagnostic is: one that multiplies work is unsafe at best."""
        safety = diagnostic.safety or self.safety
        if safety is Safety.SAFE and self.contract.cost is Cost.MULTIPLIED:
            return Safety.UNSAFE
        return safety

    def on(
        self,
        *types: type[ast.AST],
        candidate: str = "",
        words: Collection[str] = (),
        here: bool = False,
        when: Look | None = None,
        lines: Lines | None = None,
    ) -> Callable[[Match], Match]:
        """Register a match function for these `ast` node types.

        It is asked only in functions of which the summary says `candidate` (see `FunctionSummary.candidates`), and in
        which at least one of `words` occurs as a name that is read or behind a dot, or as an index that is no constant
        (`outline.INDEXED`); if `here`, in the node itself. For functions without such words a rule is not even loaded.
        What can be told by a look at the node alone comes in `when`: it costs less than being asked. `lines` tells the
        lines of a function that hold anything worth asking for.
        """

        def register(match: Match) -> Match:
            for node_type in types:
                self.matches.setdefault(node_type, []).append(
                    Asked(match, candidate, frozenset(words), here, when, lines)
                )
            return match

        return register
