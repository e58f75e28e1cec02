"""Codes of rules that are no more: settings and comments may still name them, and nothing is found by them."""

from __future__ import annotations

from collections.abc import Collection

from graphmend_codemod.rules.framework.ask_table import CODES

RETIRED = {
    "GM106": "flag-chooses-code: with both forms under `torch.cond`, models took up to three times as long to compile",
    "GM403": "flag-of-tensor: no flag in 48 projects could stay a tensor; test the tensor itself (`if mask.any():`), "
    "which GM101, GM102 and GM301 fix",
    "GM405": "arange-end-readback: GM402 has the end of a range as one of the numbers that a tensor was made of",
    "GM406": "integer-buffer: GM402 has the integers that a constructor keeps in tensors",
    "GM407": "size-tensor: GM402 has sizes and other integers of lists that are put into tensors",
    "GM408": "truncate-to-max: it fitted one model; `--opaque` keeps the largest index in the graph (GM802)",
    "GM409": "number-of-range: GM402 has a `range` in place of positions of which single numbers are asked",
    "GM410": "python-int-in-tensor: GM402 has the integers in a tensor or array that bound slices",
    "GM503": "sizes-from-data: GM402 takes sizes from the list that a tensor was built from, GM703 names all other "
    "splits and repeats by sizes of the data",
    "GM505": "row-indices-argument: the fix computed all rows in place of a few; `--opaque` keeps the indices in the "
    "graph (GM802)",
    "GM506": "packed-rows: the fix packed all columns in place of a few; `--opaque` keeps the indices in the graph "
    "(GM802)",
    "GM507": "index-from-mask: it fitted one model; `--opaque` keeps the indices in the graph (GM802), GM509 and GM510 "
    "have copies and computations under a mask",
}
"""Why, and what does in its place, by code."""


def known_codes() -> Collection[str]:
    """The codes that settings may name: those of all rules, and those that rules had."""
    return (*CODES, *RETIRED)
