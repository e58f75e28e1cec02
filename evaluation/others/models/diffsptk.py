"""Signal processing of speech."""

import torch

SOURCE = "pip:diffsptk==4.0.1"
IMPORTS = "diffsptk"
STUBS = "torchaudio librosa vector_quantize_pytorch torchcrepe penn"


def stft():
    from diffsptk.modules.stft import ShortTimeFourierTransform

    return ShortTimeFourierTransform(40, 20, 64), (torch.randn(2, 400),)


def mel_cepstrum():
    from diffsptk.modules.mgcep import MelGeneralizedCepstralAnalysis

    return MelGeneralizedCepstralAnalysis(fft_length=64, cep_order=6, alpha=0.1, n_iter=2), (torch.rand(2, 33) + 0.1,)


def general_cepstrum():
    from diffsptk.modules.mgcep import MelGeneralizedCepstralAnalysis

    return MelGeneralizedCepstralAnalysis(fft_length=64, cep_order=6, alpha=0.1, gamma=-0.5, n_iter=2), (
        torch.rand(2, 33) + 0.1,
    )


def synthesis():
    from diffsptk.modules.mglsadf import PseudoMGLSADigitalFilter

    return PseudoMGLSADigitalFilter(6, 20, alpha=0.1), (torch.randn(2, 200), torch.randn(2, 10, 7) * 0.1)


def stability():
    from diffsptk.modules.mlsacheck import MLSADigitalFilterStabilityCheck

    return MLSADigitalFilterStabilityCheck(6, alpha=0.1), (torch.randn(2, 10, 7) * 0.1,)


def factorization():
    from diffsptk.modules.nmf import NonnegativeMatrixFactorization

    return NonnegativeMatrixFactorization(8, 5, 2, n_iter=3), (torch.rand(8, 6),), {"train": False}


def allzero_filter():
    from diffsptk.modules.zerodf import AllZeroDigitalFilter

    return AllZeroDigitalFilter(4, 20), (torch.randn(2, 200), torch.randn(2, 10, 5) * 0.1)


def polynomial_roots():
    from diffsptk.modules.root_pol import PolynomialToRoots

    return PolynomialToRoots(3), (torch.randn(2, 4),), {"train": False}


def spectrum():
    from diffsptk.modules.spec import Spectrum

    return Spectrum(64), (torch.randn(2, 5), torch.randn(2, 5))


def parcor():
    from diffsptk.modules.par2lpc import ParcorCoefficientsToLinearPredictiveCoefficients

    return ParcorCoefficientsToLinearPredictiveCoefficients(5), (torch.rand(2, 6) * 0.5,)


def zero_crossings():
    from diffsptk.modules.zcross import ZeroCrossingAnalysis

    return ZeroCrossingAnalysis(20), (torch.randn(2, 200),)


def signal_to_noise():
    from diffsptk.modules.snr import SignalToNoiseRatio

    return SignalToNoiseRatio(20), (torch.randn(2, 200), torch.randn(2, 200))


def generation():
    from diffsptk.modules.mlpg import MaximumLikelihoodParameterGeneration

    return MaximumLikelihoodParameterGeneration(10, [[-0.5, 0, 0.5], [1, -2, 1]]), (torch.randn(2, 10, 9),)
