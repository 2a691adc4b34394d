r"""Approximate message passing with a channel, a denoiser and linear sensors.

.. math::
    \omega=\mathcal A(h)-g_{\rm old}V,\quad g=g_{\rm out}(y,\omega,V),\quad
    A=-\langle\partial_\omega g\rangle,\quad b=hA+\mathcal A^*(g),\quad (h,V)=\eta(b,A) .

The signal is p vectors or a matrix. The sensors define how its variance maps to the samples, and how
slopes of the messages map to its precision (sensing 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.message_passing.outputs import Messages

Denoiser = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Denoiser: signal estimate and variance (p, p) from b (shape of the signal) and precision A (p, p)."""


class Sensors(Protocol):
    """Linear map from a signal to the samples, with its transpose."""

    @property
    def size(self) -> float:
        """Dimension d; squared norms of signals are divided by d."""

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """Values (n, K) of a signal on the samples."""

    def adjoint(self, messages: np.ndarray) -> np.ndarray:
        """Transpose, from messages (n, K) to a signal, in the units of b."""

    def cavity(self, variance: np.ndarray) -> np.ndarray:
        """Covariance (K, K) of the values of a sample for a signal of variance (p, p)."""

    def precision(self, slope: np.ndarray) -> np.ndarray:
        """Precision A (p, p) of the signal from the summed slopes (K, K) of the messages."""

    def weigh(self, signal: np.ndarray, precision: np.ndarray) -> np.ndarray:
        """Multiply the signal by its precision."""


@dataclass(frozen=True)
class GaussianSensors:
    """Sensors given by inputs (n, d) with standard Gaussian entries, divided by sqrt(d)."""

    inputs: np.ndarray

    @property
    def size(self) -> int:
        """Dimension d of the signal."""
        return int(self.inputs.shape[1])

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """Values of a signal on the samples."""
        return np.asarray(self.inputs @ signal) / np.sqrt(self.size)

    def adjoint(self, messages: np.ndarray) -> np.ndarray:
        """Transpose of `forward`."""
        return np.asarray(self.inputs.T @ messages) / np.sqrt(self.size)

    def cavity(self, variance: np.ndarray) -> np.ndarray:
        """Covariance of the values of a sample, equal to the variance of the signal."""
        return variance

    def precision(self, slope: np.ndarray) -> np.ndarray:
        """Precision A: the negative sum of the slopes, divided by d."""
        return -slope / self.size

    def weigh(self, signal: np.ndarray, precision: np.ndarray) -> np.ndarray:
        """Multiply the signal by its precision."""
        return signal @ precision


