"""Theory of online gradient descent on independent features: escape times, loss, captured shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter
from solvable.models.multi_index.emergence.link import EvenLink, even_link


@dataclass(frozen=True)
class SgdExponents:
    """Exponents of the loss for infinitely many features with amplitudes p^-beta."""

    time: float  # exponent of the loss in time, which is learning rate times steps
    width: float  # exponent of the loss in the number of students, at the end of training
    compute: float  # exponent of the loss in students times steps, at the best width
    samples: float  # exponent of the loss in samples, with a learning rate ~ the weakest wanted amplitude


def sgd_exponents(decay: float) -> SgdExponents:
    r"""Compute scaling exponents of online gradient descent on features with decaying amplitudes.

    Feature :math:`p` emerges at a time :math:`\propto 1/a_p\propto p^\beta`. If the first :math:`P_*`
    features have emerged, the loss is :math:`\propto\sum_{p>P_*}a_p^2\propto P_*^{1-2\beta}`.

    Parameters
    ----------
    decay : float
        Exponent :math:`\beta` of the amplitudes, above 1/2.

    Returns
    -------
    SgdExponents
        Exponents of the loss in time, width, compute and samples.

    Notes
    -----
    arXiv:2504.19983 [ren2025emergence]_; equation 32 of ``docs/derivations/multi-index.md``. Learning
    :math:`P_*` features with a learning rate :math:`\propto a_{P_*}` takes :math:`P_*^{2\beta}`
    samples.

    References
    ----------
    .. [ren2025emergence] Ren, Nichani, Wu, Lee, arXiv:2504.19983.

    Examples
    --------
    >>> round(sgd_exponents(0.8).compute, 3)
    -0.333
    """
    if not decay > 0.5:
        raise InvalidParameter(
            f"decay is {decay:g}; allowed: above 0.5, since at smaller decays the loss of infinitely "
            "many features has no power law."
        )
    # In time t, P* ~ t^(1/beta) features are learned. The other features leave a loss ~ P*^(1 - 2 beta).
    # (multi-index 32)
    tail = 1 - 2 * decay
    # The best width equals the number of features learned in time t. A learning rate ~ a_{P*} takes
    # t P*^beta samples.
    return SgdExponents(tail / decay, tail, tail / (1 + decay), tail / (2 * decay))


@dataclass(frozen=True)
class SgdEmergence:
    """Time courses of independent features averaged over starts, and escape times from each start."""

    times: np.ndarray  # times: learning rate times steps, (T,)
    loss: np.ndarray  # half the mean squared distance to the teacher, (T,)
    captured: np.ndarray  # captured share of each feature, (T, P)
    squared_overlap: np.ndarray  # squared overlap of each feature with its student, (T, P)
    diffusion: np.ndarray  # variance that gradient noise causes in an overlap, (T,)
    escape_times: np.ndarray  # escape times, (starts, P); infinite if less than half was captured


def draw_overlaps(
    dimension: int, features: int, width: int, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw squared overlaps of random students with the features, shape (draws, m, P)."""
    squares = rng.standard_normal((draws, width, features)) ** 2
    norms = squares.sum(axis=2, keepdims=True)
    if dimension > features:
        norms += rng.chisquare(dimension - features, norms.shape)
    return np.asarray(squares / norms)


def match_students(overlaps: np.ndarray, strengths: np.ndarray, link: EvenLink) -> np.ndarray:
    """Return each feature's squared overlap with the student that learns it; 0 if no student is left."""
    # A pair of student and feature escapes at the rate a_p s K'(s) / y   (multi-index 30). The fastest
    # pair is matched, then its student and feature are removed, and so on. All pairs that are fastest
    # for both their student and their feature can be matched at once.
    draws, width, features = overlaps.shape
    rates = strengths * link.pull(overlaps) / overlaps
    starts = np.zeros((draws, features))
    for _ in range(min(width, features)):
        choice, best = rates.argmax(axis=2), rates.argmax(axis=1)
        agreed = np.take_along_axis(choice, best, axis=1) == np.arange(features)
        agreed &= np.take_along_axis(rates, best[:, None, :], axis=1)[:, 0] >= 0
        if not agreed.any():
            break
        draw, feature = np.nonzero(agreed)
        student = best[draw, feature]
        starts[draw, feature] = overlaps[draw, student, feature]
        rates[draw, student, :] = -1.0
        rates[draw, :, feature] = -1.0
    return starts


