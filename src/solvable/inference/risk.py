r"""Minimisers of a convex empirical risk in the limit of many samples and dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.inference.existence import separability_threshold
from solvable.inference.fixed_point import Anderson, fixed_point
from solvable.inference.inputs import (
    Directions,
    GaussianMixture,
    InputCovariance,
    RandomFeatures,
    isotropic,
)
from solvable.inference.losses import CLASSIFIERS, Loss, Penalty
from solvable.inference.outputs import Output
from solvable.inference.priors import Density, Gaussian, Mixture, Prior
from solvable.inference.sample_means import (
    Messages,
    MixtureSamples,
    OutputSamples,
    Samples,
    State,
)
from solvable.inference.summary import Summarised

TOLERANCE = 1e-9
"""Largest change of an unknown by one more step of the iteration."""


@dataclass(frozen=True, repr=False)
class EmpiricalRisk(Summarised):
    """Minimiser of an empirical risk at one or several sample ratios.

    Attributes
    ----------
    sample_ratio : float or ndarray
        Samples per dimension n / d.
    training_loss : float or ndarray
        Mean loss of a training sample, without penalty; NaN for a loss without value.
    error : float or ndarray
        Classification: share of new samples with a wrong sign, against labels without noise or flips.
        Regression: mean squared error of the predicted index, which for inputs of variance 1 / d is the
        mean squared error of a weight.
    label_error : float or ndarray
        The same against labels as they are drawn.
    overlap : float or ndarray
        Squared correlation of prediction and index; the squared cosine of weights and signal for
        independent inputs of equal variance.
    norm : float or ndarray
        Squared norm of the weights per parameter.
    variance : float or ndarray
        Variance q of the prediction; equal to `norm` for independent inputs of variance 1 / d.
    response : float or ndarray
        Response V of a prediction to its message.
    replicon : float or ndarray
        Stability number; the solution is stable below 1.
    intercept : float or ndarray
        Intercept of the predictions; 0 if none is fitted.
    """

    sample_ratio: np.ndarray
    training_loss: np.ndarray
    error: np.ndarray
    label_error: np.ndarray
    overlap: np.ndarray
    norm: np.ndarray
    variance: np.ndarray
    response: np.ndarray
    replicon: np.ndarray
    intercept: np.ndarray


class Learned(NamedTuple):
    """Weights that a penalty gives."""

    state: State
    norm: float
    gain: float  # mean square of the response of a weight to its field


Learn = Callable[[float, float, float], Learned]
"""Weights for the conjugates of overlap, power and response."""


def empirical_risk(
    loss: Loss,
    penalty: Penalty,
    output: Output | GaussianMixture,
    prior: Prior | None = None,
    sample_ratio: float | Sequence[float] | np.ndarray = 1.0,
    *,
    inputs: InputCovariance | RandomFeatures | None = None,
    intercept: bool = False,
) -> EmpiricalRisk:
    r"""Compute loss, error and overlap of the minimiser of a convex empirical risk.

    .. math:: \hat w=\arg\min_w\sum_{i\le n}\ell(y_i,x_i\cdot w)+r(w)

    for n, d to infinity at fixed n / d, inputs of variance 1 / d and labels drawn from the index
    :math:`x\cdot w^\star`.

    Parameters
    ----------
    loss : Loss
        Convex loss of one sample.
    penalty : Penalty
        Penalty on the weights, added to the *sum* of losses.
    output : Output or GaussianMixture
        Law of the labels given the index, or two Gaussian classes.
    prior : Prior, optional
        Law of the entries of the signal; standard Gaussian by default. With an l2 penalty only its
        second moment matters.
    sample_ratio : float or array, above 0
        Samples per dimension.
    inputs : InputCovariance or RandomFeatures, optional
        Law of the inputs; independent entries by default.
    intercept : bool
        Fit an intercept without penalty to a Gaussian mixture.

    Returns
    -------
    EmpiricalRisk
        One entry for each sample ratio.

    Raises
    ------
    InvalidParameter
        If a ratio is not above 0, the loss does not accept the labels, a penalty of strength 0 leaves
        the minimiser undetermined, or a combination is not covered.
    NotConverged
        If the iteration does not settle; the message states the residual.

    Notes
    -----
    Replica-symmetric equations of (empirical-risk 1), which are exact for convex losses (Thrampoulidis et
    al. 2018; Loureiro et al. 2021). The square loss with an l2 penalty needs no iteration. Backed by
    ``tests/inference/test_risk.py`` and ``tests/inference/test_data.py`` (scikit-learn).

    Examples
    --------
    >>> from solvable.inference import Gaussian, Output
    >>> ridge = empirical_risk(
    ...     Loss("square"), Penalty("l2", 0.5), Output("linear", noise=0.5), Gaussian(), 1.5
    ... )
    >>> round(float(ridge.error), 6)
    0.366025
    """
    prior = Gaussian() if prior is None else prior
    ratios = np.asarray(sample_ratio, dtype=np.float64)
    if not (np.isfinite(ratios) & (ratios > 0)).all():
        raise InvalidParameter(f"sample_ratio is {sample_ratio}; allowed: finite numbers above 0.")
    rho, directions = prior.second_moment, None
    if inputs is not None:
        if penalty.l1 or isinstance(output, GaussianMixture):
            raise InvalidParameter(
                "inputs are given with an l1 penalty or with a Gaussian mixture; allowed: inputs with an "
                "output and an l2 penalty, because other errors depend on eigenvectors."
            )
        directions = inputs.directions(rho)
        rho *= inputs.index_variance if isinstance(inputs, InputCovariance) else 1.0
    if intercept and not isinstance(output, GaussianMixture):
        raise InvalidParameter(
            "intercept is true with an output; allowed: with a GaussianMixture, whose classes may differ "
            "in size."
        )
    samples: Samples = (
        MixtureSamples(loss, output, rho, intercept)
        if isinstance(output, GaussianMixture)
        else OutputSamples(loss, output, rho)
    )
    per_parameter = 1 / inputs.ratio if isinstance(inputs, RandomFeatures) else 1.0
    _check_existence(loss, penalty, output, rho, ratios * per_parameter)
    if penalty.l1:
        learn = _separable(penalty, prior)
    else:
        directions = directions or isotropic(rho)
        learn = rotated(penalty.l2, directions)
    rows, start = [], None
    for ratio in np.atleast_1d(ratios).ravel():
        alpha = float(ratio) * per_parameter
        if loss.name == "square" and isinstance(samples, OutputSamples) and directions is not None:
            learned = _ridge(samples, penalty.l2, directions, alpha)
        else:
            learned, start = solved(samples, learn, alpha, penalty, start)
        rows.append(_results(samples, learned, alpha))
    columns = np.array(rows).T.reshape(-1, *ratios.shape)
    return EmpiricalRisk(ratios[()], *(column[()] for column in columns))


def _results(samples: Samples, learned: Learned, alpha: float) -> tuple[float, ...]:
    (m, q, V), norm, gain = learned
    judged = samples.judge(learned.state)
    overlap = m**2 / (samples.rho * q)
    # replicon alpha E[(df/domega)²] E[(deta/db)²]   (empirical-risk 8)
    replicon = alpha * judged.curvature * gain
    results = judged.loss, judged.error, judged.label_error, overlap, norm, q, V, replicon
    return *results, judged.intercept


def rotated(strength: float, directions: Directions) -> Learn:
    """Weights of an l2 penalty, along the eigenvectors of the covariance (empirical-risk 4)."""
    variances, shares, signals = directions

    def learn(m_hat: float, q_hat: float, V_hat: float) -> Learned:
        # V = <O R>, m = m^ <S R>, q = <(q^ O + m^² S) O R²> with R = 1 / (lambda + V^ O)
        R = 1 / (strength + V_hat * variances)
        power = (q_hat * variances + m_hat**2 * signals) * R**2
        state = State(
            m_hat * float(shares @ (signals * R)),
            float(shares @ (power * variances)),
            float(shares @ (variances * R)),
        )
        return Learned(state, float(shares @ power), float(shares @ (variances * R) ** 2))

    return learn


def _separable(penalty: Penalty, prior: Prior) -> Learn:
    """Weights of an l1 penalty or elastic net, for a prior that is a mixture (empirical-risk 7)."""
    from scipy.special import ndtr

    shares, means, variances = _components(prior)

    def learn(m_hat: float, q_hat: float, V_hat: float) -> Learned:
        # field b ~ N(m^ mean, m^² variance + q^) in each component of the prior
        s = np.sqrt(m_hat**2 * variances + q_hat)
        first = second = active = 0.0
        for sign in (1.0, -1.0):
            a = (sign * m_hat * means - penalty.l1) / s
            density = np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi)
            first = first + sign * s * (density + a * ndtr(a))
            second = second + s**2 * ((1 + a**2) * ndtr(a) + a * density)
            active = active + ndtr(a)
        room = V_hat + penalty.l2
        # E[w* eta] by Stein's lemma; the derivative of eta is 1 / room where it is not 0
        m = float(shares @ (means * first + m_hat * variances * active)) / room
        q, on = float(shares @ second) / room**2, float(shares @ active)
        return Learned(State(m, q, on / room), q, on / room**2)

    return learn


def _components(prior: Prior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares, means and variances of the Gaussian components of a prior; atoms have variance 0."""
    if isinstance(prior, Mixture):
        return prior.shares, prior.means, prior.variances
    if isinstance(prior, Density):
        return np.exp(prior._logs), prior._w, np.zeros(prior._w.size)
    raise InvalidParameter(
        f"the prior is a {type(prior).__name__} with an l1 penalty; allowed: Gaussian, GaussBernoulli, "
        "Rademacher, Discrete or Density."
    )


