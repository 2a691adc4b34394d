"""First correction in 1/d to state evolution of symmetric matrices seen by pairs of tokens."""

# Two things are of order 1/d (both derived). (1) The denoiser: a matrix of d rows has a spectrum that
# differs from its law by the mass of `excess_mass`, and diagonal entries that vary twice as much. (2) The
# sensors, which are no Gaussian matrices: exchanged for tokens one by one (Lindeberg), each changes the
# mean log-evidence of its labels by
#     -|Var V|² / 4 (1 / s⁴) - |kappa_3|² / 12 (1 / s⁶),   s² = E + Delta / 2,
# for the covariance V of its indices over the posterior of the matrix differs from sample to sample, with
# the place of its tokens among the eigenvectors, and that posterior is not Gaussian along x x^T. What the
# evidence changes by moves the fixed point as a field on E would (I-MMSE). Measured against: the runs in
# tests/message_passing/test_finite_size.py, at d = 40 and 80 over rank, noise, samples, tokens.

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

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
    """Indices and tensors of T tokens that labels show, relative to a single token."""

    # ``pairs`` and ``triples`` are the squared norms of the tensors that V and the third cumulants are
    # multiples of; 1 for T = 1.

    seen: int  # indices that labels give, k
    pairs: float
    triples: float


@lru_cache(maxsize=16)
def token_shape(tokens: int, shifted: bool = False) -> TokenShape:
    """Of labels that tell all indices; or all but their common shift, as softmax does."""
    # Orthonormal symmetric matrices B: indices Tr B h / sqrt 2 have variance E each
    first, second = index_pairs(tokens)
    basis = np.zeros((first.size, tokens, tokens))
    height = np.where(first == second, 1.0, np.sqrt(0.5))
    basis[np.arange(first.size), first, second] = height
    basis[np.arange(first.size), second, first] = height
    if shifted:
        # what is not seen is along the matrix of ones
        sums = basis.sum(axis=(1, 2))
        basis = np.tensordot(np.linalg.svd(sums[None])[2][1:], basis, 1)
    product = np.einsum("kab,lbc->klac", basis, basis)
    pairs = float(np.sum((product + product.transpose(1, 0, 2, 3)) ** 2)) / 4
    triple = np.einsum("klac,mca->klm", product, basis)
    triples = float(np.sum((triple + triple.transpose(1, 0, 2)) ** 2)) / 4
    return TokenShape(len(basis), pairs, triples)


@dataclass(frozen=True)
class FirstOrder:
    """Terms of first order in 1/d of the log of the error, times d, and the response of the error."""

    error: float  # E of the limit
    denoiser: float  # from the finite matrix
    sensors: float  # from tokens in the place of Gaussian matrices
    response: float  # d log E / d log alpha of the limit, below 0


def first_order(
    signal: SymmetricSignal,
    channel: MatrixChannel,
    sample_ratio: float,
    shape: TokenShape | None = None,
) -> FirstOrder:
    """First order in 1/d of the error of Bayes message passing; of Gaussian matrices without a shape."""
    # A channel of another kind than Gaussian counts as one of the same information.
    state = signal_evolution(signal, channel, sample_ratio)
    E, t = float(state.error), float(state.noise)
    if E == 0:
        return FirstOrder(0.0, 0.0, 0.0, 0.0)
    if t > 1e4 * signal.variance:
        # Nothing is known: a random matrix varies by 1/d more than its law, a given spectrum does not
        own = float(isinstance(signal.spectrum, MarchenkoPasturMeasure))
        return FirstOrder(E, own, 0.0, -1e-4)
    step = 1e-3

    def information(error: float) -> float:
        return float(channel.information(np.array([error]))[0])

    # q^ = 2 alpha I(E), E = mmse(1 / q^), closed by dE / dtau = E_tau / (1 - q^_E E_tau) at tau = q^
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
    """Error of Bayes message passing in d dimensions; None where its first order is large."""
    order = first_order(signal, channel, sample_ratio, shape)
    if order.error == 0:
        return 0.0
    grown = (order.denoiser + order.sensors) / dimension
    if abs(grown) > LARGEST:
        return None
    # The first order counts as samples that are missing, so that it grows as the response does where
    # little noise is left.
    missing = grown / order.response
    if abs(missing) > LARGEST:
        # samples that tell next to nothing: many more of them make no difference
        return order.error * (1 + grown)
    return float(signal_evolution(signal, channel, sample_ratio * np.exp(missing)).error)


LARGEST = 0.35
"""First order of log E up to which it is trusted: the second was measured to be up to its square."""


def _denoiser(law: SpectralLaw) -> float:
    """D (mmse_d(t) - mmse(t)) of the limit's denoiser on matrices of d rows."""
    # Tr f² - 2 Tr M f + 2 (t / d) (sum_ij D_ij + sum f'), f = x - 2 t h and D its divided differences,
    # whose row mean is 1 - t |G|²: t - 4 t² int mu dh - 4 pi² t² int mu² d(mass)
    t, density = law.variance, law.height / (np.pi * law.variance)
    slopes = float(law.weights @ (1 / law.points.slope))  # int mu du
    mass = excess_mass(law, law.u + 1j * law.height)
    # d(mu²) on each panel of the quadrature, by the derivative of the polynomial through its nodes
    nodes, weights = np.polynomial.legendre.leggauss(PANEL_NODES)
    powers = np.polynomial.legendre.legvander(nodes, PANEL_NODES - 1)
    basis = np.polynomial.legendre.legder(np.eye(PANEL_NODES), axis=0)
    slope = np.polynomial.legendre.legval(nodes, basis).T @ np.linalg.inv(powers)
    squares = density.reshape(-1, PANEL_NODES) ** 2 @ slope.T
    total = float(np.sum(weights * mass.reshape(squares.shape) * squares))
    return t - 4 * t * (1 - slopes) - 4 * np.pi**2 * t**2 * total


def _evidence(
    signal: SymmetricSignal, channel: MatrixChannel, t: float, shape: TokenShape
) -> float:
    """Change of the mean log-evidence of a sample, times d."""
    law = SpectralLaw(signal.spectrum, noise=float(np.sqrt(t)))
    h, height = (law.x - law.u) / t, law.height / t
    # row means of divided differences, 1 - t |G|², and kappa_3 of x^T S x from int f Im G³
    leverage = law.weights @ (1 - t * (h**2 + height**2)) ** 2
    third = 2 * law.weights @ ((2 * law.u - law.x) * (3 * h**2 - height**2))
    error = float(signal.mmse(np.array([t]))[0])
    spread = shape.seen / float(channel.information(np.array([error]))[0])  # E + Delta / 2
    uneven = 2 * t**2 * leverage * shape.pairs / spread**2
    skew = t**4 * third**2 * shape.triples / (6 * spread**3)
    return -float(uneven + skew)
