"""What operators do with memory: which results share it with an argument, what they write, what draws random numbers.

This is the one place that knows. Operator names stand without `torch.`, `torch.nn.functional.` or `torch.special.` in
front (`linalg.det` keeps its first part), and mean the method of a tensor, too: where the two differ (`unfold`), what
either does is assumed. An operator that is not listed shares memory with all its arguments and writes into them.
`tests/analysis` runs every entry.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from typing import NamedTuple

VIEWS: frozenset[str] = frozenset(
    """view reshape permute transpose t adjoint squeeze unsqueeze expand expand_as view_as flatten unflatten narrow
    select swapaxes swapdims movedim moveaxis diagonal real imag broadcast_to ravel reshape_as chunk split
    split_with_sizes tensor_split hsplit vsplit dsplit unsafe_chunk unsafe_split unbind unfold as_strided sum_to_size
    view_as_real view_as_complex atleast_1d atleast_2d atleast_3d broadcast_tensors meshgrid cartesian_prod einsum
    contiguous detach positive conj conj_physical resolve_conj resolve_neg to type type_as float half bfloat16 double
    long int bool short char byte cfloat cdouble chalf cpu cuda requires_grad_ as_tensor asarray from_numpy to_dense
    dequantize dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout feature_dropout""".split()
)
"""The result may be memory of an argument: views, casts that have nothing to do, dropout in eval mode."""

_VIEWS_OF_ALL = frozenset("broadcast_tensors meshgrid cartesian_prod einsum atleast_1d atleast_2d atleast_3d".split())
"""Of these, memory of any argument; of the others, memory of the first alone."""

RANDOM: frozenset[str] = frozenset(
    """rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal poisson binomial
    dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout feature_dropout rrelu gumbel_softmax
    scaled_dot_product_attention fractional_max_pool2d fractional_max_pool3d manual_seed seed
    pca_lowrank svd_lowrank""".split()
)
"""These may draw random numbers (`scaled_dot_product_attention` does with a `dropout_p`)."""

FRESH: frozenset[str] = frozenset(
    """abs absolute acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d add addbmm addcdiv addcmul addmm addmv addr affine_grid all amax amin
    aminmax angle any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere asin
    asinh atan atan2 atanh avg_pool1d avg_pool2d avg_pool3d baddbmm bartlett_window bessel_j0 bessel_j1 bessel_y0
    bessel_y1 bilinear binary_cross_entropy binary_cross_entropy_with_logits bincount bitwise_and bitwise_left_shift
    bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm bucketize cat cdist ceil celu
    channel_shuffle cholesky cholesky_inverse cholesky_solve clamp clamp_max clamp_min clip clone column_stack
    combinations complex concat concatenate constant_pad_nd conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d copysign corrcoef cos cosh cosine_embedding_loss cosine_similarity count_nonzero cov cross
    cross_entropy ctc_loss cummax cummin cumprod cumsum cumulative_trapezoid deg2rad det diag diag_embed diagflat
    diagonal_scatter diff digamma dist div divide dot dstack elu empty empty_like entr eq erf erfc erfcx erfinv exp exp2
    expit expm1 eye fill fix flip fliplr flipud float_power floor floor_divide fmax fmin fmod fold frac frexp
    frobenius_norm full full_like gammainc gammaincc gammaln gather gaussian_nll_loss gcd ge gelu ger glu greater
    greater_equal grid_sample group_norm gt hamming_window hann_window hardshrink hardsigmoid hardswish hardtanh
    heaviside hinge_embedding_loss histc histogram hstack huber_loss hypot i0 i0e i1 i1e igamma igammac index_add
    index_copy index_fill index_put index_reduce index_select inner interpolate inverse isclose isfinite isin isinf
    isnan isneginf isposinf isreal istft kaiser_window kl_div kron kthvalue l1_loss layer_norm lcm ldexp le leaky_relu
    lerp less less_equal lgamma linear linspace local_response_norm log log10 log1p log2 log_ndtr log_softmax logaddexp
    logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logsigmoid logspace logsumexp
    lp_pool1d lp_pool2d lp_pool3d lt margin_ranking_loss masked_fill masked_scatter masked_select matmul matrix_exp
    matrix_power max max_pool1d max_pool2d max_pool3d max_unpool2d maximum mean median min minimum mish mm mode mse_loss
    msort mul multi_margin_loss multigammaln multilabel_margin_loss multilabel_soft_margin_loss multiply mv mvlgamma
    nan_to_num nanmean nanmedian nanquantile nansum narrow_copy ndtr ndtri ne neg negative new_empty new_full new_ones
    new_tensor new_zeros nextafter nll_loss nonzero norm normalize not_equal nuclear_norm one_hot ones ones_like outer
    pad pairwise_distance pdist pinverse pixel_shuffle pixel_unshuffle poisson_nll_loss polar polygamma pow prelu prod
    psi qr quantile rad2deg reciprocal relu relu6 remainder renorm repeat repeat_interleave rms_norm roll rot90 round
    row_stack rsqrt rsub scalar_tensor scatter scatter_add scatter_reduce searchsorted select_scatter selu sgn sigmoid
    sign signbit silu sin sinc sinh slice_scatter slogdet smooth_l1_loss soft_margin_loss softmax softmin softplus
    softshrink softsign sort sqrt square stack std std_mean stft sub subtract sum svd take take_along_dim tan tanh
    tanhshrink tensor tensordot threshold tile topk trace trapezoid trapz triangular_solve tril tril_indices
    triplet_margin_loss triu triu_indices true_divide trunc unique unique_consecutive unravel_index upsample
    upsample_bilinear upsample_nearest vander var var_mean vdot vstack where xlog1py xlogy zeros zeros_like zeta fft.fft
    fft.fft2 fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn fft.ifftshift
    fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftfreq fft.rfftn
    linalg.cholesky linalg.cholesky_ex linalg.cond linalg.cross linalg.det linalg.eig linalg.eigh linalg.eigvals
    linalg.eigvalsh linalg.inv linalg.inv_ex linalg.lstsq linalg.lu linalg.matmul linalg.matrix_exp linalg.matrix_norm
    linalg.matrix_power linalg.matrix_rank linalg.multi_dot linalg.norm linalg.pinv linalg.qr linalg.slogdet
    linalg.solve linalg.solve_triangular linalg.svd linalg.svdvals linalg.vander
    linalg.vecdot linalg.vector_norm""".split()
)
"""New memory, whatever the arguments are; nothing is written (but for `inplace` and `out`), nothing random drawn."""

PYTHON_RESULTS: frozenset[str] = frozenset(
    """size dim ndimension numel nelement is_floating_point is_complex is_contiguous is_signed is_conj is_neg is_nonzero
    is_same_size stride storage_offset element_size get_device data_ptr item tolist is_tensor equal allclose
    broadcast_shapes result_type promote_types can_cast finfo iinfo is_grad_enabled get_default_dtype""".split()
)
"""Operators that return a Python object, which has no memory of a tensor."""

READS_ELEMENTS: frozenset[str] = frozenset("item tolist equal allclose is_nonzero".split())
"""Those of them that wait for the elements of a tensor."""

_RANDOM_IN_PLACE = RANDOM | frozenset("uniform exponential geometric cauchy log_normal random".split())
_WRITES_STATISTICS = frozenset({"batch_norm", "instance_norm"})
_RENORMALISES = {"embedding": 3, "embedding_bag": 3}
"""Operators that write into an argument where `max_norm` is given, and where that stands."""


def _places(*rows: tuple[int, str]) -> dict[str, int]:
    return {name: place for place, names in rows for name in names.split()}


IN_PLACE_ARGUMENT = _places(
    (1, "hardsigmoid hardswish mish relu relu6 selu silu"),
    (2, "celu elu leaky_relu"),
    (3, "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout hardtanh threshold"),
    (4, "rrelu"),
)
"""Where `inplace` stands among the arguments of a function of `torch.nn.functional`."""

IN_PLACE_OPERATORS = frozenset(
    "iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem".split()
)
"""Functions of `operator` that write their first argument, and between underscores methods that write their tensor."""

FRESH_LAYERS = frozenset(
    """Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LayerNorm RMSNorm GroupNorm
    BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d SyncBatchNorm Embedding
    EmbeddingBag GELU SiLU Tanh Sigmoid Softmax LogSoftmax Softplus ELU CELU SELU AvgPool1d AvgPool2d AvgPool3d
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d MaxPool1d MaxPool2d MaxPool3d Mish Hardswish Hardsigmoid GLU
    ReLU ReLU6 LeakyReLU Hardtanh Threshold Upsample LocalResponseNorm CrossEntropyLoss MSELoss
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d LPPool1d LPPool2d LPPool3d PReLU Softmin Softmax2d LogSigmoid
    Hardshrink Softshrink Tanhshrink Softsign PixelShuffle PixelUnshuffle ChannelShuffle Fold Unfold
    ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d ReflectionPad1d ReflectionPad2d
    ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d CircularPad1d CircularPad2d CircularPad3d
    UpsamplingNearest2d UpsamplingBilinear2d CosineSimilarity PairwiseDistance BCELoss BCEWithLogitsLoss NLLLoss L1Loss
    SmoothL1Loss HuberLoss KLDivLoss PoissonNLLLoss SoftMarginLoss HingeEmbeddingLoss MultiMarginLoss
    MultiLabelMarginLoss MultiLabelSoftMarginLoss MarginRankingLoss CosineEmbeddingLoss TripletMarginLoss
    GaussianNLLLoss CTCLoss""".split()
)
"""Layers of torch.nn that take a tensor and return one with memory of its own, unless they work in place."""

ALIASING_LAYERS = frozenset(
    """Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout Identity Flatten Unflatten""".split()
)
"""Layers of torch.nn whose result may be memory of their argument."""

IN_PLACE_LAYER_ARGUMENT = _places(
    (0, "Hardsigmoid Hardswish Mish ReLU ReLU6 SELU SiLU"),
    (1, "AlphaDropout CELU Dropout Dropout1d Dropout2d Dropout3d ELU FeatureAlphaDropout LeakyReLU"),
    (2, "Hardtanh RReLU Threshold"),
)
"""Where `inplace` stands among the arguments of a layer's constructor."""

