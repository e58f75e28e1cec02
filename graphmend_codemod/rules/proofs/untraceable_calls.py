"""Calls that Dynamo never traces, by qualified name, with advice for a manual fix.

What is listed was compiled and broke; what compiles, such as `random.uniform` in arithmetic, is not listed. Of NMS only
the source was read: the result of torchvision's operator has a size from data, which is a break unless the capture of
such operators is on (https://github.com/pytorch/vision/blob/main/torchvision/_meta_registrations.py).
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.project.summary.candidates import CHECKS, COMPILED, SPECTRA, UNKNOWN_AS_NUMPY, UNKNOWN_TO_TORCH

_AROUND = "compile the code around it separately"


class Refused(NamedTuple):
    """What a call does, and what can be done about it by hand."""

    does: str
    advice: str


def _untraced(does: str, way_out: str) -> Refused:
    return Refused(does, f"Dynamo does not trace it; manually {way_out}")


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
_STATE = _untraced(
    "sets or reads the state of the random number generator", "move it in front of the call of the compiled function"
)
_DRAWS = _untraced("draws a random number with Python", "draw with `torch.rand`, or pass the number in as an argument")
_CLOCK = _untraced("reads the clock", "measure around the call of the compiled function")
_COLLECTS = _untraced("collects garbage", "move it between calls of the compiled function")
_SHOWS = _untraced("shows progress", "iterate over the plain range under `torch.compiler.is_compiling()`")
_COMPILED = Refused(
    "calls a library that is not written with torch",
    f"Dynamo does not trace compiled extensions; manually call it before the compiled function, or {_AROUND}",
)
_SCIPY = _untraced("calls SciPy", _AROUND)
_NUMPY = _untraced("calls a function of NumPy without a counterpart in `torch._numpy`", _AROUND)
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

_HOOKS = _untraced("registers a hook", "register it before the compiled function")
_FILES = _untraced(
    "reads or writes files or settings of the system", "move it in front of the call of the compiled function"
)
_WARNS = _untraced("changes the filters of warnings", "move it in front of the call of the compiled function")
_FORKS = _untraced("runs a function in the background", "call the function itself")
_SIZED_BY_DATA = Refused("output has a data-dependent shape", f"no static-shape rewrite; manually {_AROUND}")
_FUNCTIONAL = _untraced("computes derivatives with `torch.autograd.functional`", "use `torch.func`")
_DISPATCHES = Refused(
    "looks up a formula by the types of two distributions",
    "Dynamo does not trace the look-up; manually write the formula, or compute it outside the compiled function",
)
_NESTED = _untraced("makes a nested tensor", f"pad and mask, or {_AROUND}")
_IN_PLACE = Refused(
    "changes a tensor with a method that Dynamo does not trace", "manually write it with functions of torch"
)
_EVALUATES = _untraced("evaluates source text", "write the expression out")
_SCRIPTS = _untraced("compiles with TorchScript", "do it in `__init__`")
_SETS_ASIDE = _untraced("changes settings of torch for a block", "set it around the call of the compiled function")
_INITIALISES = _untraced("draws initial weights", "initialise in `__init__`, before compiling")
_MARKS_DIRTY = Refused(
    "says that an autograd function changes its input",
    "Dynamo does not trace `mark_dirty`; manually compute out of place, and write the result back around the call",
)
_LOADS = _untraced("loads weights", "load them before compiling")
_ADDS = _untraced("adds a layer while `forward` runs", "add it in `__init__`")
_IMPORTS = _untraced("imports a module by its name", "import it at the top of the file")
TRANSFORMS = Refused(
    "applies a random transform of torchvision",
    "it draws numbers with `.item()`, which Dynamo does not trace; manually apply it before the compiled function",
)
_SPECTRUM = Refused(
    "computes a spectrogram with torchaudio",
    f"it asks `torch.jit.isinstance`, which Dynamo does not trace; manually use `torch.stft`, or {_AROUND}",
)
_MEMORY = _untraced("asks for the memory of a tensor or an array", "compute with the tensor itself")
_STACKS = _untraced("enters context managers with an `ExitStack`", "write nested `with` statements")
_CHANGES_CLASS = _untraced("makes a tensor one of another class", f"compute with plain tensors, or {_AROUND}")
_ASKS_BUILD = _untraced("asks how torch was built", "ask once, when the module is imported")
_GENERATES = _untraced(
    "draws a random number with a generator of NumPy", "draw with `torch.rand`, or pass it in as an argument"
)
_COPIES = Refused(
    "makes a shallow copy", "Dynamo does not trace `copy.copy`; manually use `list(x)`, `dict(x)` or `x.copy()`"
)
_SORTS = _untraced(
    "keeps a list in order with a compiled function of Python",
    "use `sorted`, or move it in front of the call of the compiled function",
)
_IDENTIFIES = _untraced(
    "makes a key, a hash or an identifier", "make it in `__init__`, or in front of the call of the compiled function"
)
_ASKS_MACHINE = _untraced("asks about the machine", "ask in `__init__` and keep the answer in an attribute")
_ASKS_SETTINGS = _untraced("asks for a setting or a mode of torch", "ask in front of the call of the compiled function")
_ASKS_KIND = _untraced(
    "asks what kind of tensor it is", "ask for its dtype, shape or device instead, or ask before compiling"
)
_HANDS_OVER = Refused(
    "hands a tensor to another library", "Dynamo does not trace DLPack; manually do it before the compiled function"
)
_MEASURES_MEMORY = _untraced("asks how much memory the device uses", "measure around the call of the compiled function")
_ASKS_TYPES = _untraced("asks how dtypes combine", "ask `torch.promote_types(a.dtype, b.dtype)`")
_ESTIMATES = Refused(
    "checks its weights with a data-dependent test", "manually compute it from `x - x.mean(...)` and a matrix product"
)
_CUDNN = Refused(
    "sets flags of cuDNN for a block",
    "Dynamo does not trace the context manager; manually set the flags around the call of the compiled function",
)
_INSPECTS = _untraced("inspects a signature", "inspect it in `__init__`")
_NUMPY_ERRORS = _untraced("sets how NumPy treats errors", "set it around the call of the compiled function")

_NAMED = (
    ("torch.nn.utils.rnn", "pack_padded_sequence pad_packed_sequence pack_sequence", _PACKS),
    ("torch", "nn.functional.ctc_loss ctc_loss", _CTC),
    ("torch", "sparse_coo_tensor sparse_csr_tensor sparse.mm", _SPARSE),
    ("torch", "manual_seed Generator get_rng_state set_rng_state initial_seed", _STATE),
    ("torch.random", "get_rng_state set_rng_state fork_rng manual_seed", _STATE),
    ("torch.cuda", "manual_seed manual_seed_all", _STATE),
    ("torch.autograd.functional", "hessian hvp jacobian jvp vhp vjp", _FUNCTIONAL),
    ("os.path", "exists isfile isdir", _FILES),
    ("os", "makedirs listdir cpu_count getcwd putenv", _FILES),
    ("json", "dump dumps load loads", _FILES),
    ("torch", "save load", _FILES),
    ("builtins", "open", _FILES),
    ("sys.stdout", "write flush", _FILES),
    ("warnings", "catch_warnings simplefilter filterwarnings", _WARNS),
    ("copy", "copy", _COPIES),
    ("contextlib", "ExitStack", _STACKS),
    ("bisect", "bisect bisect_left bisect_right insort", _SORTS),
    ("heapq", "heapify heappop heappush nlargest nsmallest", _SORTS),
    ("hashlib", "md5 sha256", _IDENTIFIES),
    ("uuid", "uuid1 uuid4", _IDENTIFIES),
    ("threading", "get_ident", _IDENTIFIES),
    ("pickle", "dumps loads", _FILES),
    ("torch", "get_num_threads set_num_threads backends.mps.is_available utils.data.get_worker_info", _ASKS_MACHINE),
    ("torch.cuda", "device_count is_bf16_supported is_tf32_supported", _ASKS_MACHINE),
    (
        "torch",
        """is_inference_mode_enabled is_anomaly_enabled is_anomaly_check_nan_enabled is_warn_always_enabled
        get_float32_matmul_precision get_deterministic_debug_mode get_num_interop_threads
        is_deterministic_algorithms_warn_only_enabled backends.cuda.flash_sdp_enabled
        backends.cuda.math_sdp_enabled backends.cuda.mem_efficient_sdp_enabled backends.cuda.cudnn_sdp_enabled""",
        _ASKS_SETTINGS,
    ),
    ("torch", "is_inference is_conj is_neg is_signed is_same_size is_storage typename", _ASKS_KIND),
    ("torch", "from_dlpack to_dlpack utils.dlpack.from_dlpack", _HANDS_OVER),
    (
        "torch.cuda",
        "memory_allocated memory_reserved max_memory_allocated max_memory_reserved memory_stats",
        _MEASURES_MEMORY,
    ),
    ("torch", "result_type can_cast", _ASKS_TYPES),
    ("torch", "cov corrcoef", _ESTIMATES),
    ("torch", "backends.cudnn.flags", _CUDNN),
    ("inspect", "getfullargspec", _INSPECTS),
    ("numpy", "errstate", _NUMPY_ERRORS),
    ("torch", "jit.fork jit.wait", _FORKS),
    ("torch", "combinations linalg.lstsq lobpcg", _SIZED_BY_DATA),
    ("torch", "distributions.kl_divergence distributions.kl.kl_divergence", _DISPATCHES),
    ("torch", "nested.nested_tensor", _NESTED),
    ("builtins", "__import__", _IMPORTS),
    ("importlib", "import_module", _IMPORTS),
    ("builtins", "eval exec", _EVALUATES),
    ("torch", "jit.script jit.trace", _SCRIPTS),
    ("torch", "autograd.set_detect_anomaly", _SETS_ASIDE),
    ("torch", "nn.init.trunc_normal_", _INITIALISES),
    ("numpy.random", "default_rng", _GENERATES),
    ("random", "random choice choices shuffle sample gauss seed", _DRAWS),
    ("time", "time perf_counter monotonic sleep", _CLOCK),
    ("datetime.datetime", "now", _CLOCK),
    ("gc", "collect", _COLLECTS),
    ("tqdm", "tqdm trange", _SHOWS),
    ("tqdm.auto", "tqdm trange", _SHOWS),
    ("torchaudio.functional", "spectrogram inverse_spectrogram", _SPECTRUM),
    ("torch", "backends.mkl.is_available", _ASKS_BUILD),
    ("torch", "Tensor.as_subclass", _CHANGES_CLASS),
    ("torch", "autograd.grad", _GRADIENTS),
    ("torch", "autograd.backward", _BACKWARD),
    ("torch", "nn.Parameter nn.parameter.Parameter", _MAKES_PARAMETER),
    ("torchvision.ops", "nms batched_nms boxes.nms boxes.batched_nms", _SUPPRESSES),
)
BY_NAME = {f"{module}.{name}": found for module, names, found in _NAMED for name in names.split()}
_BY_METHOD = (
    ("to_sparse to_sparse_coo to_sparse_csr to_sparse_csc", _SPARSE),
    ("apply_ map_ random_ resize_ resize_as_ set_ share_memory_", _IN_PLACE),
    ("is_conj is_inference is_neg is_pinned is_same_size is_set_to is_shared is_signed storage_offset", _ASKS_KIND),
    ("register_forward_hook register_forward_pre_hook register_full_backward_hook retain_grad", _HOOKS),
    ("backward", _BACKWARD),
    ("mark_dirty", _MARKS_DIRTY),
    ("load_state_dict", _LOADS),
    ("data_ptr storage untyped_storage tobytes tostring", _MEMORY),
    ("as_subclass", _CHANGES_CLASS),
)
_METHODS = {name: found for names, found in _BY_METHOD for name in names.split()}
"""Methods that Dynamo does not trace, whatever they are called on."""
_OTHERS = "add_module where pad one_hot backward next_fast_len linear_sum_assignment"
NAMES = frozenset({*(name.rpartition(".")[2] for name in BY_NAME), *_METHODS, *CHECKS, *_OTHERS.split()})
"""What such calls are spelled with, behind the last dot."""


def refused_layer(made: str) -> Refused | None:
    """Why Dynamo refuses a call of a layer of a library for images or audio."""
    if made.startswith("torchaudio.transforms.") and made.rpartition(".")[2] in SPECTRA:
        return _SPECTRUM
    return TRANSFORMS if is_random_transform(made) else None


def is_random_transform(made: str) -> bool:
    """True for a class of `torchvision.transforms` that draws random numbers."""
    last = made.rpartition(".")[2]
    return made.startswith("torchvision.transforms.") and (last.startswith("Random") or last in _DRAWING)


_DRAWING = frozenset({"AugMix", "AutoAugment", "ColorJitter", "GaussianBlur", "RandAugment", "TrivialAugmentWide"})
_UNKNOWN = UNKNOWN_TO_TORCH | UNKNOWN_AS_NUMPY | {"pad"}
_CHOOSES = frozenset(f"numpy.{name}" for name in ("argwhere", "flatnonzero", "nonzero", "unique", "where"))


def refused(node: ast.Call, called: str | None, made: str | None) -> Refused | None:
    """Why Dynamo refuses a call of `called`; `made` is the class of the layer that is called, if one is."""
    if called is not None and called in BY_NAME:
        return BY_NAME[called]
    if called is not None and called.startswith("scipy."):
        return _SCIPY
    if called is not None and called.partition(".")[0] in COMPILED:
        return _COMPILED
    if called in _CHOOSES and (called != "numpy.where" or len(node.args) == 1):
        return _SIZED_BY_DATA
    if called is not None and called.startswith("numpy."):
        return _NUMPY if called.startswith("numpy.polynomial.") or called[6:] in _UNKNOWN else None
    if called == "torch.nn.functional.one_hot":
        given = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "num_classes")]
        counted = not given or (isinstance(given[0], ast.UnaryOp) and isinstance(given[0].operand, ast.Constant))
        return _CLASSES if counted else None
    if called is None and isinstance(node.func, ast.Attribute):
        if node.func.attr == "add_module":
            return _ADDS if any(isinstance(each, ast.Call) for each in node.args) else None
        own = is_name(node.func.value, "self")
        if node.func.attr in _METHODS and not (own and node.func.attr != "backward"):
            return _METHODS[node.func.attr]
    layer = refused_layer(made) if made is not None else None
    if layer is not None:
        return layer
    return _CTC if made is not None and torch_api.torch_module_class(made) == "CTCLoss" else None
