"""Langevin dynamics of many two-layer networks in parallel, in variables of unit prior variance.

With v = sqrt(d) w and b = sqrt(N chi) a / sigma_a, so that f = (sigma_a / sqrt(N chi)) sum_i b_i
sigma(v_i.x / sqrt(d)), minus the logarithm of the posterior is
U = (1 / 2 kappa) sum_nu (f(x_nu) - y_nu)² + |v|² / 2 + |b|² / 2   (two-layer-posterior 1).
A state is one array of shape (networks, N, d + 1) whose last column is b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import pi, sqrt
from typing import Any, Protocol

import numpy as np

from solvable.arrays import Array, as_on, is_tensor, namespace, to_numpy
from solvable.errors import NotConverged
from solvable.operators.activations import evaluate

ACTIVATIONS = ("erf", "tanh", "relu")
"""Activations allowed in Langevin dynamics."""

STEP_CURVATURE = 1.0
"""Product of step and largest curvature; the integrator is stable below 2."""

STEP_TOLERANCE = 0.02
"""Largest accepted relative change of the training error when the step is halved."""

FASTEST = 0.2
"""Largest step; the curvature of the prior is 1."""


def value_and_slope(activation: str, h: Array, work: Array | None = None) -> tuple[Array, Array]:
    """Compute sigma(h) and sigma'(h); for NumPy arrays h and ``work`` are overwritten."""
    xp = namespace(h)
    if is_tensor(h) or (activation == "erf" and h.dtype == np.float64):
        if activation == "erf":
            # erf'(h) = (2 / sqrt(pi)) exp(-h²)
            return evaluate("erf", h), (2 / sqrt(pi)) * xp.exp(-h * h)
        if activation == "tanh":
            value = xp.tanh(h)
            return value, 1 - value * value
        slope = xp.astype(h > 0, h.dtype)
        return h * slope, slope
    slope, t, tail = np.empty((3, *h.shape), h.dtype) if work is None else work
    if activation == "relu":
        np.greater(h, 0, out=slope)
        return np.multiply(h, slope, out=h), slope
    if activation == "tanh":
        np.tanh(h, out=h)
        np.multiply(h, h, out=slope)
        return h, np.subtract(1, slope, out=slope)
    # Abramowitz and Stegun 7.1.26 reuses the exponential of the slope. Its error of 1.5e-7 is rounding
    # in float32, and it takes a seventh of the time of SciPy's function.
    np.multiply(h, h, out=slope)
    np.negative(slope, out=slope)
    np.exp(slope, out=slope)
    np.abs(h, out=t)
    t *= 0.3275911
    t += 1
    np.divide(1, t, out=t)
    np.multiply(t, 1.061405429, out=tail)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += coefficient
        tail *= t
    tail *= slope
    np.subtract(1, tail, out=tail)
    slope *= 2 / sqrt(pi)
    return np.copysign(tail, h, out=h), slope


class Sampled(Protocol):
    """A density over states, given by its gradient."""

    def gradient(self, theta: Array) -> tuple[Array, Array]:
        """Compute the gradient of U, and the mean squared training error of each network."""
        ...