def gaussian_denoiser(b: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and variance for entries with a standard Gaussian prior."""
    # h = b (I + A)^-1,  V = (I + A)^-1
    V = np.linalg.inv(np.eye(len(A)) + A)
    return b @ V, V


@dataclass(frozen=True)
class Start:
    """State before the first step of message passing.

    Parameters
    ----------
    estimate : ndarray of shape (d, p), or a matrix
        Estimate h of the signal.
    variance : ndarray of shape (p, p)
        Variance V of the estimate; (1, 1) for a matrix.
    messages : ndarray of shape (n, K)
        Messages g of the step that produced the estimate.

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
        """Start at the prior mean 0; the first step is then the best linear estimator."""
        return cls(
            np.zeros((sensors.size, directions)),
            np.eye(directions),
            np.zeros((samples, directions)),
        )


@dataclass(frozen=True)
class MessagePassingResult:
    """Fixed point of message passing."""

    estimate: np.ndarray  # estimate h of the signal, shape (d, p), or a matrix
    variance: np.ndarray  # variance V of the estimate, shape (p, p)
    messages: np.ndarray  # messages g of the last step, shape (n, K)
    steps: int
    residual: float  # change of the estimate in the last step, relative to the estimate's norm
    history: tuple[np.ndarray, ...] = ()  # estimates after each step, if keep=True


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
        Linear map :math:`\mathcal A` with its transpose, such as :class:`GaussianSensors`.
    messages : callable
        Messages of the channel for given labels.
    start : Start
        Estimate, variance and messages before the first step. If the messages do not belong to the
        estimate, the first steps halve the estimate's overlap.
    denoiser : callable
        Function :math:`\eta` that returns the estimate and its variance; by default the posterior for
        standard Gaussian entries.
    damping : float
        Weight of the old estimate, variance and messages in each step, at least 0 and below 1. Without
        damping, runs with a few thousand samples may oscillate around the fixed point.
    tolerance : float
        Relative change of the estimate at which the iteration stops.
    max_steps : int
        Largest number of steps.
    least_variance : float
        Lower bound of the eigenvalues of V, which prevents a division by 0 at perfect recovery. An
        estimate at the bound counts as converged.
    circling : float
        Relative change per step below which an estimate that alternates between two values counts as
        converged, if every second step agrees to ``tolerance``.
    keep : bool
        If True, store the estimate after every step.

    Returns
    -------
    MessagePassingResult
        The fixed point. An estimate with a squared norm below 1e-4 per entry counts as a fixed point
        without information.

    Raises
    ------
    NotConverged
        If the iteration diverged or did not converge; ``diagnostics`` contain the reason and the history
        of residuals and variances.
    InvalidParameter
        If damping is out of range.

    Notes
    -----
    Each step takes two products with the sensors. The precision A is empirical.
    Sources: arXiv:2405.15480, arXiv:2408.03733. Backed by ``tests/message_passing/test_loop.py`` and
    ``test_matrix_loop.py`` (state evolution, exact linear regression).

    Examples
    --------
    >>> from solvable.message_passing.outputs import Message
    >>> rng = np.random.default_rng(0)
    >>> X, w = rng.standard_normal((600, 200)), rng.standard_normal((200, 1))
    >>> sensors = GaussianSensors(X)
    >>> y = sensors.forward(w) + rng.normal(scale=0.5**0.5, size=(600, 1))
    >>> def messages(omega, V):
    ...     return Message((y - omega) / (V + 0.5), -600 / (V + 0.5))
    >>> found = message_passing(sensors, messages, Start.nothing(sensors, 600))
    >>> ridge = np.linalg.solve(X.T @ X / 200 + 0.5 * np.eye(200), X.T @ y[:, 0] / 200**0.5)
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
        denoised, variance = denoiser(b, _nonnegative(A))
        # The whole state is damped after an undamped step, which shrinks oscillating modes. Damping
        # inside a step spoils the Onsager terms.
        g = (1 - damping) * new + damping * g
        mean = (1 - damping) * denoised + damping * h
        variance = (1 - damping) * variance + damping * V
        power = float(np.sum(mean**2)) / (sensors.size * len(V))
        norm = max(float(np.linalg.norm(mean)), 1e-300)
        change = float(np.linalg.norm(mean - h)) / norm
        if change <= circling:
            # Compare with the estimate two steps ago: eigenvalues that cross a spectral edge in every
            # step alternate forever, and a drift would not cancel.
            change = min(change, float(np.linalg.norm(mean - before)) / (2 * norm))
        before = h
        h, V = mean, _floored(variance, least_variance)
        trace.append((change, float(np.trace(V)) / len(V)))
        if keep:
            history.append(h.copy())
        if not np.isfinite(power) or power > 1e3:
            raise _failure("diverged", trace, "Raise damping, or start from a better estimate.")
        at_floor = bool(np.linalg.eigvalsh(variance)[0] <= least_variance)
        if change <= tolerance or (step > 5 and (power < 1e-4 or at_floor)):
            return MessagePassingResult(h, V, g, step, change, tuple(history))
    raise _failure("did not settle", trace, "Raise damping, max_steps or the dimension.")


def settle(
    sensors: Sensors,
    messages: Messages,
    start: Start,
    *,
    schedule: Sequence[tuple[float, int]] = ((0.5, 100), (0.8, 300)),
    **options: Any,
) -> MessagePassingResult:
    """Run message passing; on failure repeat with the next damping and number of steps."""
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
    """Set negative eigenvalues of the precision to 0; few samples or poor starts cause them."""
    values, vectors = np.linalg.eigh(A)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _floored(V: np.ndarray, least: float) -> np.ndarray:
    values, vectors = np.linalg.eigh((V + V.T) / 2)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def _failure(what: str, trace: list[tuple[float, float]], remedy: str) -> NotConverged:
    change, variance = trace[-1]
    return NotConverged(
        f"message passing {what} in {len(trace)} steps: the last step changed the estimate by "
        f"{change:.2g} of its norm; the variance is {variance:.3g}. {remedy}",
        {
            "steps": len(trace),
            "reason": what,
            "residuals": [pair[0] for pair in trace],
            "variances": [pair[1] for pair in trace],
        },
    )
