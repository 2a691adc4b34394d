"""First order in 1/d of the Bayes error of symmetric matrices (derivations/sensing)."""

# Two effects have order 1/d. (1) Denoiser: the spectrum of a matrix with d rows differs from the limiting
# density by `excess_mass`, and diagonal noise entries have twice the variance   (sensing 20). (2)
# Sensors:
# samples built from tokens are not Gaussian matrices. Replacing Gaussian samples by token samples, one at
# a time (Lindeberg), changes the mean log-evidence by
#     -|Var V|² / 4 (1 / s⁴) - |kappa_3|² / 12 (1 / s⁶),   s² = E + Delta / 2   (sensing 21).
# The covariance V of the indices under the posterior depends on the tokens of a sample, and the posterior
# is not Gaussian along x x^T. The change of the evidence moves the fixed point like a field on E (I-MMSE;
# sensing 22). Checked in tests/message_passing/test_finite_size.py at d = 40 and 48.

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.hermite import gauss_legendre
from solvable.message_passing.matrix_channels import MatrixChannel
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.operators.sensors import index_pairs
from solvable.spectra._panels import PANEL_NODES
from solvable.spectra.excess_mass import excess_mass
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.product_measure import MarchenkoPasturMeasure


@dataclass(frozen=True)
class TokenShape:
    """Number of indices that the labels of T tokens show, and norms of the indices' cumulant tensors."""

    # ``pairs`` and ``triples``: squared norms of the tensors in V and in the third cumulants; 1 for T = 1

    seen: int  # number k of indices that the labels show
    pairs: float
    triples: float


@lru_cache(maxsize=16)
def token_shape(tokens: int, shifted: bool = False) -> TokenShape:
    """Token shape of labels that show all indices or, for softmax, all except the common shift."""
    # orthonormal symmetric matrices B: the indices Tr B h / sqrt 2 have variance E
    first, second = index_pairs(tokens)
    basis = np.zeros((first.size, tokens, tokens))
    height = np.where(first == second, 1.0, np.sqrt(0.5))
    basis[np.arange(first.size), first, second] = height
    basis[np.arange(first.size), second, first] = height
    if shifted:
        # the common shift is the direction of the matrix of ones
        sums = basis.sum(axis=(1, 2))
        basis = np.tensordot(np.linalg.svd(sums[None])[2][1:], basis, 1)
    product = np.einsum("kab,lbc->klac", basis, basis)
    pairs = float(np.sum((product + product.transpose(1, 0, 2, 3)) ** 2)) / 4
    triple = np.einsum("klac,mca->klm", product, basis)
    triples = float(np.sum((triple + triple.transpose(1, 0, 2)) ** 2)) / 4
    return TokenShape(len(basis), pairs, triples)


@dataclass(frozen=True)
class FirstOrder:
    """Coefficients of the order 1/d in log E from denoiser and sensors, and the error's response."""

    error: float  # error E in the limit
    denoiser: float  # coefficient from the denoiser's finite spectrum
    sensors: float  # coefficient from sensors that use tokens instead of Gaussian matrices
    response: float  # response d log E / d log alpha in the limit, a negative number


def first_order(
    signal: SymmetricSignal,
    channel: MatrixChannel,
    sample_ratio: float,
    shape: TokenShape | None = None,
) -> FirstOrder:
    """First order in 1/d of the Bayes error; shape=None means that sensors are Gaussian matrices."""
    # a non-Gaussian channel is treated as a Gaussian one with the same information
    state = signal_evolution(signal, channel, sample_ratio)
    E, t = float(state.error), float(state.noise)
    if E == 0:
        return FirstOrder(0.0, 0.0, 0.0, 0.0)
    if t > 1e4 * signal.variance:
        # at zero information, a sampled matrix's variance exceeds the variance of its limiting density by
        # 1/d
        own = float(isinstance(signal.spectrum, MarchenkoPasturMeasure))
        return FirstOrder(E, own, 0.0, -1e-4)
    step = 1e-3

    def information(error: float) -> float:
        return float(channel.information(np.array([error]))[0])

    # response of q^ = 2 alpha I(E), E = mmse(1 / q^): dE / dtau = E_tau / (1 - q^_E E_tau) at tau = q^
    # (sensing 22)
    fewer, more = (float(signal.mmse(np.array([t / (1 + sign * step)]))[0]) for sign in (-1, 1))
    by_precision = (more - fewer) / (2 * step / t)
    by_error = 2 * sample_ratio * (information(E * (1 + step)) - information(E * (1 - step)))
    closed = 1 / (1 - by_error / (2 * step * E) * by_precision)
    sensors = 0.0
    if shape is not None:
        low, high = (_evidence(signal, channel, t / (1 + sign * step), shape) for sign in (-1, 1))
        sensors = 4 * sample_ratio * (high - low) / (2 * step / t)
    law = SpectralLaw(signal.spectrum, noise=float(np.sqrt(t)))
    return FirstOrder(
        error=E,
        denoiser=_denoiser(law) * closed / E,
        sensors=sensors * closed / E,
        response=by_precision * closed / (t * E),
    )


