"""Calls that Dynamo never traces, by qualified name, with advice for a manual fix.

What is listed was compiled and broke; what compiles, such as `random.uniform` in arithmetic, is not listed. Of NMS only
the source was read: the result of torchvision's operator has a size from data, which is a break unless the capture of
such operators is on (https://github.com/pytorch/vision/blob/main/torchvision/_meta_registrations.py).
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.project.summary.candidates import UNKNOWN_TO_TORCH

_AROUND = "compile the code around it separately"


class Refused(NamedTuple):
    """What a call does, and what can be done about it by hand."""

    does: str
    advice: str


_PACKS = Refused(
    "packs or unpacks sequences",
    f"Dynamo does not trace packed sequences; manually pass padded input and mask the output, or {_AROUND}",
)
_CTC = Refused(
    "computes a CTC loss",
    "its operator saves a tensor of data-dependent shape; manually compute the loss outside the compiled function",
)
_SPARSE = Refused(
    "makes a sparse tensor", f"torch.compile does not support sparse tensors; manually use a dense tensor, or {_AROUND}"
)
_STATE = Refused(
    "sets or reads the state of the random number generator",
    "Dynamo does not trace it; manually move it in front of the call of the compiled function",
)
_DRAWS = Refused(
    "draws a random number with Python",
    "Dynamo does not trace it; manually draw with `torch.rand`, or pass the number in as an argument",
)
_CLOCK = Refused(
    "reads the clock", "Dynamo does not trace it; manually measure around the call of the compiled function"
)
_COLLECTS = Refused(
    "collects garbage", "Dynamo does not trace it; manually move it between calls of the compiled function"
)
_SHOWS = Refused(
    "shows progress",
    "Dynamo does not trace it; manually iterate over the plain range under `torch.compiler.is_compiling()`",
)
_SCIPY = Refused("calls SciPy", f"Dynamo does not trace it; manually {_AROUND}")
_NUMPY = Refused(
    "calls a function of NumPy without a counterpart in `torch._numpy`", f"Dynamo does not trace it; manually {_AROUND}"
)
_GRADIENTS = Refused(
    "computes gradients",
    f"Dynamo traces it only with `torch._dynamo.config.trace_autograd_ops = True`; set it, or {_AROUND}",
)
_CLASSES = Refused(
    "output shape depends on the data (`num_classes` is not given)", "pass `num_classes`, so that the shape is static"
)
_MAKES_PARAMETER = Refused(
    "makes a parameter while `forward` runs",
    "Dynamo does not support `nn.Parameter()`; create it in `__init__`, or use a plain tensor",
)
_BACKWARD = Refused(
    "computes gradients", "Dynamo does not trace `backward()`; call it on the output of the compiled function"
)
_SUPPRESSES = Refused(
    "output has a data-dependent shape",
    f"no static-shape rewrite; manually keep all boxes and mask their scores, or {_AROUND}",
)

_PACKED = "torch.nn.utils.rnn"
BY_NAME: dict[str, Refused] = {
    **dict.fromkeys(
        (f"{_PACKED}.{name}" for name in ("pack_padded_sequence", "pad_packed_sequence", "pack_sequence")), _PACKS
    ),
    "torch.nn.functional.ctc_loss": _CTC,
    **dict.fromkeys(("torch.sparse_coo_tensor", "torch.sparse_csr_tensor"), _SPARSE),
    **dict.fromkeys(("torch.manual_seed", "torch.Generator", "torch.get_rng_state"), _STATE),
    **dict.fromkeys(
        (f"random.{name}" for name in ("random", "choice", "choices", "shuffle", "sample", "gauss", "seed")), _DRAWS
    ),
    **dict.fromkeys((f"time.{name}" for name in ("time", "perf_counter", "monotonic", "sleep")), _CLOCK),
    "datetime.datetime.now": _CLOCK,
    "gc.collect": _COLLECTS,
    **dict.fromkeys(("tqdm.tqdm", "tqdm.trange", "tqdm.auto.tqdm", "tqdm.auto.trange"), _SHOWS),
    "torch.autograd.grad": _GRADIENTS,
    "torch.autograd.backward": _BACKWARD,
    **dict.fromkeys(("torch.nn.Parameter", "torch.nn.parameter.Parameter"), _MAKES_PARAMETER),
    **dict.fromkeys(
        (f"torchvision.ops.{name}" for name in ("nms", "batched_nms", "boxes.nms", "boxes.batched_nms")), _SUPPRESSES
    ),
}
_SPARSE_METHODS = frozenset({"to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc"})
NAMES = frozenset(
    {
        *(name.rpartition(".")[2] for name in BY_NAME),
        *_SPARSE_METHODS,
        "one_hot",
        "backward",
        "next_fast_len",
        "linear_sum_assignment",
    }
)
"""What such calls are spelled with, behind the last dot."""


def refused(node: ast.Call, called: str | None, made: str | None) -> Refused | None:
    """Why Dynamo refuses a call of `called`; `made` is the class of the layer that is called, if one is."""
    if called is not None and called in BY_NAME:
        return BY_NAME[called]
    if called is not None and called.startswith("scipy."):
        return _SCIPY
    if called is not None and called.startswith("numpy."):
        return _NUMPY if called.startswith("numpy.polynomial.") or called[6:] in UNKNOWN_TO_TORCH else None
    if called == "torch.nn.functional.one_hot":
        given = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "num_classes")]
        counted = not given or (isinstance(given[0], ast.UnaryOp) and isinstance(given[0].operand, ast.Constant))
        return _CLASSES if counted else None
    if called is None and isinstance(node.func, ast.Attribute) and node.func.attr in _SPARSE_METHODS:
        return _SPARSE
    if called is None and isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
        return _BACKWARD
    return _CTC if made is not None and torch_api.torch_module_class(made) == "CTCLoss" else None
