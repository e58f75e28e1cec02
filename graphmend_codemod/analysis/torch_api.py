"""Torch's API as data: what a call returns, what it does to its arguments, what its derivative can be.

Read from torch 2.13's documentation and `native_functions.yaml`. Function names stand without the `torch.` and
`torch.nn.functional.` in front; most exist as a method of the same name.
"""

from __future__ import annotations

from graphmend_codemod.analysis.aliasing import FRESH, RANDOM, VIEWS


def name_set(text: str) -> frozenset[str]:
    """The words of `text`: tables read better without quotes and commas."""
    return frozenset(text.split())


TORCH_PREFIXES = ("torch.nn.functional.", "torch.special.", "torch.")
PARTS = ("linalg.", "fft.")
"""Parts of torch whose functions keep its name in front, `linalg.cross`; autocast on a CPU takes them in float32."""

SAME_ANY_DTYPE = name_set("clone contiguous detach flip tril triu masked_fill nan_to_num positive")
"""Elementwise or layout only: the first argument's dtype and shape, whatever they are."""

SAME_IF_FLOATING = name_set(
    """abs absolute neg negative relu relu6 leaky_relu elu selu celu gelu silu mish softplus hardtanh hardswish
    hardsigmoid ceil floor round trunc frac sign clamp clip clamp_min clamp_max exp exp2 expm1 log log2 log10 log1p sqrt
    rsqrt square sin cos tan sinh cosh tanh asin acos atan erf erfc sigmoid logit softmax log_softmax logsigmoid
    softsign tanhshrink reciprocal cumsum cumprod normalize lgamma digamma"""
)
"""Elementwise (or along a dimension): for a floating first argument its dtype and shape."""

AUTOCAST_TO_FLOAT32 = name_set(
    """pow rdiv rpow rtruediv acos asin cosh cumprod cumsum exp expm1 log log10 log_softmax log1p log2 norm normalize
    prod reciprocal rsqrt sinh softmax softmin softplus sum tan layer_norm group_norm logsigmoid std var"""
)
"""Under autocast these return float32 for a half precision argument (torch.amp's op reference)."""

AUTOCAST: frozenset[str] = AUTOCAST_TO_FLOAT32 - name_set("sum prod pow cumsum cumprod") | name_set(
    """matmul mm bmm mv dot inner outer vdot kron tensordot einsum addmm addmv addr addbmm baddbmm bilinear linear
        prelu conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention
        cdist cosine_similarity pairwise_distance pdist dist norm renorm erfinv cross_entropy nll_loss mse_loss l1_loss
        smooth_l1_loss huber_loss kl_div poisson_nll_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss
        cosine_embedding_loss triplet_margin_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
        soft_margin_loss binary_cross_entropy binary_cross_entropy_with_logits trapezoid trapz addcdiv addcmul atan2
        cross index_put scatter_add grid_sample interpolate upsample cov corrcoef rms_norm local_response_norm
        polar quantile nanquantile trace stft istft cholesky cholesky_inverse cholesky_solve inverse pinverse det logdet
        slogdet qr svd triangular_solve matrix_power matrix_exp frobenius_norm nuclear_norm max_unpool2d avg_pool3d
        adaptive_avg_pool3d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d affine_grid"""
).union(each for each in FRESH if each.startswith(PARTS))
"""What autocast computes in another dtype, or what it asks one dtype of (sums of integers stay as they are)."""

TO_BOOL: frozenset[str] = name_set(
    """isinf isnan isfinite isposinf isneginf logical_not logical_and logical_or logical_xor eq ne gt lt ge le greater
    less greater_equal less_equal not_equal isclose isin isreal signbit"""
)

REDUCTIONS = name_set(
    "any all sum mean prod max min amax amin norm std var median logsumexp argmax argmin count_nonzero"
)
"""Without a dimension: a 0-dim tensor."""

BINARY = name_set(
    """add sub subtract mul multiply div divide true_divide pow maximum minimum fmod remainder floor_divide rsub atan2
    hypot"""
)

