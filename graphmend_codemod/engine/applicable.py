"""Whether the edit of a diagnostic may be written where it is: with this torch, these imports, and for TorchScript."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from graphmend_codemod.analysis import gradients
from graphmend_codemod.analysis.scope import Scope, walk_scope
from graphmend_codemod.core.findings import CompilePath, Edit, Original
from graphmend_codemod.engine import never_taken, older_torch, saved_masks, shadowed_names, unbound_names
from graphmend_codemod.engine.never_taken import header_conditions
from graphmend_codemod.engine.other_breaks import asks_for_compiler
from graphmend_codemod.engine.scripted import scriptable
from graphmend_codemod.project.index.facts import ReachedFunction
from graphmend_codemod.rules.framework.long_loops import long_loop
from graphmend_codemod.rules.framework.reasons import name_taken
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.exceptions import caught

Why = Callable[[Edit, Site], "str | None"]
"""The reason why an edit may not be written at a site; None where it may."""


def applicable(diagnostic: Diagnostic, rule: Rule, site: Site, reached: ReachedFunction) -> Diagnostic:
    """The diagnostic, without its edit and with the reason where something forbids to write it."""

    def why_offered(_: Edit, __: Site) -> str | None:
        return _ONLY_OFFERED if rule.for_own and reached.offered else None

    def why_caught(edit: Edit, _: Site) -> str | None:
        return _why_caught(edit, site, rule.contract)

    def why_saved(edit: Edit, _: Site) -> str | None:
        return saved_masks.why_not(edit, site, rule.contract)

    diagnostic = _with_name_of_torch(_unless(diagnostic, site, why_offered), site)
    diagnostic = older_torch.within_target(_unless(diagnostic, site, _why_private), site)
    diagnostic = _unless(diagnostic, site, _why_contradicted, why_caught, shadowed_names.why_not)
    diagnostic = _unless(diagnostic, site, _why_before_finally, _why_in_inference, never_taken.why_not)
    diagnostic = _unless(diagnostic, site, unbound_names.why_not, _why_unrolled, why_saved)
    return scriptable(_unless(diagnostic, site, _why_not_imported, _why_asked_twice), site)


def _unless(diagnostic: Diagnostic, site: Site, *reasons: Why) -> Diagnostic:
    """The diagnostic, without its edit where there is one of these reasons against it."""
    for why in reasons if diagnostic.edit is not None else ():
        if (reason := why(diagnostic.edit, site)) is not None:  # type: ignore[arg-type]
            return diagnostic._replace(edit=None, declined=reason)
    return diagnostic


_ONLY_OFFERED = (
    "nothing in this project that is compiled calls the function, and it takes no tensors; "
    "manually guard the call where a compiled model of yours does"
)


_STRING_OR_TORCH = re.compile(
    r"""(?s:\"{3}.*?\"{3})|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*"""
    r"""|(?<![\w.])(?P<torch>torch)\b(?!\s*=[^=])"""
)


def _with_name_of_torch(diagnostic: Diagnostic, site: Site) -> Diagnostic:
    """The diagnostic with the name in its edit that this module gives to torch: `import torch as th`."""
    edit, name = diagnostic.edit, site.torch
    if edit is None or name is None or name == "torch":
        return diagnostic

    def spelled(text: str) -> str:
        if "import torch" in text:  # a function that imports it by itself
            return text
        return _STRING_OR_TORCH.sub(lambda found: name if found["torch"] else found[0], text)

    def part(each: str | Original) -> str | Original:
        if isinstance(each, CompilePath):
            return CompilePath(spelled(each), tuple(map(spelled, each.conditions)), each.negated)
        return spelled(each) if isinstance(each, str) else each

    changed = edit._replace(
        replacements=tuple(each._replace(parts=tuple(map(part, each.parts))) for each in edit.replacements),
        imports=tuple(each for each in edit.imports if each != "torch"),
        helpers=tuple(each._replace(source=spelled(each.source)) for each in edit.helpers),
    )
    scope = site.evaluator.scope
    if changed != edit and (scope.is_local("torch") or scope.resolve_global("torch") is not None):
        return diagnostic._replace(edit=None, declined=name_taken())
    return diagnostic._replace(edit=changed)


