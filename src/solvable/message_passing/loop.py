r"""The loop of approximate message passing: channel outputs, prior denoiser, and sensors between them.

.. math::
    \omega=\mathcal A(h)-g_{\rm old}V,\quad g=g_{\rm out}(y,\omega,V),\quad
    A=-\langle\partial_\omega g\rangle,\quad b=hA+\mathcal A^*(g),\quad (h,V)=\eta(b,A) .

The signal is p vectors or a matrix: what its precision is, and how it spreads over the samples, is
known to the sensors alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.message_passing.outputs import Messages

Denoiser = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Estimate of the signal and its variance (p, p) from b, shaped as it, and the precision A (p, p)."""


class Sensors(Protocol):
    """What takes a signal to the samples and back."""

    @property
    def size(self) -> float:
        """Dimension d, by which squared norms of signals are averaged."""

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """Samples (n, K) of a signal."""

    def adjoint(self, messages: np.ndarray) -> np.ndarray:
        """The transpose, from (n, K) to a signal, in the units in which b is measured."""

    def cavity(self, variance: np.ndarray) -> np.ndarray:
        """Covariance (K, K) of a sample's K values for a signal of this variance (p, p)."""

    def precision(self, slope: np.ndarray) -> np.ndarray:
        """Precision A (p, p) of the signal from the sum of the slopes (K, K) of messages."""

    def weigh(self, signal: np.ndarray, precision: np.ndarray) -> np.ndarray:
        """The signal times its precision."""


@dataclass(frozen=True)
class GaussianSensors:
    """Inputs (n, d) with standard Gaussian entries, divided by the root of d."""

    inputs: np.ndarray

    @property
    def size(self) -> int:
        """Size d of the signal."""
        return int(self.inputs.shape[1])

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """Samples of a signal."""
        return np.asarray(self.inputs @ signal) / np.sqrt(self.size)

    def adjoint(self, messages: np.ndarray) -> np.ndarray:
        """The transpose."""
        return np.asarray(self.inputs.T @ messages) / np.sqrt(self.size)

    def cavity(self, variance: np.ndarray) -> np.ndarray:
        """That of the signal."""
        return variance

    def precision(self, slope: np.ndarray) -> np.ndarray:
        """Mean slope of an entry."""
        return -slope / self.size

    def weigh(self, signal: np.ndarray, precision: np.ndarray) -> np.ndarray:
        """The signal times its precision."""
        return signal @ precision