LAYOUT: frozenset[str] = name_set(
    """view reshape permute transpose t adjoint squeeze unsqueeze expand expand_as view_as flatten unflatten narrow
    select swapaxes swapdims movedim moveaxis diagonal broadcast_to ravel reshape_as unfold contiguous chunk split
    split_with_sizes tensor_split unbind index_select"""
)
"""Elements of the first argument in another layout, or some of them: its dtype, but for `view` with a dtype."""

CASTS: dict[str, str] = {
    "float": "torch.float32",
    "half": "torch.float16",
    "bfloat16": "torch.bfloat16",
    "double": "torch.float64",
    "long": "torch.int64",
    "int": "torch.int32",
    "bool": "torch.bool",
}

CREATION = name_set(
    """zeros ones empty full arange linspace logspace eye tensor as_tensor from_numpy zeros_like ones_like full_like
    empty_like tril_indices triu_indices new_zeros new_ones new_full new_empty new_tensor scalar_tensor"""
)

RETURNS_TENSOR: frozenset[str] = (
    name_set(
        """matmul mm bmm mv dot inner outer addmm baddbmm einsum tensordot cat concat concatenate stack hstack vstack
        where gather scatter scatter_add index_add index_fill index_put take take_along_dim embedding linear conv1d
        conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d layer_norm group_norm batch_norm instance_norm
        rms_norm pad interpolate avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d
        adaptive_avg_pool2d adaptive_max_pool2d scaled_dot_product_attention cross_entropy mse_loss l1_loss nll_loss
        binary_cross_entropy binary_cross_entropy_with_logits smooth_l1_loss huber_loss kl_div cosine_similarity
        one_hot roll rot90 repeat repeat_interleave tile cumsum cumprod diff diag diag_embed lerp addcmul addcdiv cdist
        bucketize searchsorted histc bincount nonzero masked_select masked_scatter bitwise_and bitwise_or
        bitwise_not bitwise_xor pixel_shuffle pixel_unshuffle unfold fold grid_sample glu argsort trace
        acosh asinh atanh arccos arccosh arcsin arcsinh arctan arctan2 arctanh addbmm addmv addr argwhere
        bitwise_left_shift bitwise_right_shift cholesky_inverse cholesky_solve copysign corrcoef cumulative_trapezoid
        deg2rad det diagflat diagonal_scatter entr erfcx erfinv expit fliplr flipud float_power fmax fmin gammainc
        gammaincc gammaln gcd ger heaviside i0 i0e i1 i1e igamma igammac index_copy index_reduce lcm ldexp log_ndtr
        logaddexp logaddexp2 logcumsumexp logdet matrix_exp multigammaln mvlgamma nanmean nanquantile nansum narrow_copy
        ndtr ndtri nextafter pinverse polygamma psi rad2deg scatter_reduce select_scatter sgn sinc slice_scatter
        trapezoid trapz vdot xlog1py xlogy zeta"""
    )
    | SAME_ANY_DTYPE
    | SAME_IF_FLOATING
    | TO_BOOL
    | REDUCTIONS
    | BINARY
    | VIEWS
    | LAYOUT
    | CREATION
    | RANDOM
) - name_set(
    """chunk split split_with_sizes tensor_split hsplit vsplit dsplit unsafe_chunk unsafe_split unbind broadcast_tensors
    meshgrid"""
)
"""One tensor, whatever the other arguments are (but `max`, `min` and `median` along a dimension)."""

FUNCTIONS_RETURNING_TENSOR: frozenset[str] = RETURNS_TENSOR | name_set(
    """adaptive_avg_pool3d affine_grid angle bilinear block_diag channel_shuffle cholesky column_stack combinations
    complex constant_pad_nd cosine_embedding_loss cov cross dist dstack fill fix frobenius_norm gaussian_nll_loss
    hardshrink hinge_embedding_loss inverse istft kron local_response_norm lp_pool1d lp_pool2d lp_pool3d
    ctc_loss margin_ranking_loss matrix_power max_unpool2d msort multi_margin_loss multilabel_margin_loss
    multilabel_soft_margin_loss nuclear_norm pairwise_distance pdist poisson_nll_loss polar prelu quantile renorm
    row_stack soft_margin_loss softmin softshrink stft threshold triplet_margin_loss upsample upsample_bilinear
    upsample_nearest vander bartlett_window blackman_window hamming_window hann_window kaiser_window
    fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn
    fft.ifftshift fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftfreq
    fft.rfftn linalg.cholesky linalg.cond linalg.cross linalg.det linalg.eigvals linalg.eigvalsh linalg.inv
    linalg.matmul linalg.matrix_exp linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.multi_dot
    linalg.norm linalg.pinv linalg.solve linalg.solve_triangular linalg.svdvals linalg.vander linalg.vecdot
    linalg.vector_norm"""
)
"""The same for functions of torch: objects of other classes have methods of these names, too, such as `inverse`."""