_PRIVATE = r"__\w*[^\W_](?!\w)"
_PRIVATE_ATTRIBUTE = re.compile(rf"[.\"']({_PRIVATE})")
_PRIVATE_WORD = re.compile(rf"[\"']({_PRIVATE})[\"']")


def _why_private(edit: Edit, site: Site) -> str | None:
    """The reason if the edit names `self.__part` in code outside of the class, or in a string.

    Python turns `__part` into `_Class__part` only inside the class body, and never in strings.
    """
    if site.evaluator.scope.class_qualified is None or "__" not in site.source.text:
        return None
    found = [_PRIVATE_ATTRIBUTE.search(each.source) for each in edit.helpers]
    found += [_PRIVATE_WORD.search(text) for text in _written(edit._replace(helpers=()))]
    name = next((each[1] for each in found if each is not None), None)
    reason = f"`{name}` is a private name, which works only inside the class body"
    return f"{reason}; manually give it a name with one underscore" if name is not None else None


def _why_unrolled(_: Edit, site: Site) -> str | None:
    """The reason in a loop that Dynamo would unroll into thousands of operations."""
    loop = long_loop(site)
    reason = f"without the break, Dynamo unrolls all rounds of `{loop}`, which takes longer to compile and to run"
    return f"{reason}; manually compute the rounds at once, or keep the break" if loop is not None else None


def _why_asked_twice(edit: Edit, site: Site) -> str | None:
    """The reason where the edit reads what a subclass makes a property that may do more than read.

    A header asks before the author's statement does, and once more than eager mode where it is not true.
    """
    scope = site.evaluator.scope
    if scope.self_name is None or scope.class_facts is None:
        return None
    own = re.compile(rf"\b{scope.self_name}\.(\w+)")
    read = {name for text in _written(edit._replace(helpers=())) for name in own.findall(text)}
    # Nobody makes a property of these.
    read -= {"training", *(scope.class_facts.methods.keys() - scope.class_facts.properties)}
    headers = {name for each in header_conditions(edit, site) for name in own.findall(ast.unparse(each))}
    for name in sorted(headers & scope.class_facts.properties):
        known = scope.index.function(scope.class_facts.methods.get(name, ""))
        if known is None or known.loud:
            return f"the property `{scope.self_name}.{name}` may do more than read; assign it to a variable first"
    for heir in scope.index.heirs(scope.class_facts.qualified) if read else ():
        facts = scope.index.class_facts(heir)
        for name in sorted(read & facts.properties) if facts is not None else ():
            made = facts.methods.get(name) if facts is not None else None
            known = scope.index.function(made) if made is not None else None
            if made != scope.class_facts.methods.get(name) and (known is None or known.loud):
                reason = f"`{scope.self_name}.{name}` is a property of `{heir}` that may do more than read"
                return f"{reason}; assign it to a variable first"
    return None


def _why_before_finally(_: Edit, site: Site) -> str | None:
    """The reason in an `except` of a `try` that has a `finally`.

    Dynamo of torch 2.13 ends in an internal error where such code has more than 255 instructions and a graph begins
    in the function before it.
    """
    handlers = [parent for parent in site.place.parents if isinstance(parent, ast.ExceptHandler)]
    parts = walk_scope(site.evaluator.scope.node) if handlers else ()
    tries = [part for part in parts if isinstance(part, ast.Try) and part.finalbody]
    inside = any(handler in part.handlers for part in tries for handler in handlers)
    reason = "Dynamo may fail where an `except` in front of a `finally` gets longer; move the code into a function"
    return reason if inside else None