def sgd_emergence(
    strengths: np.ndarray,
    starts: np.ndarray,
    horizon: float,
    *,
    link: EvenLink | str = "he4",
    initial_norm: float,
    spare: int = 0,
    dimension: int = 2,
    learning_rate: float = 0.0,
    gradient_noise: float = 0.0,
    label_noise: float = 0.0,
    step: float = 0.01,
) -> SgdEmergence:
    r"""Compute time courses of features that online gradient descent learns independently.

    The teacher is :math:`\sum_pa_p\sigma(\langle w_p,x\rangle)` with orthonormal directions and
    :math:`x\sim\mathcal N(0,I_d)`. The network
    :math:`\sum_j\|v_j\|^2\sigma(\langle v_j,x\rangle/\|v_j\|)` trains both layers on half the squared
    error. Let :math:`K(s)=E\,\sigma(u)\sigma(v)` for normal u, v of correlation :math:`s`. The squared
    overlap :math:`y=s^2` and the squared norm :math:`n` of the student of feature :math:`p` follow

    .. math:: \dot y = 2a_p\,sK'(s)(1-y)-\kappa(dy-1), \qquad \dot n = 4n(a_pK(s)-n)+\kappa(d-1)n,
        \qquad \kappa=\frac\eta B\,(2L+\Delta)\,K'(1).

    For :math:`\sigma=h_k`, without noise, :math:`\dot y=2ka_ps^k(1-s^2)`.

    Parameters
    ----------
    strengths : ndarray, shape (P,)
        Amplitudes :math:`a_p > 0` in descending order.
    starts : ndarray, shape (starts, P)
        Initial squared overlaps of the students; 0 where no student learns a feature.
    horizon : float
        Last time, in units of learning rate times steps.
    link : {"he4", "he6", "cosmix"}
        Link of teacher and students.
    initial_norm : float
        Initial squared norm of a student.
    spare : int
        Number of students that learn no feature and keep a small norm.
    dimension : int
        Dimension :math:`d`, which only matters with gradient noise.
    learning_rate : float
        Learning rate :math:`\eta`; adds the terms of first order in it, which delay each feature. 0 for
        gradient flow.
    gradient_noise : float
        Learning rate divided by batch size, :math:`\eta/B`; 0 for gradient flow.
    label_noise : float
        Variance :math:`\Delta` of the label noise.
    step : float
        Step of the time integration, divided by the current time.

    Returns
    -------
    SgdEmergence
        Time courses and escape times.

    Notes
    -----
    arXiv:2504.19983; equations 28 to 30 and 38 of ``docs/derivations/multi-index.md``. Run time is
    O(starts P log(horizon) / step). At the default step escape times are within 1 % of the exact ones,
    most within 0.1 %. The theory ignores features that share students;
    ``tests/models/multi_index/emergence`` compares it with the flow of all pairs.

    Examples
    --------
    >>> course = sgd_emergence(np.array([1.0, 0.5]), np.full((1, 2), 1e-3), 1e3, initial_norm=0.1)
    >>> (course.escape_times[0] * 8 * np.array([1.0, 0.5]) * 1e-3).round(1)
    array([1., 1.])
    """
    link = even_link(link) if isinstance(link, str) else link
    _check(strengths, starts, horizon, initial_norm)
    a, y = strengths, starts.astype(float)
    n = np.where(starts > 0, initial_norm, 0.0)
    idle = np.full(len(starts), float(initial_norm))
    spent, time = np.zeros(len(starts)), 0.0
    escapes, before = np.full(starts.shape, np.inf), n * link.kernel(y) / a
    rows = [(0.0, *_averages(a, n, y, before, spare, idle), 0.0)]
    while time < horizon:
        # Escape times are spread evenly in log(t), so the step is proportional to the time.
        h = min(step * max(time, 1 / a[0]), horizon - time)
        noise = (
            gradient_noise * link.activity * (2 * _losses(a, n, before, spare, idle) + label_noise)
        )
        kappa = noise[:, None]
        y, n = _advanced(a, y, n, link, h, kappa, dimension, learning_rate)
        idle = _grown(idle, kappa[:, 0] * (dimension - 1), h)
        after = n * link.kernel(y) / a
        crossed = np.isinf(escapes) & (after >= 0.5)
        share = (0.5 - before[crossed]) / (after[crossed] - before[crossed])
        escapes[crossed] = time + h * share
        time, before, spent = time + h, after, spent + h * noise
        rows.append((time, *_averages(a, n, y, after, spare, idle), float(spent.mean())))
    times, loss, captured, overlap, diffusion = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    return SgdEmergence(times, loss, captured, overlap, diffusion, escapes)