NOT_FIRST_TENSOR = CREATION | name_set(
    """cat concat concatenate stack hstack vstack dstack column_stack row_stack einsum broadcast_tensors rand randn
    randint randperm normal where linalg.multi_dot fft.fftfreq fft.rfftfreq bartlett_window blackman_window
    hamming_window hann_window kaiser_window"""
)
"""Functions whose first argument is no tensor, or need not be one."""

PYTHON_METHODS = {
    "size": "shape",
    "dim": "meta",
    "ndimension": "meta",
    "numel": "shape",
    "nelement": "shape",
    "is_floating_point": "meta",
    "is_complex": "meta",
    "is_contiguous": "meta",
    "stride": "shape",
    "element_size": "meta",
    "get_device": "meta",
    "data_ptr": "other",
    "item": "other",
    "tolist": "other",
}
"""Tensor methods that return a Python value, and the value's origin."""

PYTHON_ATTRIBUTES = {
    "shape": "shape",
    "ndim": "meta",
    "dtype": "meta",
    "device": "meta",
    "requires_grad": "meta",
    "is_cuda": "meta",
    "is_sparse": "meta",
    "is_nested": "meta",
    "layout": "meta",
    "is_meta": "meta",
    "is_leaf": "meta",
}

TENSOR_ATTRIBUTES = name_set("T mT H data grad real imag")

TENSOR_TYPES = name_set(
    """torch.Tensor torch.FloatTensor torch.HalfTensor torch.BFloat16Tensor torch.DoubleTensor torch.LongTensor
    torch.IntTensor torch.BoolTensor torch.ByteTensor torch.nn.Parameter torch.nn.parameter.Parameter torch.tensor
    Tensor"""
)
"""Annotations that name a tensor. `torch.tensor` is a common slip for `torch.Tensor`; a bare `Tensor` is a name that a
star import from a library binds."""

TYPED_TENSORS = {"torch.LongTensor": "torch.int64", "torch.BoolTensor": "torch.bool", "torch.IntTensor": "torch.int32"}
"""Annotations whose dtype people keep to. `FloatTensor` is not one: it is written for half precision as well."""

COMPILING_PREDICATES = name_set(
    """torch.compiler.is_compiling torch.compiler.is_dynamo_compiling torch._dynamo.is_compiling
    torch._dynamo.external_utils.is_compiling torch._utils.is_compiling torch.compiler.is_exporting_or_compiling"""
)

ASKS_NEWER_TORCH = ("_is_torch_{}_{}_compiling", "_is_torch_{}_{}_dynamo_compiling")
"""Names of functions that are true while the compiler, or Dynamo, of this torch release or of a newer one traces."""

PREDICATES_ELSEWHERE = name_set(
    "is_compiling is_dynamo_compiling is_torchdynamo_compiling is_torch_compiling _is_torch_compiling"
) | {name.format(2, minor) for name in ASKS_NEWER_TORCH for minor in range(100)}
"""What packages call their own wrappers of these, which nobody looks into."""