def gaussian_denoiser(b: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior of entries that are standard Gaussian a priori."""
    # h = b (I + A)^-1,  V = (I + A)^-1
    V = np.linalg.inv(np.eye(len(A)) + A)
    return b @ V, V


@dataclass(frozen=True)
class Start:
    """Where the loop starts.

    Parameters
    ----------
    estimate : ndarray of shape (d, p), or a matrix
        h.
    variance : ndarray of shape (p, p)
        V; (1, 1) for a matrix.
    messages : ndarray of shape (n, K)
        g of the step that led to the estimate.

    Examples
    --------
    >>> Start.nothing(GaussianSensors(np.eye(4)), samples=4).variance
    array([[1.]])
    """

    estimate: np.ndarray
    variance: np.ndarray
    messages: np.ndarray

    @classmethod
    def nothing(cls, sensors: GaussianSensors, samples: int, directions: int = 1) -> Start:
        """The prior mean: the first step is then the best linear estimator."""
        return cls(
            np.zeros((sensors.size, directions)),
            np.eye(directions),
            np.zeros((samples, directions)),
        )


@dataclass(frozen=True)
class MessagePassingResult:
    """Where message passing came to rest."""

    estimate: np.ndarray  # h of the signal, shape (d, p), or a matrix
    variance: np.ndarray  # V, shape (p, p)
    messages: np.ndarray  # last g, shape (n, K)
    steps: int
    residual: float  # change of the estimate in the last step, relative to its norm
    history: tuple[np.ndarray, ...] = ()  # estimate after each step, if asked for


def message_passing(
    sensors: Sensors,
    messages: Messages,
    start: Start,
    *,
    denoiser: Denoiser = gaussian_denoiser,
    damping: float = 0.3,
    tolerance: float = 1e-4,
    max_steps: int = 300,
    least_variance: float = 1e-3,
    circling: float = 0.0,
    keep: bool = False,
) -> MessagePassingResult:
    r"""Run approximate message passing to its fixed point.

    Parameters
    ----------
    sensors : Sensors
        :math:`\mathcal A` and its transpose, such as :class:`GaussianSensors`.
    messages : callable
        Messages of the channel given labels, of :func:`messages_of` for a posterior.
    start : Start
        Estimate, variance and messages before the first step. Messages that do not belong to the
        estimate cost the first steps half of its overlap.
    denoiser : callable
        :math:`\eta`: estimate of the signal and its variance; by default the posterior of standard
        Gaussian entries.
    damping : float
        Share of the old estimate, variance and messages that is kept in a step, at least 0 and below 1;
        without any, samples of a few thousand may circle around the fixed point.
    tolerance : float
        Relative change of the estimate at which the loop ends.
    max_steps : int
        Steps after which it gives up.
    least_variance : float
        Eigenvalues of V are not let below: perfect recovery would divide by 0. An estimate there
        counts as converged.
    circling : float
        Relative change per step up to which an estimate that alternates between two counts as one,
        and is at rest when every other step agrees to ``tolerance``.
    keep : bool
        Whether to keep the estimate after every step.

    Returns
    -------
    MessagePassingResult
        The fixed point. An estimate that shrinks below a squared norm of 1e-4 per entry is one, of no
        information.

    Raises
    ------
    NotConverged
        If the loop diverged or did not settle; ``diagnostics`` say which, with the history of
        residuals and variances.
    InvalidParameter
        If damping is out of range.

    Notes
    -----
    Two products with the sensors for each step. Precisions A are the empirical ones.
    arXiv:2405.15480, arXiv:2408.03733; backed by ``tests/message_passing/test_loop.py`` and
    ``test_matrix_loop.py`` (state evolution, exact linear regression).

    Examples
    --------
    >>> from solvable.message_passing.outputs import GaussianOutput
    >>> from solvable.message_passing.posterior import messages_of, posterior_given
    >>> rng = np.random.default_rng(0)
    >>> X, w = rng.standard_normal((600, 200)), rng.standard_normal((200, 1))
    >>> channel = GaussianOutput(lambda z: z[..., 0], 0.5)
    >>> sensors = GaussianSensors(X)
    >>> y = channel.sample(sensors.forward(w), rng)
    >>> messages = messages_of(posterior_given(channel, y))
    >>> found = message_passing(sensors, messages, Start.nothing(sensors, 600))
    >>> ridge = np.linalg.solve(X.T @ X / 200 + 0.5 * np.eye(200), X.T @ y / 200**0.5)
    >>> round(float(np.corrcoef(ridge, found.estimate[:, 0])[0, 1]), 3)
    1.0
    """
    if not 0 <= damping < 1:
        raise InvalidParameter(f"damping is {damping}; allowed: at least 0 and below 1.")
    h, V, g = start.estimate, start.variance, start.messages
    trace: list[tuple[float, float]] = []
    history: list[np.ndarray] = []
    before = h
    for step in range(1, max_steps + 1):
        cavity = sensors.cavity(V)
        omega = sensors.forward(h) - g @ cavity
        new, slope = messages(omega, cavity)
        A = sensors.precision(slope)
        b = sensors.weigh(h, A) + sensors.adjoint(new)
        mean, variance = denoiser(b, _nonnegative(A))
        # The whole state is damped, after a step that is not: modes of the map that turn or alternate
        # then shrink, whereas messages damped inside of a step spoil the Onsager terms.
        g = (1 - damping) * new + damping * g
        mean = (1 - damping) * mean + damping * h
        variance = (1 - damping) * variance + damping * V
        power = float(np.sum(mean**2)) / (sensors.size * len(V))
        norm = max(float(np.linalg.norm(mean)), 1e-300)
        change = float(np.linalg.norm(mean - h)) / norm
        if change <= circling:
            # Eigenvalues that come and go at an edge alternate for ever; drift goes on in both steps.
            change = min(change, float(np.linalg.norm(mean - before)) / (2 * norm))
        before = h
        h, V = mean, _floored(variance, least_variance)
        trace.append((change, float(np.trace(V)) / len(V)))
        if keep:
            history.append(h.copy())
        if not np.isfinite(power) or power > 1e3:
            raise _failure(
                "diverged", trace, "Damp the iteration, or start from a better estimate."
            )
        at_floor = bool(np.linalg.eigvalsh(variance)[0] <= least_variance)
        if change <= tolerance or (step > 5 and (power < 1e-4 or at_floor)):
            return MessagePassingResult(h, V, g, step, change, tuple(history))
    raise _failure(
        "did not settle", trace, "Damp the iteration, raise max_steps, or take a larger dimension."
    )


def settle(
    sensors: Sensors,
    messages: Messages,
    start: Start,
    *,
    schedule: Sequence[tuple[float, int]] = ((0.5, 100), (0.8, 300)),
    **options: Any,
) -> MessagePassingResult:
    """Message passing, again with the next damping and number of steps where it circles."""
    for damping, steps in schedule[:-1]:
        try:
            return message_passing(
                sensors, messages, start, damping=damping, max_steps=steps, **options
            )
        except NotConverged:
            continue
    damping, steps = schedule[-1]
    return message_passing(sensors, messages, start, damping=damping, max_steps=steps, **options)


def _nonnegative(A: np.ndarray) -> np.ndarray:
    """Precision without negative eigenvalues, which few samples and poor starts can bring."""
    values, vectors = np.linalg.eigh(A)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _floored(V: np.ndarray, least: float) -> np.ndarray:
    values, vectors = np.linalg.eigh((V + V.T) / 2)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def _failure(what: str, trace: list[tuple[float, float]], remedy: str) -> NotConverged:
    change, variance = trace[-1]
    return NotConverged(
        f"message passing {what} in {len(trace)} steps: the last changed the estimate by {change:.2g} "
        f"of its norm, at variance {variance:.3g}. {remedy}",
        {
            "steps": len(trace),
            "reason": what,
            "residuals": [pair[0] for pair in trace],
            "variances": [pair[1] for pair in trace],
        },
    )
