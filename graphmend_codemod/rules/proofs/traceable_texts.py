"""What compile paths call in the place of what Dynamo does not trace: functions as they are written into modules."""

from __future__ import annotations

VARIABLE = '''
def _variable_while_tracing(data=None, requires_grad=False, volatile=False):
    """Make a `Variable` in a form that torch.compile traces; what it cannot make so breaks the graph, as before."""
    if type(data) in ({torch}.Tensor, {torch}.nn.Parameter) and not requires_grad:
        return data.detach()
    return {torch}.autograd.Variable(data, requires_grad, volatile)
'''
TQDM = '''
def _tqdm_while_tracing(iterable, *args, **kwargs):
    """What a progress bar iterates over, for torch.compile, which does not trace the bar."""
    return iterable
'''
TRANGE = '''
def _trange_while_tracing(*args, **kwargs):
    """The range of a progress bar, for torch.compile, which does not trace the bar."""
    return range(*args)
'''
SDP_KERNEL = '''
def _sdp_kernel_while_tracing(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """The context manager that replaces `torch.backends.cuda.sdp_kernel`, which torch.compile does not trace."""
    backends = {torch}.nn.attention.SDPBackend
    chosen = [backends.FLASH_ATTENTION] if enable_flash else []
    chosen += [backends.EFFICIENT_ATTENTION] if enable_mem_efficient else []
    chosen += [backends.MATH] if enable_math else []
    chosen += [backends.CUDNN_ATTENTION] if enable_cudnn else []
    return {torch}.nn.attention.sdpa_kernel(chosen)
'''
CUDNN_FLAGS = '''
def _cudnn_flags_while_tracing(*args, **kwargs):
    """Nothing, for torch.compile: without a device of CUDA no operator asks for the flags of cuDNN."""
    import contextlib

    return contextlib.nullcontext()
'''
CATCH_WARNINGS = '''
def _catch_warnings_while_tracing():
    """Nothing, for torch.compile, which leaves out what is set in the block as well."""
    import contextlib

    return contextlib.nullcontext()
'''
SPECTROGRAM = '''
def _spectrogram_while_tracing(layer, x):
    """`layer(x)` without `torch.jit.isinstance`, which torchaudio asks and torch.compile does not trace."""
    from torchaudio import transforms

    inner = layer.spectrogram if type(layer) is transforms.MelSpectrogram else layer
    known = type(inner) is transforms.Spectrogram
    if not known or (type(inner.normalized) is not bool and inner.normalized not in ("window", "frame_length")):
        return layer(x)
    for each in (layer, inner):
        hooks = each._forward_hooks, each._forward_pre_hooks, each._backward_hooks, each._backward_pre_hooks
        if any(hooks) or "forward" in vars(each):
            return layer(x)
    if inner.pad > 0:
        x = {torch}.nn.functional.pad(x, (inner.pad, inner.pad))
    found = {torch}.stft(
        x.reshape(-1, x.shape[-1]),
        inner.n_fft,
        inner.hop_length,
        inner.win_length,
        inner.window,
        inner.center,
        inner.pad_mode,
        inner.normalized == "frame_length",
        inner.onesided,
        return_complex=True,
    )
    found = found.reshape(x.shape[:-1] + found.shape[-2:])
    if inner.normalized is True or inner.normalized == "window":
        found = found / inner.window.pow(2.0).sum().sqrt()
    if inner.power is not None:
        found = found.abs() if inner.power == 1.0 else found.abs().pow(inner.power)
    return found if layer is inner else layer.mel_scale(found)
'''
FAST_LENGTH = '''
def _fast_length_while_tracing(target, real=False):
    """What `scipy.fft.next_fast_len` returns, computed in a form that torch.compile traces."""
    best, odd, position = 1, [1], 0
    while best < target:
        best *= 2
    while position < len(odd):
        number, step = odd[position], 1
        position += 1
        for prime in (3, 5) if real else (3, 5, 7, 11):
            if number * prime < best and number * prime not in odd:
                odd.append(number * prime)
        while number * step < target:
            step *= 2
        best = min(best, number * step)
    return best if target > 0 else target
'''
FFTPACK_LENGTH = (
    FAST_LENGTH.replace("_fast_length", "_fftpack_length")
    .replace("scipy.fft.", "scipy.fftpack.")
    .replace("(target, real=False)", "(target)")
    .replace("(3, 5) if real else (3, 5, 7, 11)", "(3, 5)")
)
CONTRACT = '''
def _contract_while_tracing(equation, *operands):
    """Sums of products by `torch.einsum`, which torch.compile traces; other arrays break the graph, as before."""
    if all(isinstance(each, {torch}.Tensor) for each in operands):
        return {torch}.einsum(equation, *operands).contiguous()
    from opt_einsum import contract

    return contract(equation, *operands)
'''