def _ridge(
    samples: OutputSamples, strength: float, directions: Directions, alpha: float
) -> Learned:
    """Solve the square loss with an l2 penalty in closed form, but for one root (empirical-risk 6)."""
    from scipy.optimize import brentq

    variances, shares, _ = directions
    top = float(variances.max())

    def excess(log_V: float) -> float:
        V = np.exp(log_V)
        # V = <O / (lambda + alpha O / (1 + V))>, times (1 + V) / V
        return float(
            shares @ (variances * (1 + V) / V / (strength + alpha * variances / (1 + V)))
        ) - (1 + V)

    low, high = np.log(1e-12 * top / (strength + alpha * top)), np.log(1e14)
    V = float(np.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)))
    square, slope = samples.label_moments
    V_hat = alpha / (1 + V)
    m_hat = slope * V_hat
    learn = rotated(strength, directions)
    m = learn(m_hat, 0.0, V_hat).state.m
    # q = A + q^ B is linear in q, with q^ = alpha (E y² - 2 mu m + q) / (1 + V)²
    A = learn(m_hat, 0.0, V_hat).state.q
    B = learn(0.0, 1.0, V_hat).state.q * alpha / (1 + V) ** 2
    q = (A + B * (square - 2 * slope * m)) / (1 - B)
    q_hat = alpha * (square - 2 * slope * m + q) / (1 + V) ** 2
    return learn(m_hat, q_hat, V_hat)


