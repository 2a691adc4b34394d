r"""Online learning of a committee by another: exact equations of the overlaps (online-learning 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import check_integer, check_real
from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.inference.committee import CLOSED, Activation, Smooth, activation_of
from solvable.inference.summary import Summarised


@dataclass(frozen=True, eq=False, repr=False)
class Committee(Summarised):
    r"""A two-layer network of few units, teacher or student.

    .. math:: f(x)=\sum_kv_k\,g\Big(\frac{w_k\cdot x}{\sqrt d}\Big),\qquad x\sim\mathcal N(0,I_d).

    Parameters
    ----------
    activation : str
        "erf" for :math:`g(u)=\mathrm{erf}(u/\sqrt2)`, "relu", "quadratic" for :math:`u^2`, "linear", or
        a smooth formula as in :func:`solvable.links.make_link`, for at most 5 units of both committees
        together.
    weights : array of float of shape (k, d)
        First layer; only inner products divided by d matter.
    second_layer : array of float of shape (k,), optional
        v; ones by default.
    noise : float, at least 0
        Variance of the noise on the labels of a teacher.

    Raises
    ------
    InvalidData
        If the weights are not finite numbers of shape (k, d).
    InvalidParameter
        If the second layer has another length or the noise is negative.

    Notes
    -----
    Backed by ``tests/inference/test_online.py``.

    Examples
    --------
    >>> teacher, student = Committee.pair("erf", Q=[[0.5]], R=[[0.1]], T=[[1.0]])
    >>> (student.weights @ teacher.weights.T / 2).round(6)
    array([[0.1]])
    """

    activation: str
    weights: np.ndarray
    second_layer: np.ndarray | None = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.ndim != 2 or not weights.size or not np.isfinite(weights).all():
            raise InvalidData(
                f"the weights have shape {weights.shape} or are not finite; allowed: finite numbers of "
                "shape (k, d)."
            )
        layer = (
            np.ones(len(weights))
            if self.second_layer is None
            else np.array(self.second_layer, float)
        )
        if layer.shape != (len(weights),) or not np.isfinite(layer).all():
            raise InvalidParameter(
                f"second_layer is {self.second_layer}; allowed: {len(weights)} finite numbers."
            )
        check_real("noise", self.noise, 0.0)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "second_layer", layer)

    @classmethod
    def pair(
        cls,
        activation: str,
        Q: Sequence[Sequence[float]] | np.ndarray,
        R: Sequence[Sequence[float]] | np.ndarray,
        T: Sequence[Sequence[float]] | np.ndarray,
        *,
        noise: float = 0.0,
    ) -> tuple[Committee, Committee]:
        """Return teacher and student with given overlaps, in as many dimensions as they have units."""
        Q, R, T = (np.atleast_2d(np.asarray(part, float)) for part in (Q, R, T))
        if R.shape != (len(Q), len(T)) or Q.shape[0] != Q.shape[1] or T.shape[0] != T.shape[1]:
            raise InvalidData(
                f"Q, R, T have shapes {Q.shape}, {R.shape}, {T.shape}; allowed: (k, k), (k, m), (m, m)."
            )
        C = np.block([[Q, R], [R.T, T]])
        level, vectors = np.linalg.eigh(C)
        if np.abs(C - C.T).max() > 1e-9 or level[0] < -1e-9 * level[-1]:
            raise InvalidData(
                f"the overlaps are no covariance: smallest eigenvalue {level[0]:.3g}; allowed: symmetric "
                "and at least 0."
            )
        # the symmetric root, which keeps exchange symmetries
        rows = np.sqrt(len(C)) * (vectors * np.sqrt(np.maximum(level, 0.0))) @ vectors.T
        return cls(activation, rows[len(Q) :], noise=noise), cls(activation, rows[: len(Q)])


@dataclass(frozen=True, repr=False)
class OnlineLearning(Summarised):
    """Overlaps and error of a student along the samples of one pass.

    Attributes
    ----------
    time : ndarray of shape (t,)
        Samples per dimension n / d; times the learning rate for gradient flow.
    error : ndarray of shape (t,)
        Half the mean squared difference of student and teacher, without label noise.
    Q : ndarray of shape (t, k, k)
        Overlaps of the students.
    R : ndarray of shape (t, k, m)
        Overlaps of students and teachers.
    T : ndarray of shape (m, m)
        Overlaps of the teachers.
    second_layer : ndarray of shape (t, k)
        Second layer of the student.
    """

    time: np.ndarray
    error: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    T: np.ndarray
    second_layer: np.ndarray

    @cached_property
    def plateau(self) -> tuple[float, float] | None:
        """Time and error of the flattest point after which the error falls below half; None without one.

        A plateau is much flatter than its surroundings.
        """
        rate = -np.gradient(np.log(np.maximum(self.error, 1e-300)), self.time)
        # errors that vanish end at rounding
        before = np.flatnonzero(self.error > max(2 * self.error[-1], 1e-6 * self.error.max()))
        if before.size < 3:
            return None
        place = int(before[np.argmin(rate[before])])
        # a plateau is much flatter than what surrounds it
        if rate[place] > 0.2 * min(rate[: place + 1].max(), rate[place:].max()):
            return None
        return float(self.time[place]), float(self.error[place])

    @property
    def escape(self) -> float | None:
        """Time at which the error falls below half of its plateau; None without a plateau."""
        if self.plateau is None:
            return None
        start, height = self.plateau
        later = np.flatnonzero((self.time > start) & (self.error < height / 2))[0]
        near = slice(later - 1, later + 1)
        level = np.log(self.error[near])[::-1]
        return float(np.interp(np.log(height / 2), level, self.time[near][::-1]))


def online_sgd(
    teacher: Committee,
    student: Committee,
    learning_rate: float,
    steps: int | Sequence[int] | np.ndarray,
    *,
    second_layer_rate: float = 0.0,
) -> OnlineLearning:
    r"""Compute the overlaps of a student that sees each sample of a teacher once.

    .. math:: w_k\leftarrow w_k-\frac\eta{\sqrt d}v_kg'(\lambda_k)\,(f(x)-y)\,x,\qquad
        v_k\leftarrow v_k-\frac{\eta_v}dg(\lambda_k)\,(f(x)-y),\qquad\lambda_k=\frac{w_k\cdot x}{\sqrt d}

    in the limit of large d at fixed time n / d. The start is that of the given weights, so that a run at
    finite d is compared with the equations from its own start.

    Parameters
    ----------
    teacher, student : Committee
        Networks with the same activation and dimension.
    learning_rate : float, at least 0
        :math:`\eta`. 0 means gradient flow on the population: the limit of small rates, with times
        multiplied by the rate. A step on the mean of B samples counts as B steps of :math:`\eta/B`.
    steps : int or sequence of int
        Number of steps, reported at 201 even times, or ascending numbers of steps to report.
    second_layer_rate : float, at least 0
        :math:`\eta_v`; 0 keeps the second layer. For gradient flow, its ratio to the rate of the first.

    Returns
    -------
    OnlineLearning
        Overlaps and error against time.

    Raises
    ------
    InvalidParameter
        If activations differ, a rate is negative, or the activation is not covered for this many units.
    InvalidData
        If the dimensions differ.
    NotConverged
        If the error diverges, as it does at large learning rates.

    Notes
    -----
    (online-learning 1), exact for d to infinity (Saad and Solla 1995; Goldt et al. 2019). At d = 500 a
    run deviates by a few per cent, and escapes from a plateau up to 1 / rate earlier or later than the
    equations when the noise of the steps exceeds the asymmetry of the start. Backed by
    ``tests/inference/test_online.py`` (simulation).

    Examples
    --------
    >>> teacher, student = Committee.pair("linear", Q=[[0.0]], R=[[0.0]], T=[[1.0]])
    >>> run = online_sgd(teacher, student, 1.0, [0, 2, 4])
    >>> run.error.round(4)
    array([0.5   , 0.1839, 0.0677])
    """
    check_real("learning_rate", learning_rate, 0.0)
    check_real("second_layer_rate", second_layer_rate, 0.0)
    if teacher.activation != student.activation:
        raise InvalidParameter(
            f"the activations are {teacher.activation!r} and {student.activation!r}; allowed: the same."
        )
    dimension = teacher.weights.shape[1]
    if student.weights.shape[1] != dimension:
        raise InvalidData(
            f"the weights have {dimension} and {student.weights.shape[1]} columns; allowed: the same."
        )
    reported = np.asarray(steps, dtype=np.float64)
    reported = np.linspace(0.0, reported, 201) if reported.ndim == 0 else reported
    if reported.ndim != 1 or not (np.diff(reported) > 0).all() or reported[0] < 0:
        raise InvalidParameter(
            f"steps is {steps}; allowed: above 0, or ascending numbers from 0 on."
        )
    rows = np.concatenate([student.weights, teacher.weights])
    equations = _Equations(
        activation_of(student.activation, len(rows)),
        rows @ rows.T / dimension,
        np.concatenate([np.asarray(student.second_layer), -np.asarray(teacher.second_layer)]),
        len(student.weights),
        teacher.noise,
        learning_rate,
        second_layer_rate,
    )
    return equations.run(reported / dimension)


@dataclass
class _Equations:
    """Right-hand side and integration of the equations."""

    activation: Activation
    C: np.ndarray  # covariance of all units at the start, students first
    a: np.ndarray  # second layers at the start: the student's, and minus the teacher's
    students: int
    noise: float
    rate: float  # 0 for gradient flow at rate 1
    second_rate: float = 0.0

    def parts(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Covariance of all units and second layers for Q, R and v in one row."""
        K, size = self.students, len(self.C)
        Q, R = state[: K * K].reshape(K, K), state[K * K : -K].reshape(K, size - K)
        C = np.block([[Q, R], [R.T, self.C[K:, K:]]])
        return C, np.concatenate([state[-K:], self.a[K:]])

    def error(self, state: np.ndarray) -> float:
        """Half the mean square of student minus teacher (online-learning 2)."""
        return self.activation.error(*self.parts(state))

    def slope(self, _: float, state: np.ndarray) -> np.ndarray:
        """Time derivative of Q, R and v (online-learning 1)."""
        K, (C, a) = self.students, self.parts(state)
        v = a[:K]
        pull = -(self.rate or 1.0) * v[:, None] * self.activation.pull(C, a, K)
        dQ = pull[:, :K] + pull[:, :K].T
        if self.rate:
            spread = self.activation.spread(C, a, K, self.noise)
            dQ = dQ + self.rate**2 * np.outer(v, v) * spread
        dv = -self.second_rate * self.activation.outer(C, a, K) if self.second_rate else 0 * v
        return np.concatenate([dQ.ravel(), pull[:, K:].ravel(), dv])

    def resolved(self, state: np.ndarray) -> None:
        """Refuse a smooth activation that the grid does not resolve at this state."""
        if isinstance(self.activation, Smooth):
            self.activation.check(self.parts(state)[0])

    def run(self, times: np.ndarray) -> OnlineLearning:
        """Integrate to the given times."""
        from scipy.integrate import solve_ivp

        K = self.students
        begin = np.concatenate([self.C[:K, :K].ravel(), self.C[:K, K:].ravel(), self.a[:K]])
        self.resolved(begin)
        if not times[-1]:
            return self.reported(times, begin[None])
        largest, span = 1e6 * (self.error(begin) + 1e-3), (0.0, times[-1])

        def bounded(_: float, state: np.ndarray) -> float:
            return largest - self.error(state)

        bounded.terminal = True  # type: ignore[attr-defined]
        with np.errstate(over="ignore", invalid="ignore"):
            found = solve_ivp(
                self.slope, span, begin, "DOP853", times, events=bounded, rtol=1e-8, atol=1e-11
            )
        if found.status != 0 or not np.isfinite(found.y).all():
            ends = [*found.t, *found.t_events[0]]
            raise NotConverged(
                f"the error diverges after {max(ends, default=0.0):.4g} samples per dimension; lower the "
                "learning rate.",
                {"time": max(ends, default=0.0)},
            )
        self.resolved(found.y[:, -1])
        return self.reported(times, found.y.T)

    def reported(self, times: np.ndarray, rows: np.ndarray) -> OnlineLearning:
        """Overlaps and errors of one state for each time."""
        K, size = self.students, len(self.C)
        return OnlineLearning(
            time=times,
            error=np.array([self.error(row) for row in rows]),
            Q=rows[:, : K * K].reshape(-1, K, K),
            R=rows[:, K * K : -K].reshape(-1, K, size - K),
            T=self.C[K:, K:],
            second_layer=rows[:, -K:],
        )


