"""A quick look for calls that a traceable one may take the place of: a commit hook asks this of most files."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.outline import Outline
from graphmend_codemod.analysis.patterns import root_of
from graphmend_codemod.project.summary.candidates import FOREIGN_NAMES

HELPERS = (
    "_variable_while_tracing", "_tqdm_while_tracing", "_trange_while_tracing", "_sdp_kernel_while_tracing",
    "_fast_length_while_tracing", "_fftpack_length_while_tracing", "_cudnn_flags_while_tracing",
    "_catch_warnings_while_tracing", "_spectrogram_while_tracing", "_contract_while_tracing", "_min_while_tracing",
    "_max_while_tracing",
)  # fmt: skip
"""Functions of the module that the twins call: they may call what they stand for, where nothing else does the same."""
_NAMES = (
    "BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor "
    "Tensor Variable _is_tracing add_ addcdiv_ addcmul_ byte catch_warnings collect contract copy filterwarnings "
    "finfo flags get_default_device iinfo isinstance monotonic next_fast_len perf_counter process_time random resize_ "
    "sdp_kernel simplefilter time tqdm trange"
)
NAMES = frozenset(_NAMES.split())
"""The last parts of the names of all functions, classes and methods for which there is something traceable."""


def lines(outline: Outline) -> list[int]:
    """The lines of calls of NumPy and its like, which may compute a constant."""
    if FOREIGN_NAMES in outline.notes:
        return [call.lineno for call in outline.calls]
    return [call.lineno for call in outline.calls if any(map(_is_of_numpy, [call, *call.args]))]


def _is_of_numpy(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and root_of(node.func) in {"np", "numpy"}


def ranking_lines(outline: Outline) -> list[int]:
    """The lines of `min(values, key=rank)`."""
    return [call.lineno for call in outline.calls if is_ranking(call)]


def is_ranking(node: ast.Call) -> bool:
    """True for `min` and `max` with a key, by their look."""
    named = isinstance(node.func, ast.Name) and node.func.id in {"min", "max"}
    return named and any(word.arg == "key" for word in node.keywords)