SINCE = {
    "compiler.is_compiling": (2, 1),
    "compiler.assume_constant_result": (2, 1),
    "_assert_async": (2, 1),
    "compiler.is_dynamo_compiling": (2, 1),
    "nn.attention.sdpa_kernel": (2, 3),
    "unravel_index": (2, 2),
    "func.vjp": (2, 3),  # that Dynamo traces it
    "library.custom_op": (2, 4),
    "library.register_fake": (2, 4),
    # There since 2.7, but up to 2.11 Dynamo takes it for true while it compiles (tried with 2.9.1 and 2.11.0), and
    # fails on a module that is handed to a function under `assume_constant_result`, as operators do.
    "compiler.is_exporting": (2, 12),
    "_library.fake_impl.allocate_size": (2, 6),
    "utils._sympy.functions.FloatPow": (2, 13),  # there before; symbols with a fraction were tried with no older one
}
"""The first torch release with what the rules write; anything older than 2.0 has no torch.compile at all."""

INT64_NAMES = frozenset({"torch.long", "torch.int64"})
"""The two names of the dtype of integers."""

TENSOR_MAKERS = frozenset({"torch.tensor", "torch.as_tensor"})
"""Functions that make a tensor of numbers and lists."""

NOT_FOR_EMPTY = frozenset("max min amax amin argmax argmin median".split())
"""Reductions that raise for a tensor without elements."""

CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic", "time.process_time"})
"""Functions that tell a number for the time, and do nothing else."""

VARIABLE = frozenset({"torch.autograd.Variable", "torch.autograd.variable.Variable"})
"""The class that tensors were wrapped in before torch 0.4, by its names."""

SCRIPTS_KNOW_COMPILING = (2, 4)
"""The first torch release of which it is certain that TorchScript compiles a call of `torch.compiler.is_compiling`."""

FALSE_PREDICATES = name_set(
    "torch.jit.is_scripting torch.onnx.is_in_onnx_export torch._C._get_tracing_state torch.jit.is_tracing"
)
"""Calls that Dynamo folds to a false value."""

FINITE_DERIVATIVE = (
    name_set(
        """clone contiguous detach masked_fill nan_to_num positive neg negative relu relu6 leaky_relu hardtanh
        hardsigmoid ceil floor round trunc sign clamp clip clamp_min clamp_max tril triu where add sub maximum minimum
        sum mean any all zeros_like ones_like full_like unsqueeze squeeze
        view reshape permute transpose expand flatten to float half
        bfloat16 double"""
    )
    | TO_BOOL
    | CREATION
)
"""A zero gradient stays zero on its way through, whatever the argument holds.

That leaves out every derivative that multiplies with the argument or the result: zero times nan is nan, and the arm
that eager skipped may well hold nan.
"""

FLOATING_MODULES = name_set(
    """Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LayerNorm RMSNorm GroupNorm
    BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d SyncBatchNorm Embedding GELU SiLU
    Tanh Sigmoid Softmax LogSoftmax Softplus Mish"""
)
"""Modules whose results have a floating (or complex) dtype, so that arithmetic with numbers keeps it."""

LAYERS_WITH_PARAMETERS = name_set(
    """Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LayerNorm RMSNorm GroupNorm
    BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm Embedding EmbeddingBag PReLU LSTM GRU RNN LSTMCell GRUCell RNNCell
    MultiheadAttention Transformer TransformerEncoderLayer TransformerDecoderLayer"""
)
"""Modules of torch.nn that make parameters."""


def torch_function(qualified: str | None) -> str | None:
    """`clamp` for `torch.clamp`, `relu` for `torch.nn.functional.relu`, `linalg.det` for `torch.linalg.det`; None for
    anything else."""
    if qualified is None:
        return None
    for prefix in TORCH_PREFIXES:
        if qualified.startswith(prefix):
            name = qualified[len(prefix) :]
            return name if "." not in name or name.startswith(PARTS) else None
    return None


WEIGHTED = frozenset(
    """Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding EmbeddingBag
    PReLU""".split()
)
"""Layers of torch that have a parameter `weight`, however they are constructed."""


def torch_module_class(qualified: str | None) -> str | None:
    """`LayerNorm` for `torch.nn.LayerNorm` or `torch.nn.modules.normalization.LayerNorm`, else None."""
    if qualified is None or not qualified.startswith("torch.nn.") or qualified.startswith("torch.nn.functional."):
        return None
    name = qualified.rsplit(".", 1)[1]
    return name if name[:1].isupper() else None