def _why_in_inference(_: Edit, site: Site) -> str | None:
    """The reason under `torch.inference_mode` in the same function.

    AOTAutograd of torch 2.13 ends in an error where a graph enters that mode and takes a view of what it was given, as
    it then does without the break. A break leaves the mode to eager mode.
    """
    parents = [each for each in site.place.parents if isinstance(each, (ast.With, ast.AsyncWith))]
    contexts = [item.context_expr for each in parents for item in each.items]
    contexts += site.evaluator.scope.node.decorator_list
    reason = "a graph that enters `torch.inference_mode` may not compile with torch 2.13; use `torch.no_grad()` there"
    return reason if any(gradients.sets_inference(each, site.resolve) for each in contexts) else None


def _is_taken(site: Site, name: str) -> bool:
    """True where the file gives the name of a module it needs to anything else, or another file does."""
    imported = [each.target for each in site.summary.bindings if each.kind == "import" and each.name == name]
    if not site.stays(name) or any(target.replace(":", ".").partition(".")[0] != name for target in imported):
        return True
    # Nobody gives `torch` another meaning, and to ask reads the whole project.
    written = site.evaluator.scope.index.writers(name) if name != "torch" else ()
    return any(write.how == "assigned" for _, write in written)


def _why_contradicted(edit: Edit, site: Site) -> str | None:
    """The reason where an import is taken, or the author's own test may say the opposite of the header."""
    if site.torch is None and "torch" in edit.imports:
        return name_taken()
    taken = next((name for name in edit.imports if _is_taken(site, name.partition(".")[0])), None)
    if taken is not None:
        return name_taken(taken)
    asked = asks_for_compiler(site) if edit.writes_path else None
    reason = f"`{asked}` may already test whether torch.compile runs; call `torch.compiler.is_compiling()` directly"
    return reason if asked is not None else None


def _why_caught(edit: Edit, site: Site, contract: Contract) -> str | None:
    """The reason where something may catch what the statement raises.

    A break makes Dynamo run such code in eager mode; without it, an exception ends all of the compiled code.
    """
    if not edit.raises or not contract.may_raise:
        return None
    # Code that an operator holds may call what raises exceptions of its own.
    catcher = caught(site, torch_alone=contract.cost is not Cost.OUTLINED)
    reason = f"an exception that it raises may be caught, and in compiled code is not: {catcher}"
    return reason if catcher is not None else None


def _why_not_imported(edit: Edit, site: Site) -> str | None:
    """The reason where the edit needs torch in code that does without: torch may not be installed."""
    scope = site.evaluator.scope
    if scope.is_local("torch"):
        return None
    helpers = tuple(each for each in edit.helpers if "import torch\n" not in each.source)
    texts = _written(edit._replace(helpers=helpers))
    imports = [
        each
        for each in site.summary.bindings
        if each.kind == "import" and each.target.replace(":", ".").partition(".")[0] == "torch"
    ]
    spelled = [each for each in imports if any(f"{each.name}." in text for text in texts)]
    bound = [each for each in spelled if not each.for_types]
    missing = not imports and "torch" in edit.imports
    if missing and not scope.index.imports_torch(site.summary.name):
        return "this file does not import torch and may be used where torch is not installed; import torch at the top"
    if spelled and not bound:
        return f"this file imports `{spelled[0].name}` only under `TYPE_CHECKING`; import it at the top"
    if not missing and "torch" in edit.imports and all(each.for_types for each in imports):
        return "this file imports torch only under `TYPE_CHECKING`; import it at the top"
    if bound and all(each.conditional for each in bound) and not _needs_torch(scope, {each.name for each in bound}):
        return f"`{bound[0].name}` is imported conditionally, and this function does not use it"
    return None


_TOLD = re.compile(r'""".*?"""|^ *#[^\n]*', re.DOTALL | re.MULTILINE)


def _written(edit: Edit) -> list[str]:
    """The code that an edit writes, without what docstrings and comments tell."""
    texts = [part for each in edit.replacements for part in each.parts if isinstance(part, str)]
    return [_TOLD.sub("", text) for text in (*texts, *(helper.source for helper in edit.helpers))]


def _needs_torch(scope: Scope, names: set[str]) -> bool:
    """True for a function that names torch, and for methods of modules."""
    facts = scope.class_facts
    return not names.isdisjoint(scope.outline.words) or (facts is not None and facts.is_module)
