r"""Approximate message passing on data, for any prior and output.

With the messages g of the output and the denoiser f of the prior, one step is

.. math::
    \omega=Xh-Vg,\quad g_i=g(y_i,\omega_i,V),\quad A=-\tfrac1d\sum_i\partial_\omega g_i,\quad
    b=Ah+X^\top g,\quad h=f(A,b),\quad V=\tfrac1d\sum_j\mathrm{Var}[w_j|b_j].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidData
from solvable.inference.curve import curve_of
from solvable.inference.multi_index import MultiIndexOutput
from solvable.inference.outputs import Output
from solvable.inference.pieces import Pieces
from solvable.inference.priors import Prior
from solvable.inference.several_on_data import DirectionsFit, fit_directions, unsettled
from solvable.inference.summary import Summarised

WARM_UP = 30
"""Steps with a linear denoiser from a random start."""


@dataclass(frozen=True, repr=False)
class Fit(Summarised):
    """Estimate of a signal by message passing.

    Parameters
    ----------
    estimate : ndarray of shape (d,)
        Posterior mean of each entry of the signal.
    variance : ndarray of shape (d,)
        Posterior variance of each entry.
    error : float
        Mean squared error of an entry that state evolution predicts at this n and d.
    overlap : float
        Predicted squared cosine between estimate and signal.
    trace : ndarray of shape (steps,)
        Mean posterior variance after each step, the error that the algorithm expects.
    sign_known : bool
        False if signal and minus signal give the same labels, so that the estimate has either sign.
    damping : float
        Share of the previous step that was kept; 0 unless the undamped iteration failed.
    change : float
        Relative change of the estimate in the last step. It may end in a small cycle around the fixed
        point, of up to 0.02, or 0.2 for outputs that do not show the sign.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from solvable.inference import Output, Rademacher
    >>> prior, output = Rademacher(0.5), Output("sign")
    >>> w = prior.draw(500, rng)
    >>> X = rng.standard_normal((1000, 500)) / np.sqrt(500)
    >>> message_passing(X, output.draw(X @ w, rng), prior, output).error_against(w)
    0.0
    """

    estimate: np.ndarray
    variance: np.ndarray
    error: float
    overlap: float
    trace: np.ndarray
    sign_known: bool
    damping: float
    change: float

    def error_against(self, signal: np.ndarray) -> float:
        """Mean squared error of an entry, of the better sign if this is unknown."""
        w = np.asarray(signal, dtype=np.float64)
        errors = [float(np.mean((s * self.estimate - w) ** 2)) for s in (1, -1)]
        return errors[0] if self.sign_known else min(errors)


def message_passing(
    X: np.ndarray,
    y: np.ndarray,
    prior: Prior,
    output: Output | MultiIndexOutput,
    *,
    max_steps: int = 300,
    tolerance: float = 1e-5,
    seed: int = 0,
) -> Fit | DirectionsFit:
    r"""Estimate the signal w, or several, from labels :math:`y\sim P(y|Xw)`.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Inputs, independent entries of mean 0 and variance 1/d.
    y : ndarray of shape (n,)
        Labels.
    prior : Prior
        Law of the entries of w.
    output : Output or MultiIndexOutput
        Law of a label given its index or indices.
    max_steps : int
        Largest number of steps of each attempt.
    tolerance : float
        Largest change of the estimate in the last step, root mean square relative to the estimate.
    seed : int
        Seed of the random start, which is used if nothing is known at the prior mean.

    Returns
    -------
    Fit or DirectionsFit
        Estimate with its predicted error.

    Raises
    ------
    InvalidData
        If shapes differ, a number is not finite, the variance of X is not 1/d, or the output cannot give
        a label.
    NotConverged
        If the iteration does not settle, or settles on an estimate that contradicts the labels, without
        damping and with damping 0.5 and 0.8.

    Notes
    -----
    A step takes two products with X. Backed by ``tests/inference/test_algorithm.py``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> from solvable.inference import GaussBernoulli, Output
    >>> prior, output = GaussBernoulli(0.2), Output("identity", noise=0.01)
    >>> w = prior.draw(800, rng)
    >>> X = rng.standard_normal((480, 800)) / np.sqrt(800)
    >>> fit = message_passing(X, output.draw(X @ w, rng), prior, output)
    >>> bool(abs(fit.error_against(w) / fit.error - 1) < 0.3)
    True
    """
    X, y = _checked(X, y)
    check_integer("max_steps", max_steps, 1)
    if isinstance(output, MultiIndexOutput):
        return fit_directions(X, y, prior, output, max_steps, tolerance, seed)
    curve = curve_of(prior, output)
    ratio = X.shape[0] / X.shape[1]
    place = curve.point(ratio, "prior")
    fault = ""
    for damping in (0.0, 0.5, 0.8):
        run = _Run(X, y, prior, output, curve.known, damping, seed)
        fault = run.iterate(max_steps, tolerance, trivial=place == -np.inf)
        if not fault:
            error = curve.error(place)
            return Fit(
                run.h,
                run.variance,
                error,
                1 - error / curve.rho,
                np.array(run.trace),
                curve.known,
                damping,
                run.change / max(float(np.sqrt(np.mean(run.h**2))), 1e-300),
            )
    raise unsettled(ratio, fault, max_steps, {"trace": run.trace, "change": run.change})


class _Run:
    """One attempt with a given damping."""

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        prior: Prior,
        output: Output,
        known: bool,
        damping: float,
        seed: int,
    ) -> None:
        self.X, self.y, self.prior, self.output, self.damping = X, y, prior, output, damping
        self.rho = prior.second_moment
        self.scores = output.channel(self.rho).scores(y)
        d = X.shape[1]
        self.h = np.full(d, prior.mean)
        if not known:  # nothing breaks the symmetry at the prior mean
            noise = np.random.default_rng(seed).standard_normal(d)
            self.h = self.h + 0.03 * np.sqrt(self.rho) * noise
        self.variance = np.full(d, prior.variance)
        self.g = np.zeros(X.shape[0])
        self.trace: list[float] = []
        self.change, self.known = np.inf, known

    def iterate(self, max_steps: int, tolerance: float, *, trivial: bool) -> str:
        """Run to convergence; return the fault, or an empty text."""
        floor = 1e-9 * self.rho
        for _ in range(max_steps):
            before = self.h
            self._step(min(max(float(self.variance.mean()), floor), self.prior.variance))
            if not np.isfinite(self.h).all():
                return "the estimate became infinite"
            V = float(self.variance.mean())
            self.trace.append(V)
            size = float(np.sqrt(np.mean(self.h**2)))
            self.change = float(np.sqrt(np.mean((self.h - before) ** 2)))
            if floor >= V or self.change <= tolerance * size:
                return self._contradiction()
        settled = abs(self.trace[-1] / np.mean(self.trace[-20:]) - 1) < 0.01
        # a small cycle, which damping often makes worse
        if settled and self.change < (0.02 if self.known else 0.2) * size:
            return self._contradiction()
        if trivial and size**2 < 0.1 * self.prior.variance:
            return ""  # the labels do not suffice for any overlap, as predicted
        moved = f"{self.change / size:.2g}"
        return f"the last of {max_steps} steps changed the estimate by {moved} of its size"

    def _step(self, V: float) -> None:
        """One step (inference 9), of which a share of the previous one is kept."""
        X, keep = self.X, self.damping if self.trace else 0.0
        scale = np.sqrt(self.rho)
        omega = X @ self.h - V * self.g
        g, slope = self.scores(omega / scale, V / self.rho)
        self.g = keep * self.g + (1 - keep) * g / scale
        # The slope does not grow with labels that contradict the estimate, as E[g²] does: with g² one of
        # four perceptrons at d = 2000 settles on a wrong estimate.
        raw = -slope / self.rho / X.shape[1]  # below 0 by chance where labels show nearly nothing
        A = max(raw, float(g @ g) / self.rho / X.shape[1] / 4, 1e-9 / self.rho)
        b = raw * self.h + X.T @ self.g
        if self.known or len(self.trace) >= WARM_UP:
            h, variance = self.prior.denoise(b, A)
        else:  # a linear denoiser, as A is no measure of the noise of b while nothing is known
            spread = self.rho / (1 + self.rho * A)
            h, variance = spread * b, np.full(b.size, spread)
        self.h = keep * self.h + (1 - keep) * h
        self.variance = keep * self.variance + (1 - keep) * variance

    def _contradiction(self) -> str:
        """Text if the estimate claims to be exact but does not reproduce the labels."""
        channel = self.output.channel(self.rho)
        if not isinstance(channel, Pieces) or channel.blur:
            return ""
        if self.variance.mean() > 1e-3 * self.rho:
            return ""
        clean = self.output.draw(self.X @ self.h, np.random.default_rng(0))
        if channel.branches:
            off = float(np.sqrt(np.mean((clean - self.y) ** 2) / max(np.var(self.y), 1e-300)))
            wrong = off > 0.2
        else:
            rate = 2 * channel.flips * (1 - channel.flips)
            spread = np.sqrt(rate * (1 - rate) / self.y.size)
            off = float(np.mean(np.abs(clean - self.y) > 1e-9))
            wrong = off > rate + 5 * spread + 0.04
        return (
            f"the estimate reproduces the labels with an error of {off:.2g} only" if wrong else ""
        )


def _checked(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X = np.asarray(X)
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    try:
        y = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidData("y holds values that are no numbers; allowed: finite numbers.") from None
    if X.ndim != 2 or y.shape != X.shape[:1] or not X.size:
        raise InvalidData(
            f"X has shape {X.shape} and y has shape {y.shape}; allowed: (n, d) and (n,)."
        )
    power = float(np.vdot(X, X)) / X.shape[0]
    if not (np.isfinite(power) and np.isfinite(y).all()):
        raise InvalidData("X or y holds NaN or infinity; allowed: finite numbers.")
    if abs(power - 1) > 0.1 + 5 * np.sqrt(2 / X.size):
        raise InvalidData(
            f"the mean squared length of a row of X is {power:.4g}; allowed: 1, entries of variance 1/d. "
            "Centre and divide X."
        )
    return X, y
