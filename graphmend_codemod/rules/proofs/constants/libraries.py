"""Functions of libraries that do nothing but compute something of their arguments, and what kind of thing that is.

Whatever is not listed may draw random numbers, read files or settings, or write.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence


class Kind(enum.Enum):
    """What the value of an expression is.

    `NUMBER`: a number or word of Python, None, a dtype, or a tuple or list of them. `ARRAY`: an array of NumPy.
    `ARRAYS`: a tuple of arrays of one shape and dtype. `EITHER`: an array, or a number of NumPy, which is
    neither a number of Python nor an array. `LISTED`: a list, or a tuple with arrays in it. `TENSOR`: a new tensor
    without a gradient. `TENSORS`: a tuple of them. `OTHER`: an object of a library, or anything else that numbers
    alone decide.
    """

    NUMBER = enum.auto()
    ARRAY = enum.auto()
    ARRAYS = enum.auto()
    EITHER = enum.auto()
    LISTED = enum.auto()
    TENSOR = enum.auto()
    TENSORS = enum.auto()
    OTHER = enum.auto()


def _under(module: str, names: str) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for name in names.split())


_WINDOWS = (
    "barthann bartlett blackman blackmanharris bohman boxcar chebwin cosine exponential flattop gaussian hamming "
)
_WINDOWS += "hann kaiser nuttall parzen triang tukey"
MAKERS = (
    _under(
        "numpy",
        "arange linspace logspace geomspace zeros ones full eye identity tri hanning hamming blackman bartlett kaiser "
        "fft.fftfreq fft.rfftfreq",
    )
    | _under("scipy.signal", f"get_window firwin firwin2 remez savgol_coeffs {_WINDOWS}")
    | _under("scipy.signal.windows", f"get_window taylor general_cosine general_gaussian general_hamming {_WINDOWS}")
    | _under("scipy.linalg", "dft hadamard hilbert invhilbert pascal")
    | _under("librosa.filters", "mel chroma")
    | _under("librosa", "fft_frequencies mel_frequencies cqt_frequencies tempo_frequencies fourier_tempo_frequencies")
    | _under("librosa.core", "fft_frequencies mel_frequencies cqt_frequencies")
)
"""Functions of numbers that make a new array."""
_CONVERTERS = _under("numpy", "atleast_1d atleast_2d atleast_3d tile repeat outer vander diag") | _under(
    "scipy.linalg", "toeplitz circulant hankel block_diag companion"
)
"""Functions of numbers, lists or arrays that give an array."""
_AS_ARRAYS = _under("numpy", "array asarray asanyarray ascontiguousarray asfortranarray")
"""Functions that give an array without dimensions for a number, of which NumPy then makes numbers."""
_ROOTS = "roots_legendre roots_hermite roots_laguerre roots_chebyt roots_chebyu p_roots"
_SEVERAL = frozenset(
    f"numpy.polynomial.{name}"
    for name in "legendre.leggauss chebyshev.chebgauss hermite.hermgauss hermite_e.hermegauss laguerre.laggauss".split()
) | _under("scipy.special", _ROOTS)
_ELEMENTWISE = (
    _under(
        "numpy",
        """abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or cbrt ceil clip
        conj conjugate convolve copy cos cosh cumprod cumsum deg2rad degrees diff divide ediff1d equal exp exp2
        expand_dims expm1 fabs flip fliplr flipud floor floor_divide fmax fmin fmod greater greater_equal hypot imag
        kron left_shift less less_equal linalg.inv linalg.pinv log log10 log1p log2 logaddexp logical_and logical_not
        logical_or maximum minimum mod moveaxis multiply nan_to_num negative not_equal positive power rad2deg radians
        ravel real reciprocal remainder reshape right_shift rint roll rot90 round sign sin sinc sinh sort sqrt square
        subtract swapaxes tan tanh transpose tril triu true_divide trunc unwrap where union1d intersect1d setdiff1d
        setxor1d unique fft.fft fft.ifft fft.rfft fft.irfft fft.fftshift fft.ifftshift""",
    )
    | _under("scipy.special", "binom comb digamma erf erfc erfinv expit factorial gamma gammaln j0 j1 jv loggamma ndtr")
    | _under("scipy.special", "ndtri sph_harm sinc zeta logit betaln beta iv ive kv")
    | _under("scipy.fft", "fft ifft rfft irfft fftshift ifftshift dct idct")
    | _under("librosa", "hz_to_mel mel_to_hz midi_to_hz hz_to_midi note_to_hz hz_to_octs db_to_amplitude db_to_power")
    | _under("librosa.util", "pad_center normalize fix_length")
)
"""Functions whose result is an array where one of their arguments is."""
_OF_FIRST = _under("numpy", "interp digitize isin pad")
"""Functions whose result is an array where their first argument is."""
_JOINS = _under("numpy", "concatenate stack hstack vstack dstack column_stack block")
_REDUCTIONS = _under(
    "numpy",
    "sum prod mean std var min max amin amax argmin argmax median trace trapezoid trapz nansum nanmean nanmin nanmax "
    "count_nonzero ndim size linalg.norm linalg.det",
)
NUMBERS = _under("pywt", "dwt_max_level swt_max_level dwt_coeff_len") | _under(
    "math", "acos asin atan atan2 ceil comb cos cosh degrees exp factorial fabs floor fmod gcd hypot isqrt lcm log"
)
NUMBERS |= _under("math", "log1p log2 log10 perm pow prod radians sin sinh sqrt tan tanh trunc gamma lgamma erf")
NUMBERS |= _under("builtins", "abs bool float int isinstance len max min pow range round str sum tuple") | {
    "torch.device"
}
"""Functions that give a number of Python, or several."""
CASTS = frozenset({"builtins.bool", "builtins.float", "builtins.int", "builtins.isinstance", "builtins.len"})
_OBJECTS = _under("pywt", "Wavelet ContinuousWavelet DiscreteContinuousWavelet")
_TENSORS = _under(
    "torch",
    "as_tensor tensor from_numpy arange linspace zeros ones full eye stack cat flip hann_window hamming_window "
    "blackman_window bartlett_window kaiser_window",
)
PLACED = _TENSORS - _under("torch", "from_numpy stack cat flip")
"""Those that make a tensor on the default device, which is not known to what runs while torch.compile traces."""
TENSOR_METHODS = frozenset(
    "abs clone contiguous double expand flip float int long permute repeat reshape squeeze t to transpose unsqueeze "
    "view".split()
)
METHODS = frozenset("astype clip conj copy cumprod cumsum flatten ravel repeat reshape round squeeze transpose".split())
"""Methods of arrays that give arrays."""
ATTRIBUTES = {"T": Kind.ARRAY, "real": Kind.ARRAY, "imag": Kind.ARRAY} | dict.fromkeys(
    ("dtype", "ndim", "shape", "size"), Kind.NUMBER
)
"""Attributes of arrays."""
_CONSTANTS = _under("numpy", "pi e inf nan newaxis bool_ complex64 complex128 float16 float32 float64 uint8 int8 int16")
_DTYPES = "bool uint8 int8 int16 int32 int64 int long float16 float32 float64 float double complex64 complex128"
CONSTANTS = _CONSTANTS | _under("torch", _DTYPES) | _under("numpy", "int32 int64") | _under("math", "pi e inf nan tau")


def kind_of(called: str, given: Sequence[Kind], named: Sequence[Kind], *, listed: bool) -> Kind | None:
    """What a call gives whose arguments, by position and by name, are of these kinds; None for an unknown function.

    `listed` says that the first argument is written as a list or tuple.
    """
    every = {*given, *named}
    if called in CASTS or (called in NUMBERS and every <= {Kind.NUMBER}):
        return Kind.NUMBER
    if called in _OBJECTS or called in _TENSORS:
        return Kind.TENSOR if called in _TENSORS else Kind.OTHER
    if called in MAKERS or called in _CONVERTERS:
        return Kind.ARRAY
    if called in _SEVERAL:
        return Kind.ARRAYS
    if called in _JOINS or called in _AS_ARRAYS:
        return Kind.ARRAY if listed or Kind.LISTED in every or Kind.ARRAY in given[:1] else Kind.EITHER
    if called in _ELEMENTWISE:
        one = called == "numpy.where" and len(given) < 3
        return None if one else Kind.ARRAY if Kind.ARRAY in every else Kind.EITHER
    if called in _OF_FIRST:
        return Kind.ARRAY if Kind.ARRAY in given[:1] else Kind.EITHER
    return Kind.EITHER if called in _REDUCTIONS else None