CONTAINER_METHODS: frozenset[str] = frozenset(
    "append appendleft extend insert add setdefault get items keys values pop popitem index count remove sort".split()
)
"""Methods of lists, dicts and sets that write no tensor; what they get may stay in the container."""

BUILTINS_WITHOUT_MEMORY = frozenset(
    """abs all any bool callable chr divmod float format hasattr hash id int isinstance issubclass len ord print pow
    range repr round slice str type""".split()
)
"""Builtins whose result has no memory of their arguments, and that write none."""

BUILTINS_SHARING = frozenset(
    "dict enumerate filter frozenset getattr iter list map max min next reversed set sorted sum tuple zip".split()
)
"""Builtins that hand their arguments, or elements of them, on, and that write no tensor."""

WITHOUT_MEMORY = frozenset(
    """shape ndim dtype device training requires_grad is_cuda is_sparse is_nested is_quantized is_meta is_leaf layout
    itemsize nbytes names""".split()
)
"""Attributes of tensors and modules that have no memory of a tensor."""


class Effect(NamedTuple):
    """What a call does with memory: expressions that the result may share it with, that may be written, and that
    something else may keep hold of afterwards. A call that is not `known` may do more than that.
    """

    shares: tuple[ast.expr, ...] = ()
    writes: tuple[ast.expr, ...] = ()
    keeps: tuple[ast.expr, ...] = ()
    random: bool = False
    known: bool = True

    @property
    def pure(self) -> bool:
        """True when nothing but the result comes of the call."""
        return self.known and not self.writes and not self.keeps and not self.random