def error_at_dimension(
    signal: SymmetricSignal,
    channel: MatrixChannel,
    sample_ratio: float,
    dimension: int,
    shape: TokenShape | None = None,
) -> float | None:
    """Error of Bayes message passing in d dimensions (sensing 22); None if its first order is large."""
    order = first_order(signal, channel, sample_ratio, shape)
    if order.error == 0:
        return 0.0
    grown = (order.denoiser + order.sensors) / dimension
    if abs(grown) > LARGEST:
        return None
    # convert the first order to a number of missing samples, so the correction grows with the response
    missing = grown / order.response
    if abs(missing) > LARGEST:
        # weak response: the error hardly depends on the number of samples
        return order.error * (1 + grown)
    return float(signal_evolution(signal, channel, sample_ratio * np.exp(missing)).error)


LARGEST = 0.35
"""Largest first-order term of log E; in measurements, the second-order term is at most its square."""


def _denoiser(law: SpectralLaw) -> float:
    """Compute d (mmse_d(t) - mmse(t)) for the denoiser of the limit (sensing 20)."""
    # t - 4 t² int mu dh - 4 pi² t² int mass d(mu²)   (sensing 20), from Tr f² - 2 Tr M f +
    # 2 (t / d) (sum_ij D_ij + sum f'), f = x - 2 t h, with divided differences D of row mean 1 - t |G|²
    t, density = law.variance, law.height / (np.pi * law.variance)
    slopes = float(law.weights @ (1 / law.points.slope))  # int mu du
    mass = excess_mass(law, law.u + 1j * law.height)
    # d(mu²) on each quadrature panel, from the polynomial through its nodes
    nodes, weights = gauss_legendre(PANEL_NODES)
    powers = np.polynomial.legendre.legvander(nodes, PANEL_NODES - 1)
    basis = np.polynomial.legendre.legder(np.eye(PANEL_NODES), axis=0)
    slope = np.polynomial.legendre.legval(nodes, basis).T @ np.linalg.inv(powers)
    squares = density.reshape(-1, PANEL_NODES) ** 2 @ slope.T
    total = float(np.sum(weights * mass.reshape(squares.shape) * squares))
    return t - 4 * t * (1 - slopes) - 4 * np.pi**2 * t**2 * total


def _evidence(
    signal: SymmetricSignal, channel: MatrixChannel, t: float, shape: TokenShape
) -> float:
    """Change of the mean log-evidence of a sample, times d (sensing 21)."""
    return -sum(_cumulants(signal, channel, t, shape))


def residual_order(
    signal: SymmetricSignal, channel: MatrixChannel, t: float, shape: TokenShape | None
) -> float:
    """Coefficient of the order 1/d in the log of the training error at a given E (sensing 30)."""
    if shape is None:
        return 0.0
    # By I-MMSE the derivative of the evidence in 1/Delta is half the variance of a training label.
    # The terms of (sensing 21) are proportional to 1/s⁴ and 1/s⁶.
    uneven, skew = _cumulants(signal, channel, t, shape)
    return 4 * uneven + 6 * skew


def _cumulants(
    signal: SymmetricSignal, channel: MatrixChannel, t: float, shape: TokenShape
) -> tuple[float, float]:
    """Terms of the variance V and of the third cumulant in the log-evidence (sensing 21)."""
    law = SpectralLaw(signal.spectrum, noise=float(np.sqrt(t)))
    h, height = (law.x - law.u) / t, law.height / t
    # row means 1 - t |G|² of divided differences, and kappa_3 of x^T S x from int f Im G³   (sensing 21)
    leverage = law.weights @ (1 - t * (h**2 + height**2)) ** 2
    third = 2 * law.weights @ ((2 * law.u - law.x) * (3 * h**2 - height**2))
    error = float(signal.mmse(np.array([t]))[0])
    spread = shape.seen / float(channel.information(np.array([error]))[0])  # E + Delta / 2
    uneven = 2 * t**2 * leverage * shape.pairs / spread**2
    skew = t**4 * third**2 * shape.triples / (6 * spread**3)
    return float(uneven), float(skew)
