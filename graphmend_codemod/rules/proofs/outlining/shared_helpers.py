"""The helpers that outlined code of all kinds shares in a file, and names beside theirs."""

from __future__ import annotations

from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import naming
from graphmend_codemod.rules.proofs.outlining.texts import chosen
from graphmend_codemod.rules.proofs.outlining.texts import functions as of_functions

_TAKEN = frozenset(
    {"_one_operator", "_function_operator", "_value_operator", "_number_as_operator", "_nonzero_as_operator"}
)
"""Names of helpers that end like an operator's."""


def operator_name(site: Site, what: str) -> str:
    """A free name for the operator of `what`, a function or a layer, which may be called `one`."""
    name = f"_{what.strip('_')}_operator"
    return site.free_name(f"_{what.strip('_')}_as_operator" if name in _TAKEN else name)


def functions(site: Site, *, gradient: bool) -> tuple[Helper, ...]:
    """For functions of tensors that draw no random numbers; the decorator is the last."""
    features = ("gradient",) if gradient else ()
    name = "_function_operator" if gradient else "_value_operator"
    text = chosen(of_functions.FUNCTION_OPERATOR, *features).replace("_function_operator", name)
    return (
        naming(site),
        Helper("_is_transformed", of_functions.TRANSFORMED, shared=True),
        Helper(
            "_fits_a_function",
            of_functions.FITS,
            after=("_is_transformed",),
            shared=True,
            since="compiler.is_exporting",
        ),
        Helper(name, text, after=("_operator_name", "_fits_a_function"), shared=True),
    )