def operands(call: ast.Call, receiver: ast.expr | None = None) -> tuple[ast.expr, ...]:
    """All that a call gets, with the object whose method it calls in front."""
    return (
        *(() if receiver is None else (receiver,)),
        *call.args,
        *(word.value for word in call.keywords),
    )


def unknown(call: ast.Call, receiver: ast.expr | None = None) -> Effect:
    """What a call may do of which nothing is known."""
    given = operands(call, receiver)
    return Effect(given, given, given, random=True, known=False)


def of_operator(name: str | None, call: ast.Call, receiver: ast.expr | None = None) -> Effect:
    """What a function of torch does, or a method of a tensor, which then is the `receiver`."""
    given = operands(call, receiver)
    if name is None or any(word.arg is None for word in call.keywords):
        return unknown(call, receiver)
    if name.endswith("_") and not name.endswith("__"):
        return Effect(given[:1], given[:1], random=name[:-1] in _RANDOM_IN_PLACE) if given else unknown(call)
    if name in PYTHON_RESULTS:
        return Effect()
    if name not in FRESH and name not in VIEWS and name not in RANDOM:
        if name in _WRITES_STATISTICS:
            return Effect(writes=given[1:])
        if name in _RENORMALISES:
            renormalised = _may_renormalise(call, _RENORMALISES[name])
            return Effect(writes=given[:2] if renormalised else ())
        return unknown(call, receiver)
    written = [word.value for word in call.keywords if word.arg == "out" and not _is_none(word.value)]
    if name in IN_PLACE_ARGUMENT and may_be_in_place(call, IN_PLACE_ARGUMENT[name], receiver):
        written += given[:1]
    viewed = given if name in _VIEWS_OF_ALL else given[:1] if name in VIEWS else ()
    viewed = () if name == "einsum" and _multiplies(call) else viewed
    shared = (*written, *viewed)
    return Effect(shared, tuple(written), random=name in RANDOM)


