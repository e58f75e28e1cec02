"""Which tests and calls are worth a rule's time: a cheap look that may say yes too often and never no too often.

A test counts unless it is plainly decided by Python values: `x is None`, `isinstance`, shapes, dtypes, `self.training`,
values of a configuration, names that only ever hold such values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

from graphmend_codemod.project.summary.spelling import dotted

LOG_METHODS = frozenset(
    """critical debug error exception fatal info log print warn warning warning_advice warning_once warn_once
    info_once error_once debug_once warn_explicit rank_zero_warn rank_zero_info rank_zero_debug
    rank_zero_deprecation success trace info_rank0 warning_rank0 deprecation_warning""".split()
)
READS_VALUES = frozenset({"item", "tolist"})
"""Methods that read a tensor back to Python."""
REDUCES = frozenset({"sum", "mean"})
CASTS = frozenset({"int", "float", "bool"})
EXTREMES = frozenset({"max", "min", "amax", "amin", "sum", "argmax", "argmin", "any", "all"})
"""What is read back by `int(x.max())`."""
NUMPY_NUMBERS = frozenset({"ceil", "floor", "log", "log1p", "log2", "log10", "sqrt", "exp", "prod", "lcm", "gcd"})
"""Functions of numpy that have a twin in `math`."""
CHOOSES_ROWS = frozenset({"nonzero", "argwhere", "unique", "unique_consecutive", "bincount"})
"""Functions and methods whose result has as many rows as the data says; `where` with one argument as well."""
RECURRENT = frozenset({"LSTM", "GRU", "RNN", "CTCLoss"})
"""Layers of torch.nn that Dynamo does not trace."""
SPECTRA = frozenset({"InverseSpectrogram", "LFCC", "MFCC", "MelSpectrogram", "Spectrogram"})
"""Transforms of torchaudio that Dynamo does not trace."""
_NAMED_RECURRENT = ("rnn", "lstm", "gru")
ANSWERS = frozenset({"equal", "allclose", "is_nonzero"})
"""Functions and methods of tensors that read a bool back."""
CHECKS = frozenset({"_check", "_check_index", "_check_not_implemented", "_check_type", "_check_value"})
"""Functions of torch that raise with a message where a condition does not hold."""
REFUSED = frozenset(
    """pack_padded_sequence pad_packed_sequence pack_sequence ctc_loss sparse_coo_tensor sparse_csr_tensor
    to_sparse to_sparse_coo to_sparse_csr to_sparse_csc next_fast_len one_hot manual_seed Generator
    get_rng_state perf_counter monotonic linear_sum_assignment tqdm trange nms batched_nms backward Parameter
    add_module apply_ map_ resize_ set_rng_state manual_seed_all fork_rng initial_seed kl_divergence lstsq
    combinations nested_tensor retain_grad __import__ import_module get_ident uuid4 uuid1 heappush heappop
    heapify insort bisect_left bisect_right get_worker_info can_cast result_type corrcoef share_memory_
    filterwarnings errstate get_num_threads set_num_threads getfullargspec register_forward_hook
    register_forward_pre_hook register_full_backward_hook load_state_dict trunc_normal_ catch_warnings
    simplefilter set_detect_anomaly default_rng as_subclass data_ptr storage untyped_storage tobytes tostring
    lobpcg ExitStack mark_dirty nlargest nsmallest is_bf16_supported is_tf32_supported is_inference_mode_enabled
    is_anomaly_enabled is_anomaly_check_nan_enabled is_warn_always_enabled get_float32_matmul_precision
    get_deterministic_debug_mode get_num_interop_threads is_deterministic_algorithms_warn_only_enabled
    flash_sdp_enabled math_sdp_enabled mem_efficient_sdp_enabled cudnn_sdp_enabled from_dlpack to_dlpack
    memory_allocated is_conj is_inference is_neg is_pinned is_same_size is_set_to is_shared is_signed
    storage_offset random_ resize_as_ set_ memory_reserved max_memory_allocated max_memory_reserved
    memory_stats""".split()
)
"""Functions that Dynamo does not trace, by the last part of their names; `one_hot` without a number of classes, too."""
REFUSED_WITH_OWNER = frozenset(
    {
        "random.random", "random.choice", "random.choices", "random.shuffle", "random.sample", "random.gauss",
        "random.seed", "time.time", "time.sleep", "datetime.now", "gc.collect", "autograd.grad", 
        "jit.fork", "jit.wait", "sparse.mm", "path.exists", "path.isfile",
        "path.isdir", "os.makedirs", "os.listdir", "os.cpu_count", "json.dumps", "json.loads", "json.load", "json.dump",
        "torch.save", "torch.load", "stdout.write", "stdout.flush", "functional.jacobian", "functional.hessian",
        "functional.vjp", "functional.jvp", "functional.hvp", "functional.vhp", "builtins.open",
        "builtins.eval", "builtins.exec", "jit.script", "jit.trace", "os.getcwd", "os.putenv",
        "copy.copy", "torch.cov", "cudnn.flags", "cuda.device_count", "mps.is_available",
        "torch.is_storage", "torch.typename",
        "bisect.bisect", "pickle.dumps", "pickle.loads", "hashlib.md5", "hashlib.sha256",
        "np.pad", "numpy.pad", "np.where", "numpy.where", "functional.spectrogram", "functional.inverse_spectrogram",
        "F.spectrogram", "mkl.is_available", *(f"torch.{name}" for name in CHECKS),
    }
)  # fmt: skip
"""Those of which only the last two parts tell."""
COMPILED = frozenset(
    """Levenshtein PIL SimpleITK annoy av cupy cv2 decord editdistance faiss h5py hnswlib imageio kaldiio lap
    lapsolver librosa lightgbm lmdb matplotlib monotonic_align monotonic_alignment_search nibabel numba onnxruntime
    open3d ot pandas parselmouth pesq polars pyarrow pycocotools pydantic pydub pywt pyworld rasterio rdkit resampy
    sentencepiece shapely skimage sklearn soundfile soxr statsmodels tifffile tokenizers trimesh
    webrtcvad xgboost""".split()
)
"""Libraries with extensions of their own, by the names that they are imported by."""
FOREIGN = COMPILED | {"contextvars", "scipy"}
"""Libraries of which Dynamo traces nothing."""
FOREIGN_NAMES = "foreign"
"""How the outline of a function notes that its file imports one of them."""
GRIDS = frozenset({"mgrid", "ogrid", "r_", "c_"})
"""What NumPy makes arrays with by an index."""
GUESSED = frozenset({"deepcopy", "randint", "randrange", "uniform"})
"""Functions that Dynamo does not trace where their arguments, or what becomes of their results, say so."""
UNKNOWN_TO_TORCH = frozenset(
    """apply_along_axis apply_over_axes argpartition asanyarray asarray_chkfinite asfortranarray bitwise_count
    busday_count busday_offset cumulative_prod cumulative_sum digitize ediff1d einsum_path frombuffer fromfunction
    fromiter frompyfunc histogram_bin_edges interp intersect1d isfortran isin ix_ lexsort mask_indices may_share_memory
    nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd
    nansum nanvar packbits piecewise polyadd polyder polydiv polyfit polyint polymul polysub polyval putmask
    ravel_multi_index roots setdiff1d setxor1d shares_memory sort_complex trapezoid trim_zeros union1d unpackbits
    unravel_index unwrap vecdot""".split()
)
"""Functions of NumPy that `torch._numpy` lacks."""
UNKNOWN_AS_NUMPY = frozenset(
    """astype block compress delete extract frexp insert isscalar iterable load loadtxt
    matrix_transpose partition place poly promote_types require save select spacing""".split()
)
"""More of them, whose names other things have as well, and `isscalar`, which answers with a Python bool."""
REPLACED = frozenset({"Variable", "contract", "sdp_kernel", "_is_tracing", "next_fast_len", "get_default_device"})
"""Functions that Dynamo does not trace, where it traces another one that does the same; `torch.jit.isinstance`, too."""
OLD_SIGNATURES = frozenset({"add_", "addcmul_", "addcdiv_"})
"""Methods that take a number before their tensors in a signature that Dynamo does not know."""
DIVIDES = frozenset({"div", "floor_divide"})
"""Functions of torch that make a tensor of two sizes."""
FILLS = frozenset({"new_full", "full_like"})
"""Functions that Dynamo gives the number which they fill with."""
MARKS = frozenset({"mark_static_address", "mark_dynamic", "maybe_mark_dynamic", "mark_unbacked", "graph_break"})
"""Functions of `torch._dynamo` that Dynamo does not trace."""
MADE_OF_NUMBERS = frozenset({"IntTensor", "LongTensor"})
"""Constructors of integer tensors, whose numbers may be read back."""
COUNT = "t.sum()"
"""How a summary notes that a function may return a 0-dim tensor: `return (mask > 0).sum()`."""
TENSORS = "t"
"""How a summary notes that a function takes tensors, as far as one can tell."""
SCRIPT = "runs around models"
"""How a summary notes a function that `is_of_a_script`."""
_OF_TENSORS = (
    "clone", "contiguous", "detach", "dim", "expand", "expand_as", "gather", "index_select", "logsumexp",
    "masked_fill", "masked_select", "new_zeros", "numel", "permute", "requires_grad", "scatter", "sigmoid", "size",
    "softmax", "type_as", "unbind", "unsqueeze", "view_as",
)  # fmt: skip
"""What nothing but a tensor has, of Python's own types and of NumPy's."""
_BESIDE_DEVICE = ("dtype", "ndim", "shape")
"""What a tensor is asked for besides its `device`, which the arguments of a script have as well."""
TAKE_TENSORS = frozenset(
    """abs amax amin argmax argmin argsort bmm ceil clamp cos cumsum diff exp flip floor gather index_select isnan log
    log1p logsumexp matmul max mean median min mm norm repeat_interleave roll round rsqrt sigmoid sign sin softmax sort
    sqrt square squeeze std stft sum tanh topk transpose tril triu unsqueeze var zeros_like ones_like""".split()
)
"""Functions of torch whose first argument is a tensor; those of `torch.nn.functional` all are."""
_OF_SCRIPTS = (
    ".zero_grad", ".backward", ".eval", ".load_state_dict", ".state_dict", ".parse_args", ".load", ".save", ".dump",
    ".savefig", ".imwrite", ".get_writer", ".makedirs",
)  # fmt: skip
"""What functions call that train or evaluate models, or read and write files: they call compiled code, and are none."""
_TENSOR = re.compile(r"\bTensor\b")
_PYTHON_CALLS = frozenset({"isinstance", "issubclass", "hasattr", "callable", "len", "type", "id", "str", "repr"})
_AS_THEIR_ARGUMENTS = frozenset(
    {"int", "float", "bool", "min", "max", "sum", "any", "all", "abs", "round", "getattr", "tuple"}
)
_PYTHON_PREDICATE = re.compile(
    r"_?is_(?:\w+_)?(?:available|compiling|tracing|scripting|enabled|initialized|proxy|exporting)"
)
_PYTHON_METHODS = frozenset(
    """dim size ndimension numel nelement is_floating_point is_complex is_contiguous get_device element_size
    startswith endswith keys items get_world_size get_rank""".split()
)
_PYTHON_ATTRIBUTES = frozenset(
    """shape dtype device ndim training requires_grad is_cuda is_sparse is_leaf layout itemsize config __name__
    __class__""".split()
)
_NEVER = frozenset({ast.Constant, ast.JoinedStr})
_PYTHON_ANNOTATION_WORDS = frozenset(
    {"bool", "int", "str", "float", "Optional", "Union", "None", "typing", "Literal", "True", "False"}
)


def is_named_recurrent(name: str) -> bool:
    """True for `rnns`, `lstm_layers`, `encoder_GRU`: what a list, or a name that is looked up, may hold."""
    lower = name.lower()
    return any(each in lower for each in _NAMED_RECURRENT)


@cache
def is_python_annotation(text: str) -> bool:
    """True for `bool`, `Optional[int]`, `str | None` and the like: never a tensor."""
    words = text.replace("[", " ").replace("]", " ").replace(",", " ").replace("|", " ").replace(".", " ").split()
    return bool(words) and all(word in _PYTHON_ANNOTATION_WORDS for word in words)


def needs(node: ast.expr, names: list[str]) -> bool:
    """True when the value of `node` may come from a tensor whatever its names hold; otherwise adds the names to ask.

    Names of attributes are added as `self.NAME`.
    """
    todo: list[Any] = [node]
    while todo:
        part = todo.pop()
        kind = type(part)
        if kind in _NEVER:
            continue
        if kind is ast.Call:
            function = part.func
            if type(function) is ast.Name:
                called = function.id
                if called in _AS_THEIR_ARGUMENTS:
                    todo += part.args
                    continue
                python = called in _PYTHON_CALLS
            else:
                called = function.attr if type(function) is ast.Attribute else ""
                if called and type(function.value) is ast.Name and function.value.id == "math":
                    todo += part.args
                    continue
                python = called in _PYTHON_METHODS
            if not python and not (called.startswith(("is_", "_is_")) and _PYTHON_PREDICATE.fullmatch(called)):
                return True
        elif kind is ast.Name:
            names.append(part.id)
        elif kind is ast.Attribute:
            if _attribute(part, names):
                return True
        elif kind is ast.BinOp:
            todo += (part.left, part.right)
        elif kind is ast.Compare:
            todo += _compared(part)
        elif kind is ast.BoolOp or kind is ast.Dict:
            todo += part.values
        elif kind is ast.UnaryOp:
            todo.append(part.operand)
        elif kind is ast.Subscript:
            todo.append(part.value)
        elif kind is ast.IfExp:
            todo += (part.body, part.orelse)
        elif kind is ast.Tuple or kind is ast.List:
            todo += part.elts
        else:
            return True
    return False


def takes_tensors(
    parameters: Mapping[str, str], used: Collection[str], given: Collection[str], kinds: Collection[tuple[str, str]]
) -> bool:
    """True for a function one of whose parameters is annotated as a tensor, used as one, or tested for being one.

    `used` are the dotted names in it, `given` those that functions of torch get, `kinds` the names with the annotation
    or `isinstance` test that says their type.
    """
    for name, annotation in parameters.items():
        if annotation:
            if "rray" not in annotation and _TENSOR.search(annotation):
                return True
        elif name in given or _asked_as_a_tensor(name, used):
            return True
    return any(spelled in (":torch.Tensor", ":Tensor") and name in parameters for name, spelled in kinds)


def _asked_as_a_tensor(name: str, used: Collection[str]) -> bool:
    attributes = (*_OF_TENSORS, *(_BESIDE_DEVICE if f"{name}.device" in used else ()))
    return any(f"{name}.{attribute}" in used for attribute in attributes)


def is_of_a_script(calls: Collection[str]) -> bool:
    """True for a function that trains or evaluates models, or reads or writes files, by the names that it calls."""
    return any(spelled == "open" or spelled.endswith(_OF_SCRIPTS) for spelled in calls)


_NEVER_OF_TENSORS = frozenset({ast.Is, ast.IsNot})


def _compared(node: ast.Compare) -> Iterable[ast.expr]:
    if type(node.ops[0]) in _NEVER_OF_TENSORS:
        return ()
    sides = (node.left, *node.comparators)
    return () if any(map(_is_text, sides)) else sides


def _is_text(node: ast.expr) -> bool:
    if type(node) is ast.Constant:
        return isinstance(node.value, str)
    return isinstance(node, (ast.List, ast.Tuple, ast.Set)) and bool(node.elts) and all(map(_is_text, node.elts))


def _attribute(node: ast.Attribute, names: list[str]) -> bool:
    inner: ast.expr = node
    last = node
    while type(inner) is ast.Attribute:
        if inner.attr in _PYTHON_ATTRIBUTES:
            return False
        last, inner = inner, inner.value
    if type(inner) is not ast.Name:
        return True
    if inner.id == "self":
        names.append(f"self.{last.attr}")
    elif inner.id != "config":
        names.append(inner.id)
    return False


def is_log_call(node: ast.Call) -> bool:
    """True for calls that look like logging, printing or warning."""
    function = node.func
    if isinstance(function, ast.Attribute):
        if function.attr == "log":
            owner = function.value.func if isinstance(function.value, ast.Call) else function.value
            return "log" in dotted(owner).lower()
        return function.attr in LOG_METHODS
    return isinstance(function, ast.Name) and function.id in LOG_METHODS