def _check_existence(
    loss: Loss, penalty: Penalty, output: Output | GaussianMixture, rho: float, alphas: np.ndarray
) -> None:
    """Raise if the minimiser without penalty is not determined."""
    if penalty.l2 or penalty.l1:
        return
    least = 1.0
    if loss.name in CLASSIFIERS:
        if isinstance(output, GaussianMixture):
            raise InvalidParameter(
                "the strength is 0 for a Gaussian mixture; allowed: a penalty above 0."
            )
        least = separability_threshold(output, Gaussian(rho))
    if not (alphas > least).all():
        where = f"above {least:.5g}, where the minimiser exists, or " if np.isfinite(least) else ""
        raise InvalidParameter(
            f"the strength is 0 at {alphas.min():.4g} samples per parameter; allowed: {where}a penalty "
            "above 0."
        )


def solved(
    samples: Messages,
    learn: Learn,
    alpha: float,
    penalty: Penalty,
    start: State | np.ndarray | None,
) -> tuple[Learned, np.ndarray]:
    """Iterate between weights and messages until both agree; return the weights and the conjugates."""
    # unknowns: arsinh(m^ / sqrt(q^)), log q^, log(V^ + lambda_2), because all conjugates scale with a
    # weak penalty, and V^ may be 0

    def weights(x: np.ndarray) -> Learned:
        q_hat = float(np.exp(x[1]))
        V_hat = max(float(np.exp(x[2])) - penalty.l2, 0.0)
        return learn(float(np.sinh(x[0]) * np.sqrt(q_hat)), q_hat, V_hat)

    def conjugates(state: State) -> np.ndarray:
        overlap, power, response = samples.see(state)
        room = penalty.l2 + alpha * max(response, 0.0)
        if not (np.isfinite(overlap) and power > 0 and room > 0):
            raise NotConverged(
                f"the equations of the empirical risk left their domain: E f² = {power:.3g} and "
                f"-E df/domega = {response:.3g}; allowed: above 0. Raise the penalty.",
                {"overlap": overlap, "power": power, "response": response},
            )
        snr = alpha * overlap / np.sqrt(alpha * power)
        return np.array([np.arcsinh(snr), np.log(alpha * power), np.log(room)])

    def step(x: np.ndarray) -> np.ndarray:
        m, q, V = weights(x).state
        # the norm may be very small on the way
        least = 1e-12 * samples.rho
        return conjugates(State(m, max(q, m**2 / samples.rho, least), max(V, 1e-12)))

    if start is None:
        V = 1 / max(penalty.l2 + penalty.l1 + alpha / 2, 1e-3)
        start = State(0.5 * samples.rho, samples.rho, V)
    x, _ = fixed_point(
        step,
        conjugates(start) if isinstance(start, State) else start,
        within=TOLERANCE,
        what="the equations of the empirical risk",
        remedy="Raise the penalty.",
        history=Anderson(cautious=True),
        most=1_000,
    )
    learned = weights(x)
    if learned.state.q < 1e-12 * samples.rho:
        raise InvalidParameter(
            f"the penalty is so strong that the weights are 0 at {alpha:.4g} samples per parameter; "
            "lower its strength."
        )
    return learned, x