@dataclass(frozen=True, repr=False)
class Plateau(Summarised):
    """Symmetric state in which no student unit has chosen a teacher unit.

    Attributes
    ----------
    error : float
        Height of the plateau.
    norm, between, overlap : float
        Diagonal and other entries of Q, and every entry of R.
    rate : float
        Growth rate of the fastest departure, per unit of time.
    """

    error: float
    norm: float
    between: float
    overlap: float
    rate: float

    def escape(self, dimension: int) -> float:
        r"""Return the leading time :math:`\ln d/(2\kappa)` of an escape from a random start.

        Runs scatter around a constant plus this time by about 1.1 over the rate.
        """
        return float(np.log(dimension) / (2 * self.rate))


def symmetric_plateau(
    activation: str, units: int, learning_rate: float = 0.0, *, noise: float = 0.0
) -> Plateau:
    r"""Compute height and escape rate of the plateau of a soft committee.

    Teacher and student have the same number of units, orthonormal teacher weights and second layers 1.

    Parameters
    ----------
    activation : {"erf", "relu", "quadratic", "linear"}
        Activations whose means are exact.
    units : int, at least 2
        Units of the student and of the teacher.
    learning_rate : float, at least 0
        0 for gradient flow, with times multiplied by the rate.
    noise : float, at least 0
        Variance of the label noise.

    Returns
    -------
    Plateau
        The symmetric fixed point.

    Raises
    ------
    NotConverged
        If there is no symmetric fixed point at this rate, or it does not repel.

    Notes
    -----
    (online-learning 7): the fixed point of the equations among symmetric overlaps, and the largest
    eigenvalue of their derivative. Backed by ``tests/inference/test_online.py``.

    Examples
    --------
    >>> round(symmetric_plateau("erf", 2).error, 6)
    0.011611
    """
    from scipy.integrate import solve_ivp
    from scipy.optimize import root

    check_integer("units", units, 2)
    if activation not in CLOSED:
        raise InvalidParameter(
            f"activation is {activation!r}; allowed: {', '.join(CLOSED)}, whose means are exact, as a "
            "plateau rests on small differences of them."
        )
    check_real("learning_rate", learning_rate, 0.0)
    check_real("noise", noise, 0.0)
    one, off = np.eye(units), 1 - np.eye(units)
    equations = _Equations(
        activation_of(activation, 2 * units),
        np.block([[one, 0 * one], [0 * one, one]]),
        np.repeat([1.0, -1.0], units),
        units,
        noise,
        learning_rate,
    )

    def state(x: np.ndarray) -> np.ndarray:
        full = x[0] * one + x[1] * off
        return np.concatenate([full.ravel(), np.full(units**2, x[2]), np.ones(units)])

    def slope(x: np.ndarray) -> np.ndarray:
        return equations.slope(0.0, state(x))[[0, 1, units**2]]

    # relax for a while, so that the root is the one to which a start of small overlaps leads
    begin, end = np.array([0.1, 0.0, 0.02]), 60 / (learning_rate or 1.0)
    x = solve_ivp(lambda _, y: slope(y), (0.0, end), begin, "LSODA", rtol=1e-6).y[:, -1]
    found = root(slope, x, options={"xtol": 1e-13})
    residual = float(np.abs(slope(found.x)).max())
    if not residual < 1e-10:
        raise NotConverged(
            f"no symmetric plateau at learning rate {learning_rate:g}: residual {residual:.2g}; allowed: "
            "below 1e-10. Lower the rate.",
            {"residual": residual, "place": x.tolist()},
        )
    x, columns, step = found.x, [], 1e-6
    whole = state(x)
    overlaps = whole.size - units
    for place in range(overlaps):
        change = np.zeros(whole.size)
        change[place] = step
        mirrored = change[: units**2].reshape(units, units)
        change[: units**2] = ((mirrored + mirrored.T) / 2).ravel()
        up, down = equations.slope(0.0, whole + change), equations.slope(0.0, whole - change)
        columns.append((up - down)[:overlaps] / (2 * step))
    rate = float(np.linalg.eigvals(np.array(columns).T).real.max())
    if not rate > 0:
        raise NotConverged(f"the symmetric state does not repel: its largest rate is {rate:.3g}.")
    return Plateau(equations.error(whole), float(x[0]), float(x[1]), float(x[2]), rate)