def may_write(name: str, call: ast.Call, *, method: bool) -> bool:
    """True where a function of torch, or with `method` one of a tensor, may write into something that it is given."""
    receiver = call.func.value if method and isinstance(call.func, ast.Attribute) else None
    return bool(of_operator(name, call, receiver).writes)


def _multiplies(call: ast.Call) -> bool:
    """True for `einsum("ij,jk->ik", x, y)`: with one operand it may be a view, with more it is a product."""
    first = call.args[0] if call.args else None
    spelled = isinstance(first, ast.JoinedStr) or (isinstance(first, ast.Constant) and isinstance(first.value, str))
    given = call.args[1:]
    if len(given) == 1 and isinstance(given[0], (ast.List, ast.Tuple)):
        given = given[0].elts  # `einsum("ij,jk->ik", [x, y])`
    return spelled and len(given) > 1 and not any(isinstance(each, ast.Starred) for each in given)


def of_layer(layer: str | None, made: ast.Call | None, call: ast.Call) -> Effect:
    """What a call of a layer of torch.nn does with its arguments; `made` is the call of its constructor, if known."""
    if layer is None or any(word.arg is None for word in call.keywords):
        return unknown(call)
    given = operands(call)
    position = IN_PLACE_LAYER_ARGUMENT.get(layer)
    if position is not None and (made is None or may_be_in_place(made, position)):
        return Effect(given, given, random=True)
    if layer in FRESH_LAYERS:
        return Effect()
    return Effect(given, random=True) if layer in ALIASING_LAYERS else unknown(call)


def of_builtin(name: str, call: ast.Call) -> Effect:
    """What a builtin function does with memory; calling what it gets, as `map` does, is left out."""
    if name in BUILTINS_WITHOUT_MEMORY:
        return Effect(known=name != "print")
    return Effect(operands(call)) if name in BUILTINS_SHARING else unknown(call)


def may_be_in_place(call: ast.Call, position: int, receiver: ast.expr | None = None) -> bool:
    """True unless `inplace`, which may stand at `position`, is left out or spelled `False`."""
    if receiver is not None:
        position -= 1
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return True
    value = next((each.value for each in call.keywords if each.arg == "inplace"), None)
    if value is None and len(call.args) > position:
        value = call.args[position]
    return value is not None and not (isinstance(value, ast.Constant) and not value.value)


def _may_renormalise(call: ast.Call, position: int) -> bool:
    value = next((each.value for each in call.keywords if each.arg == "max_norm"), None)
    if value is None and len(call.args) > position:
        value = call.args[position]
    return any(isinstance(each, ast.Starred) for each in call.args) or (value is not None and not _is_none(value))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def shared_parts(
    node: ast.expr, effect: Callable[[ast.Call], Effect], sequences: Collection[str] = ()
) -> list[ast.expr]:
    """The parts of an expression that its value may share memory with; names, which have none, are left to the caller.

    `effect` says what calls do. A sum shares with its operands where one of them is a display, `(x,) + rest`, or one of
    the names that hold `sequences`.
    """
    if isinstance(node, ast.Call):
        return list(effect(node).shares)
    if isinstance(node, ast.Attribute):
        return [] if node.attr in WITHOUT_MEMORY else [node.value]
    if isinstance(node, (ast.Subscript, ast.Starred, ast.NamedExpr, ast.Await, ast.YieldFrom)):
        return [node.value]
    if isinstance(node, ast.UnaryOp):
        return [node.operand] if isinstance(node.op, ast.UAdd) else []
    if isinstance(node, ast.BinOp):
        parts = _summands(node)
        return parts if any(is_sequence(each, sequences) for each in parts) else []
    if isinstance(node, (ast.Constant, ast.Compare, ast.JoinedStr, ast.FormattedValue, ast.Name)):
        return []
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    return parts + [each.iter for each in getattr(node, "generators", ())]


def is_sequence(node: ast.expr, names: Collection[str]) -> bool:
    """True for a tuple or list display, and for what is made of one or of a name that holds one."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.BinOp):
        return any(is_sequence(each, names) for each in _summands(node))
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and is_sequence(node.value, names)
    if isinstance(node, ast.IfExp):
        return is_sequence(node.body, names) or is_sequence(node.orelse, names)
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple")
    return called or isinstance(node, (ast.Tuple, ast.List, ast.ListComp))


def _summands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [*_summands(node.left), *_summands(node.right)]
    return [node]