@dataclass(frozen=True)
class Posterior:
    """Posterior of two-layer networks given one data set."""

    X: Array  # inputs, shape (P, d)
    y: Array  # labels, shape (P,)
    kappa: float  # ridge kappa, which is also the temperature
    scale: float  # sigma_a / sqrt(N chi), the prior standard deviation of a readout weight
    activation: str  # name of the activation, one of ACTIVATIONS
    _work: dict[tuple[int, ...], np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def dimension(self) -> int:
        """Number of inputs."""
        return int(self.X.shape[1])

    def outputs(self, theta: Array, X: Array | None = None) -> Array:
        """Compute the output of each network at each sample, shape (samples, networks)."""
        X = self.X if X is None else X
        xp = namespace(X)
        parts = [
            self._forward(theta, X[start:stop, :], slope=False)[2]
            for start, stop in self._blocks(theta, int(X.shape[0]))
        ]
        return xp.concat(parts, axis=0)

    def gradient(self, theta: Array) -> tuple[Array, Array]:
        """Compute the gradient of U, and the mean squared training error of each network."""
        xp = namespace(self.X)
        networks, width, d = theta.shape[0], theta.shape[1], self.dimension
        first = xp.zeros_like(xp.reshape(theta[:, :, :d], (networks * width, d)))
        readout, squares = xp.zeros_like(theta[:, :, d:]), xp.zeros_like(theta[:, 0, 0])
        for start, stop in self._blocks(theta, int(self.X.shape[0])):
            rows = self.X[start:stop, :]
            value, slope, f = self._forward(theta, rows)
            error = f - self.y[start:stop, None]
            squares = squares + xp.sum(error * error, axis=0)
            # sum_nu e_nu sigma(h_nu i), and sum_nu e_nu sigma'(h_nu i) x_nu
            by_network = xp.permute_dims(value, (1, 2, 0))
            readout = readout + by_network @ xp.permute_dims(error, (1, 0))[:, :, None]
            slope *= error[:, :, None]
            first = first + xp.reshape(slope, (stop - start, networks * width)).T @ rows
        b = theta[:, :, d:]
        pull = self.scale / self.kappa
        pulls = xp.concat(
            [(pull / sqrt(d)) * b * xp.reshape(first, (networks, width, d)), pull * readout], axis=2
        )
        return pulls + theta, squares / self.X.shape[0]

    def _forward(self, theta: Array, X: Array, *, slope: bool = True) -> tuple[Array, Array, Array]:
        """Compute sigma(h), sigma'(h) of shape (rows, networks, N), and f of shape (rows, networks)."""
        xp = namespace(X)
        networks, width, d = theta.shape[0], theta.shape[1], self.dimension
        # one product for all networks: (rows, d) by (d, networks N)
        v = xp.reshape(theta, (networks * width, d + 1))[:, :d]
        work = None
        if isinstance(X, np.ndarray):
            # allocating large arrays at every step would cost more than the computation
            shape = (4, len(X), networks * width)
            buffer = self._work.get(shape)
            if buffer is None:
                buffer = self._work[shape] = np.empty(shape, X.dtype)
            work, h = buffer[1:], np.matmul(X, v.T, out=buffer[0])
        else:
            h = X @ v.T
        h *= 1 / sqrt(d)
        value, slopes = value_and_slope(self.activation, h, work)
        value, slopes = (
            xp.reshape(part, (int(X.shape[0]), networks, width)) for part in (value, slopes)
        )
        f = xp.permute_dims(value, (1, 0, 2)) @ theta[:, :, d:]
        return value, slopes, xp.permute_dims(self.scale * f[:, :, 0], (1, 0))

    def _blocks(self, theta: Array, rows: int) -> list[tuple[int, int]]:
        """Split the rows so that hidden units fit into a cache, or into a device's memory."""
        columns = theta.shape[0] * theta.shape[1]
        size = max(16, (2**26 if is_tensor(theta) else 2**17) // columns)
        return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def largest_curvature(posterior: Sampled, theta: Array, noise: Noise, *, rounds: int = 10) -> float:
    """Estimate the largest curvature of U at a state, by power iteration on its gradient."""
    xp = namespace(theta)
    direction = noise()
    curvature = 1.0
    for _ in range(rounds):
        size = xp.sum(direction * direction, axis=(1, 2), keepdims=True) ** 0.5
        # a displacement of 0.1 per coordinate, far above the rounding of the gradient
        direction = direction * (0.1 * sqrt(theta.shape[1] * theta.shape[2]) / size)
        change = (
            posterior.gradient(theta + direction)[0] - posterior.gradient(theta - direction)[0]
        ) / 2
        product = xp.sum(change * direction, axis=(1, 2))
        curvature = float(xp.max(product / xp.sum(direction * direction, axis=(1, 2))))
        direction = change
    return max(1.0, curvature)


class Noise:
    """Source of standard normal arrays with the shape and device of a state."""

    def __init__(self, stream: np.random.Generator, like: Array) -> None:
        self.stream, self.like = stream, like
        self._generator: Any = None
        if is_tensor(like) and hasattr(like, "detach"):
            import torch

            # drawn on the device, because a copy from the host would take longer than the step
            self._generator = torch.Generator(device=like.device)
            self._generator.manual_seed(int(stream.integers(2**62)))

    def __call__(self) -> Array:
        """Draw an array of standard normal numbers."""
        shape = tuple(self.like.shape)
        if self._generator is not None:
            import torch

            options = {"dtype": self.like.dtype, "device": self.like.device}
            return torch.randn(shape, generator=self._generator, **options)
        kind = np.float32 if "32" in str(self.like.dtype) else np.float64
        return as_on(self.stream.standard_normal(shape, dtype=kind), self.like)


@dataclass(frozen=True)
class Run:
    """Result of a run of Langevin dynamics."""

    theta: Array  # state after the last step
    step: float  # step size in the second half of the run
    step_error: float  # relative change of the training error when the step is halved
    errors: np.ndarray  # training errors along the second half, shape (observations, networks)
    virial: float  # mean of theta . grad U per variable, which is 1 in the posterior


@np.errstate(over="ignore", invalid="ignore")  # a divergence raises NotConverged
def run_langevin(
    posterior: Sampled,
    theta: Array,
    stream: np.random.Generator,
    *,
    steps: int,
    step: float | None = None,
    share: float = 1.0,
    every: int = 10,
    observe: Callable[[Array], None] | None = None,
) -> Run:
    """Run Langevin steps from a state; call ``observe`` every few steps of the second half."""
    # Without a given step, the step is `share` times the inverse of the largest curvature met on the
    # way, halved as long as halving changes the training error.
    noise = Noise(stream, theta)
    chain = _Chain(posterior, theta, noise)
    half = steps // 2
    # The curvature grows when neurons specialise, so that it is estimated several times.
    looks = 4 if step is None else 1
    chosen = FASTEST if step is None else step
    for look in range(looks):
        part = (look + 1) * half // looks - look * half // looks
        if step is None:
            chosen = chain.approach(part, share)
        else:
            chain.advance(part, chosen)
    if step is None:
        chosen = share * min(
            chosen / share, STEP_CURVATURE / largest_curvature(posterior, chain.theta, noise)
        )
    for _ in range(4):
        difference = chain.halved(chosen, max(20, min(100, steps // 20)))
        if step is not None or difference <= STEP_TOLERANCE:
            break
        chosen /= 2
    errors, virials = [], []
    for _ in range(max(1, (steps - half) // every)):
        chain.advance(every, chosen)
        pull, error = posterior.gradient(chain.theta)
        errors.append(to_numpy(error))
        virials.append(float(namespace(pull).mean(pull * chain.theta)))
        if observe is not None:
            observe(chain.theta)
    return Run(chain.theta, chosen, difference, np.array(errors), float(np.mean(virials)))


class _Chain:
    """Markov chain of states, with the noise of the last step."""

    # theta' = theta - eps grad U + sqrt(2 eps) (xi + xi') / 2, with xi' the noise of the next step
    # (two-layer-posterior 16; Leimkuhler and Matthews, arXiv:1203.5428). A step costs as much as a plain
    # Langevin step, but averages are wrong by O(eps²) instead of O(eps), and exact for a Gaussian.

    def __init__(self, posterior: Sampled, theta: Array, noise: Noise) -> None:
        self.posterior, self.theta, self.noise = posterior, theta, noise
        self.last = noise()

    def advance(self, steps: int, step: float) -> None:
        """Make the given number of steps."""
        xp, error = namespace(self.theta), None
        for _ in range(steps):
            pull, error = self.posterior.gradient(self.theta)
            new = self.noise()
            self.theta = _moved(self.theta, pull, self.last + new, step)
            self.last = new
        if error is not None and not bool(xp.all(xp.isfinite(error))):
            raise NotConverged(
                f"Langevin dynamics diverged with steps of {step:.3g}; allowed: a step below 2 over the "
                "largest curvature. Lower step_size, or set it to None to choose it automatically.",
                {"step": step},
            )

    def approach(self, steps: int, share: float) -> float:
        """Make steps of the size that the curvature allows, and smaller ones if they diverge."""
        step = share * min(
            FASTEST, STEP_CURVATURE / largest_curvature(self.posterior, self.theta, self.noise)
        )
        kept = self.theta
        while True:
            try:
                self.advance(steps, step)
                return step
            except NotConverged:
                if step < 1e-9:
                    raise
                self.theta, step = kept, step / 4

    def halved(self, step: float, steps: int) -> float:
        """Compute the relative change of the training error at half the step, same Brownian path."""
        coarse = fine = self.theta
        last_coarse = last_fine = self.last
        sums = np.zeros(2)
        for number in range(steps):
            drawn = self.noise(), self.noise()
            pull, error = self.posterior.gradient(coarse)
            # noise of the whole step: (xi_1 + xi_2) / sqrt(2)
            new = (drawn[0] + drawn[1]) / sqrt(2)
            coarse, last_coarse = _moved(coarse, pull, last_coarse + new, step), new
            errors = [float(namespace(error).mean(error)), 0.0]
            for part in drawn:
                pull, error = self.posterior.gradient(fine)
                fine, last_fine = _moved(fine, pull, last_fine + part, step / 2), part
                errors[1] += float(namespace(error).mean(error)) / 2
            if number >= steps // 3:  # fast variables have relaxed
                sums += errors
        return float(abs(sums[0] / sums[1] - 1)) if np.isfinite(sums).all() and sums[1] else np.inf


def _moved(theta: Array, pull: Array, twice: Array, step: float) -> Array:
    return theta - step * pull + (sqrt(2 * step) / 2) * twice


def effective_samples(series: np.ndarray) -> tuple[float, float]:
    """Estimate the effective sample size of series (length, chains), and its standard error."""
    length, chains = series.shape
    # deviations from the common mean: separated chains count at most once each
    rest = series - series.mean()
    variance = float(np.mean(rest**2))
    if variance <= 1e-14 * float(np.mean(series**2)) or length < 4:
        return float(length * chains), 0.0
    padded = np.fft.rfft(rest, 2 * length, axis=0)
    sums = np.fft.irfft(np.abs(padded) ** 2, axis=0)[:length].mean(axis=1)
    rho = sums / np.arange(length, 0, -1) / variance
    # tau = 1 + 2 sum rho, with the sum cut at a lag of W >= 5 tau (Sokal); its standard error is
    # tau sqrt(2 (2 W + 1) / n)
    tau = 2 * np.cumsum(rho) - 1
    window = np.arange(length) >= 5 * tau
    cut = int(np.argmax(window)) if window.any() else length - 1
    total = length * chains
    count = total / max(1.0, float(tau[cut]))
    return count, count * sqrt(2 * (2 * cut + 1) / total)