def _check(strengths: np.ndarray, starts: np.ndarray, horizon: float, norm: float) -> None:
    if strengths.ndim != 1 or starts.ndim != 2 or starts.shape[1] != strengths.size:
        raise InvalidParameter(
            f"strengths have shape {strengths.shape} and starts {starts.shape}; allowed: (P,) and "
            "(starts, P)."
        )
    if not (strengths > 0).all() or (np.diff(strengths) > 0).any():
        raise InvalidParameter(
            "strengths are not positive and descending; sort them and remove zeros."
        )
    if not ((starts >= 0) & (starts <= 1)).all():
        raise InvalidParameter(
            f"starts range from {starts.min():g} to {starts.max():g}; allowed: squared overlaps, from 0 "
            "to 1."
        )
    if not (horizon > 0 and norm > 0):
        raise InvalidParameter(
            f"horizon is {horizon:g} and initial_norm {norm:g}; allowed: numbers above 0."
        )


def _advanced(
    a: np.ndarray,
    y: np.ndarray,
    n: np.ndarray,
    link: EvenLink,
    h: float,
    kappa: np.ndarray,
    dimension: int,
    rate: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute squared overlaps and norms after a step, which may exceed the relaxation time."""
    slower, faster, loss_of_norm = _finite_steps(a, y, n, link, rate)
    # dy/dt = f = 2 a s K'(s) (1 - y) - kappa (d y - 1)   (multi-index 29). The step y + h phi(h J) f,
    # with J = df/dy and phi(z) = (e^z - 1) / z, is exact for a linear equation.
    pull, speed = link.pull(y), 2 * a * slower
    flow = speed * pull * (1 - y) - kappa * (dimension * y - 1)
    z = h * (speed * (link.pull_slope(y) * (1 - y) - pull) - kappa * dimension)
    z = np.where(np.abs(z) < 1e-8, 1e-8, np.minimum(z, 50.0))
    later = np.clip(y + h * np.expm1(z) / z * flow, 0.0, 1.0)
    # dn/dt = 4 n (a K - n) + kappa (d - 1) n   (multi-index 29). The step is exact for constant overlap.
    growth = 4 * a * link.kernel((y + later) / 2) + kappa * (dimension - 1) - loss_of_norm
    return later, _grown(n, growth, h * faster)


def _finite_steps(
    a: np.ndarray, y: np.ndarray, n: np.ndarray, link: EvenLink, rate: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Effect of steps of the learning rate: factors of both speeds, and a loss of norm."""
    kernel, pull = link.kernel(y), link.pull(y)
    over = pull / np.where(y > 0, y, 1.0)
    # With F = a K'(s) sqrt(1 - y) and e = a K - n, the speed of y gets the factor
    # 1 - eta (2 e + dF/ds sqrt(1 - y) / 2), where K'' = 2 d(sK')/dy - K' / s. The growth of n gets the
    # factor 1 + eta (3 n - a K) and loses eta F²   (multi-index 38).
    bend = a * ((2 * link.pull_slope(y) - over) * (1 - y) - pull)
    slower = 1 - rate * (2 * (a * kernel - n) + bend / 2)
    return slower, 1 + rate * (3 * n - a * kernel), rate * a * a * pull * over * (1 - y)


def _grown(n: np.ndarray, rate: np.ndarray, h: np.ndarray | float) -> np.ndarray:
    """Return the solution of dn/dt = n (rate - 4 n) after a time h."""
    # The solution is n / (e^-x + 4 n h (1 - e^-x) / x) with x = rate h.
    x = np.maximum(rate * h, 1e-12)
    return np.asarray(n / (np.exp(-x) + 4 * n * h * -np.expm1(-x) / x))


def _losses(
    a: np.ndarray, n: np.ndarray, captured: np.ndarray, spare: int, idle: np.ndarray
) -> np.ndarray:
    """Compute half the mean squared distance to the teacher for each start."""
    # 1/2 sum_p (a² - 2 a n K + n²), plus the squared norms of students that learn nothing
    own = a * a * (1 - 2 * captured) + n * n
    return np.asarray(0.5 * own.sum(axis=1) + 0.5 * spare * idle**2)


def _averages(
    a: np.ndarray,
    n: np.ndarray,
    y: np.ndarray,
    captured: np.ndarray,
    spare: int,
    idle: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:
    losses = _losses(a, n, captured, spare, idle)
    return float(losses.mean()), captured.mean(axis=0), y.mean(axis=0)
