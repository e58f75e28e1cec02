"""Calls of torch's operators in every form that we can think of, and what each did to memory."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves

SPACES = ("torch.{}({})", "F.{}({})", "torch.special.{}({})", "method")
CASTS = {"half": "half", "bfloat16": "bfloat16", "double": "double", "int": "int", "short": "short", "char": "int8"} | {
    "byte": "uint8", "cdouble": "cdouble", "chalf": "chalf"
}  # fmt: skip
"""The dtype with which a cast has nothing to do."""
SUBJECTS = ("torch.rand(4, 4)", "torch.rand(())", "torch.arange(3)", "torch.rand(2, 4, 4, 4)", "torch.tensor(True)")
"""What the operator gets first, as `x`."""

_REST = (
    "",
    "y",
    "1",
    "0",
    "0, 1",
    "-1",
    "2, 0",
    "0, 0, 1",
    "x.shape",
    "x.dtype",
    "y, y",
    "x > 0.5",
    "x > 0.5, 1.0",
    "x > 0.5, y",
    "0, i",
    "0, i, y",
    "0, i, 1.0",
    "i",
    "0, i, y, 'sum'",
    "(i,), y[0]",
    "2, 2",
    "x.dim() - 1, (2, 2)",
    "dim=-1",
    "1.0, 0.0",
    "0.5, False",
    "0.5, True",
    "3, 2, 1",
)
SPECIAL = {
    "multinomial": ["torch.multinomial(r(4), 2)"],
    "arange": ["torch.arange(3)"],
    "affine_grid": ["F.affine_grid(r(1, 2, 3), (1, 1, 2, 2))"],
    "linspace": ["torch.linspace(0, 1, 3)"],
    "logspace": ["torch.logspace(0, 1, 3)"],
    "eye": ["torch.eye(3)"],
    "full": ["torch.full((2,), 1.0)"],
    "empty": ["torch.empty(2)"],
    "zeros": ["torch.zeros(2)"],
    "ones": ["torch.ones(2)"],
    "scalar_tensor": ["torch.scalar_tensor(1.0)"],
    "tril_indices": ["torch.tril_indices(3, 3)"],
    "triu_indices": ["torch.triu_indices(3, 3)"],
    "cat": ["torch.cat([x])", "torch.cat([x, y])"],
    "concat": ["torch.concat([x])"],
    "concatenate": ["torch.concatenate([x])"],
    "stack": ["torch.stack([x])"],
    "hstack": ["torch.hstack([x])"],
    "vstack": ["torch.vstack([x])"],
    "dstack": ["torch.dstack([x])"],
    "column_stack": ["torch.column_stack([x])"],
    "block_diag": ["torch.block_diag(x)"],
    "meshgrid": ["torch.meshgrid(x[0], y[0], indexing='ij')"],
    "cartesian_prod": ["torch.cartesian_prod(x[0])"],
    "broadcast_tensors": ["torch.broadcast_tensors(x, y)"],
    "index_reduce": ["x.index_reduce(0, i, y, 'mean')"],
    "get_default_dtype": ["torch.get_default_dtype()"],
    "is_grad_enabled": ["torch.is_grad_enabled()"],
    "combinations": ["torch.combinations(x[0])"],
    "einsum": [
        "torch.einsum('ij->ji', x)",
        "torch.einsum('ij,jk->ik', x, y)",
        "torch.einsum('ij,jk->ik', [x, y])",
        "torch.einsum(f'ij,jk->ik', x, y)",
        "torch.einsum(f'ij->ji', x)",
        "torch.einsum('ij->ji', [x])",
        "torch.einsum('ii->i', x)",
    ],
    "where": ["torch.where(x > 0, x, y)", "x.where(x > -1, y)", "torch.where(x > -1, x, 0.0)", "torch.where(x > 0.5)"],
    "addbmm": ["torch.addbmm(x, b, b)"],
    "baddbmm": ["torch.baddbmm(b, b, b)"],
    "addmv": ["torch.addmv(x[0], x, x[0])"],
    "mv": ["x.mv(x[0])"],
    "dot": ["x[0].dot(y[0])"],
    "vdot": ["x[0].vdot(y[0])"],
    "addr": ["x.addr(x[0], y[0])"],
    "bmm": ["b.bmm(b)"],
    "bilinear": ["F.bilinear(x, x, r(2, 4, 4))"],
    "bincount": ["torch.arange(3).bincount()"],
    "bucketize": ["torch.bucketize(x, torch.arange(3.0))"],
    "searchsorted": ["torch.searchsorted(torch.arange(3.0), x)"],
    "complex": ["torch.complex(x, y)"],
    "polar": ["torch.polar(x, y)"],
    "constant_pad_nd": ["torch.constant_pad_nd(x, (0, 0), 0.0)"],
    "pad": ["F.pad(x, (0, 0))", "F.pad(x, (1, 1))", "F.pad(c, (0, 0, 0, 0), mode='reflect')"],
    "conv1d": ["F.conv1d(b, r(2, 4, 1))"],
    "conv2d": ["F.conv2d(c, r(2, 4, 1, 1))"],
    "conv3d": ["F.conv3d(d, r(2, 2, 1, 1, 1))"],
    "conv_transpose1d": ["F.conv_transpose1d(b, r(4, 2, 1))"],
    "conv_transpose2d": ["F.conv_transpose2d(c, r(4, 2, 1, 1))"],
    "conv_transpose3d": ["F.conv_transpose3d(d, r(2, 2, 1, 1, 1))"],
    "avg_pool3d": ["F.avg_pool3d(d, 1)"],
    "max_pool3d": ["F.max_pool3d(d, 1)"],
    "max_pool2d": ["F.max_pool2d(c, 1)"],
    "max_pool1d": ["F.max_pool1d(b, 1)"],
    "adaptive_avg_pool3d": ["F.adaptive_avg_pool3d(d, (2, 2, 2))"],
    "adaptive_max_pool3d": ["F.adaptive_max_pool3d(d, (2, 2, 2))"],
    "fractional_max_pool3d": ["F.fractional_max_pool3d(d, 2, output_size=(1, 1, 1))"],
    "cross": ["torch.cross(r(2, 3), r(2, 3), dim=1)"],
    "cross_entropy": ["F.cross_entropy(x, i)"],
    "ctc_loss": ["F.ctc_loss(x.log_softmax(-1).unsqueeze(1), torch.tensor([[1, 2]]), (4,), (2,))"],
    "nll_loss": ["F.nll_loss(x, i)"],
    "multi_margin_loss": ["F.multi_margin_loss(x, i)"],
    "multilabel_margin_loss": ["F.multilabel_margin_loss(x, torch.zeros(4, 4, dtype=torch.long))"],
    "cosine_embedding_loss": ["F.cosine_embedding_loss(x, y, torch.ones(4))"],
    "margin_ranking_loss": ["F.margin_ranking_loss(x, y, torch.ones(4, 4))"],
    "gaussian_nll_loss": ["F.gaussian_nll_loss(x, y, torch.ones(4, 4))"],
    "triplet_margin_loss": ["F.triplet_margin_loss(x, y, y)"],
    "diagonal_scatter": ["x.diagonal_scatter(x[0])"],
    "select_scatter": ["x.select_scatter(x[0], 0, 0)"],
    "slice_scatter": ["x.slice_scatter(y)"],
    "fold": ["F.fold(r(1, 4, 4), (4, 4), (2, 2), stride=2)"],
    "grid_sample": ["F.grid_sample(c, r(2, 4, 4, 2), align_corners=False)"],
    "group_norm": ["F.group_norm(c, 2)"],
    "layer_norm": ["F.layer_norm(x, (4,))"],
    "rms_norm": ["F.rms_norm(x, (4,))"],
    "interpolate": ["F.interpolate(c, (4, 4))", "F.interpolate(c, (4, 4), mode='bilinear')"],
    "upsample": ["F.upsample(c, (4, 4))"],
    "pixel_shuffle": ["F.pixel_shuffle(c, 1)", "F.pixel_shuffle(c, 2)"],
    "pixel_unshuffle": ["F.pixel_unshuffle(c, 1)", "F.pixel_unshuffle(c, 2)"],
    "kthvalue": ["x.kthvalue(1)", "r(()).kthvalue(1)"],
    "polygamma": ["torch.polygamma(1, x)"],
    "quantile": ["x.quantile(0.5)"],
    "nanquantile": ["x.nanquantile(0.5)"],
    "scatter_add": ["x.scatter_add(0, torch.zeros(4, 4, dtype=torch.long), y)"],
    "gather": ["x.gather(0, torch.zeros(4, 4, dtype=torch.long))"],
    "take_along_dim": ["x.take_along_dim(torch.zeros(4, 4, dtype=torch.long), 0)"],
    "index_put": ["x.index_put((i,), y[0])"],
    "prelu": ["F.prelu(x, torch.ones(1))"],
    "unravel_index": ["torch.unravel_index(i, (4, 4))"],
    "vander": ["torch.vander(x[0])"],
    "tensordot": ["torch.tensordot(x, y, 1)"],
    "as_strided": ["x.as_strided((2, 2), (1, 1))"],
    "view_as_complex": ["torch.view_as_complex(x.view(8, 2))"],
    "view_as_real": ["torch.view_as_real(k)"],
    "imag": ["torch.imag(k)"],
    "cfloat": ["k.cfloat()"],
    "conj": ["k.conj()"],
    "resolve_conj": ["k.resolve_conj()"],
    "unflatten": ["x.unflatten(0, (2, 2))"],
    "from_numpy": ["torch.from_numpy(n)"],
    "asarray": ["torch.asarray(x)"],
    "as_tensor": ["torch.as_tensor(x)"],
    "sum_to_size": ["x.sum_to_size(4, 4)"],
    "dequantize": ["x.dequantize()"],
    "conj_physical": ["x.conj_physical()"],
    "dropout2d": ["F.dropout2d(c, training=False)"],
    "dropout1d": ["F.dropout1d(b, training=False)"],
    "dropout3d": ["F.dropout3d(d, training=False)"],
    "rand": ["torch.rand(2)"],
    "randn": ["torch.randn(2)"],
    "randint": ["torch.randint(3, (2,))"],
    "randperm": ["torch.randperm(4)"],
    "normal": ["torch.normal(x, y)"],
    "binomial": ["torch.binomial(torch.ones(2), r(2))"],
    "poisson": ["torch.poisson(x)"],
    "scaled_dot_product_attention": ["F.scaled_dot_product_attention(b, b, b, dropout_p=0.5)"],
    "fractional_max_pool2d": ["F.fractional_max_pool2d(c, 2, output_size=(2, 2))"],
    "pca_lowrank": ["torch.pca_lowrank(x, q=2)"],
    "svd_lowrank": ["torch.svd_lowrank(x, q=2)"],
    "seed": ["torch.seed()"],
    "manual_seed": ["torch.manual_seed(3)"],
    "new_full": ["x.new_full((2,), 1.0)"],
    "embedding": ["F.embedding(i, y)"],
    "result_type": ["torch.result_type(x, y)"],
    "promote_types": ["torch.promote_types(torch.float, torch.int)"],
    "can_cast": ["torch.can_cast(torch.float, torch.int)"],
    "broadcast_shapes": ["torch.broadcast_shapes((2,), (2,))"],
    "finfo": ["torch.finfo(torch.float)"],
    "iinfo": ["torch.iinfo(torch.int)"],
    "is_nonzero": ["r(()).is_nonzero()"],
    "bartlett_window": ["torch.bartlett_window(4)"],
    "blackman_window": ["torch.blackman_window(4)"],
    "hamming_window": ["torch.hamming_window(4)"],
    "hann_window": ["torch.hann_window(4)", "torch.hann_window(1)"],
    "kaiser_window": ["torch.kaiser_window(4)"],
    "cholesky": ["torch.cholesky(torch.eye(4))", "torch.eye(4).cholesky()"],
    "cholesky_solve": ["torch.cholesky_solve(x, torch.eye(4))"],
    "stft": ["torch.stft(x, 4, window=y[0], return_complex=True)", "x[0].stft(4, center=False, return_complex=True)"],
    "istft": ["torch.istft(torch.stft(r(64), 8, return_complex=True), 8)"],
    "max_unpool2d": ["F.max_unpool2d(*F.max_pool2d(c, 2, return_indices=True), 2)"],
    "row_stack": ["torch.row_stack([x])"],
    "nuclear_norm": ["torch.nuclear_norm(x)"],
    "fft.fftfreq": ["torch.fft.fftfreq(4)"],
    "fft.rfftfreq": ["torch.fft.rfftfreq(4)"],
    "fft.hfftn": ["torch.fft.hfftn(x)"],
    "linalg.cholesky": ["torch.linalg.cholesky(torch.eye(4))"],
    "linalg.cross": ["torch.linalg.cross(r(2, 3), r(2, 3))"],
    "linalg.multi_dot": ["torch.linalg.multi_dot([x, y])", "torch.linalg.multi_dot([x, y, x])"],
    "linalg.solve_triangular": ["torch.linalg.solve_triangular(torch.eye(4), x, upper=True)"],
    "linalg.vander": ["torch.linalg.vander(x[0])"],
}
"""Calls of operators that take something that the general forms lack; others come on top of these."""


class Seen(NamedTuple):
    """One call that worked: names that its result shares memory with, names that it wrote, whether it drew numbers."""

    text: str
    result: Any
    subject: torch.Tensor
    shares: frozenset[str]
    writes: frozenset[str]
    random: bool


def calls(name: str) -> Iterator[Seen]:
    """What every call of an operator that works did."""
    spaces = [space for space in SPACES[:3] if _has(eval(space.split(".{}")[0]), name)]
    spaces += [SPACES[3]] if hasattr(torch.Tensor, name) else []
    if name in CASTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # complex32 is experimental
            yield from list(seen(f"x.{name}()", f"torch.ones(2, dtype=torch.{CASTS[name]})"))
    for text in SPECIAL.get(name, ()):
        yield from seen(text, SUBJECTS[0])
    for space in spaces if name not in {"seed", "manual_seed"} else ():
        for subject in SUBJECTS:
            # A method and the function of its name take the same.
            for rest in _REST[:4] if space == SPACES[0] and len(spaces) > 1 else _REST:
                given = f"x.{name}({rest})" if space == "method" else space.format(name, f"x, {rest}")
                yield from seen(given, subject)


def _has(space: object, name: str) -> bool:
    with contextlib.suppress(AttributeError):
        attrgetter(name)(space)
        return True
    return False


def seen(text: str, subject: str) -> Iterator[Seen]:
    """What one call did, if it works."""
    names = _names(subject)
    tensors = {name: each for name, each in names.items() if isinstance(each, torch.Tensor)}
    versions = {name: each._version for name, each in tensors.items()}
    state = torch.get_rng_state()
    with warnings.catch_warnings(), contextlib.suppress(*_REFUSALS):
        warnings.simplefilter("ignore")
        result = eval(text, names)
        memory = {_memory(each) for each in tree_leaves(result) if isinstance(each, torch.Tensor)}
        shares = frozenset(name for name, each in tensors.items() if _memory(each) in memory)
        writes = frozenset(name for name, each in tensors.items() if versions[name] != each._version)
        yield Seen(text, result, names["x"], shares, writes, not torch.equal(state, torch.get_rng_state()))


_REFUSALS = (
    TypeError,
    RuntimeError,
    ValueError,
    IndexError,
    NotImplementedError,
    AttributeError,
    AssertionError,
    ArithmeticError,
)


def _half(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, 0.5, dtype=dtype)


_FIXED: dict[str, Any] = {"torch": torch, "F": F, "r": _half}


_NAMES: dict[str, tuple[dict[str, Any], list[Any]]] = {}
"""What texts are evaluated with, by subject, with the state of its tensors: making it takes longer than calls."""


def _names(subject: str) -> dict[str, Any]:
    """The same as ever, whatever other calls and tests wrote: then it is made anew, with the same numbers."""
    known = _NAMES.get(subject)
    if known is None or _state(known[0]) != known[1]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            names = _made(subject)
        known = _NAMES[subject] = names, _state(names)
    return known[0]


def _state(names: dict[str, Any]) -> list[Any]:
    tensors = [each for each in names.values() if isinstance(each, torch.Tensor)]
    return [
        (each._version, each.shape, each.dtype, each.requires_grad, each.untyped_storage().data_ptr())
        for each in tensors
    ]


def _made(subject: str) -> dict[str, Any]:
    x = eval(subject, {"torch": torch})
    square = torch.rand(4, 4)
    return _FIXED | {
        "x": x,
        "y": torch.rand_like(x) if x.is_floating_point() else x.clone(),
        "i": torch.zeros(4, dtype=torch.long) if x.dim() > 1 else torch.zeros(x.shape, dtype=torch.long),
        "k": torch.full((2, 3), 1j),
        "z": torch.rand(4, 4),
        "b": torch.rand(2, 4, 4),
        "c": torch.rand(2, 4, 4, 4),
        "d": torch.rand(2, 2, 2, 2, 2),
        "n": square.numpy(),
        "kept": square,  # what `n` is of
    }


def _memory(tensor: torch.Tensor) -> int:
    if tensor.layout is not torch.strided or not tensor.numel():
        return -id(tensor)
    return tensor.untyped_storage().data_ptr()
