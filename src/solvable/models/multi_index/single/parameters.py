"""Parameters of the system `single-index`."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from solvable.errors import InvalidParameter
from solvable.frame.parameters import Parameters, Size
from solvable.inference.priors import GaussBernoulli, Gaussian, Prior, Rademacher
from solvable.links import make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.message_passing.moments import ConditionalMoments
from solvable.models.multi_index.limits import SAMPLES_IN_MEMORY
from solvable.models.multi_index.overlaps import mapped_labels

PRIORS: dict[str, Prior] = {
    "gaussian": Gaussian(),
    "rademacher": Rademacher(0.5),
    "sparse": GaussBernoulli(0.2, variance=5.0),
}
"""Priors of second moment 1 and mean 0."""

Estimator = Literal["optimal", "lamp", "tanh", "square", "identity", "amp"]


class SingleIndexParameters(Parameters):
    """Parameters of a single-index model and of the estimator of its direction."""

    added = frozenset({"prior"})

    dimension: int = Field(400, ge=10, le=20_000)
    """Number d of input coordinates."""
    link: str = "abs"
    """Link, by name (abs, he2, he4, cosmix, relu, tanh, ...) or a formula in z."""
    noise: float = Field(0.1, ge=0, le=1e6)
    """Variance Delta of the label noise."""
    sample_ratio: float = Field(1.5, gt=0, le=1e5)
    """Number of samples per input coordinate, n/d."""
    estimator: Estimator = "optimal"
    """Estimator of the direction: leading eigenvector of the second moment weighted by the best label map
    (optimal), or by tanh, square (cut at 9) or identity of standardised labels; lamp, linearised
    message passing; amp, Bayes message passing."""
    standardised: bool = True
    """Shift and scale the link to mean 0 and variance 1."""
    prior: Literal["gaussian", "rademacher", "sparse"] = "gaussian"
    """Law of the direction's entries: Gaussian, signs, or 0 except for one in five; used by amp and the
    information-theoretic limit."""

    samples = Size("sample_ratio", "dimension", least=4)
    limits = (SAMPLES_IN_MEMORY,)

    @model_validator(mode="after")
    def _check(self) -> SingleIndexParameters:
        if self.prior == "sparse" and self.dimension < 100:
            raise ValueError(
                f"dimension is {self.dimension}; allowed: at least 100 for a sparse prior"
            )
        refused = _without_information(self.channel, self.estimator)
        if refused:
            raise ValueError(refused)
        return self

    @property
    def channel(self) -> AdditiveChannel:
        """Channel from the direction's coordinate z to the label."""
        return _channel(self.link, self.noise, self.standardised)

    @property
    def entries(self) -> Prior:
        """Law of the direction's entries times sqrt(d)."""
        return PRIORS[self.prior]

    @property
    def moments(self) -> ConditionalMoments:
        """Moments of z given the label."""
        return self.channel.moments

    @property
    def linear(self) -> bool:
        """Return True if the estimator uses first moments, since labels carry the direction's sign."""
        return self.estimator in ("optimal", "amp") and carries_sign(self.channel)


@lru_cache(maxsize=64)
def _channel(link: str, noise: float, standardised: bool) -> AdditiveChannel:
    """Return the channel with these parameters, cached with the channel's conditional moments."""
    return AdditiveChannel((make_link(link, standardised=standardised),), (1.0,), noise)


@lru_cache(maxsize=64)
def carries_sign(channel: AdditiveChannel) -> bool:
    """Return True if m(y) = E[z | y] is not 0."""
    return bool(channel.links[0].parity != "even" and channel.moments.linear_information[0] > 1e-15)


@lru_cache(maxsize=256)
def _without_information(channel: AdditiveChannel, estimator: Estimator) -> str:
    """Explain why an estimator finds nothing from any number of samples; empty if it may succeed."""
    link = channel.links[0]
    quadratic = bool(np.isfinite(channel.moments.weak_recovery_ratio[0]))
    if estimator in ("optimal", "amp"):
        if quadratic or carries_sign(channel):
            return ""
        return (
            f"the link {link.name!r} has E[z | y] = 0 and E[z² - 1 | y] = 0 (generative exponent above "
            "2), so no first-order method finds the direction at a fixed n/d; allowed: links where one "
            "of the two is not 0"
        )
    if not quadratic:
        other = ", or estimator=optimal, which is linear here" if carries_sign(channel) else ""
        return (
            f"labels of the link {link.name!r} carry no second-order information (E[z² | y] = 1), which "
            f"the estimator {estimator} needs; allowed: another link{other}"
        )
    if estimator == "lamp":
        return ""
    try:
        T = mapped_labels(channel.moments, estimator)
    except InvalidParameter as error:
        return str(error)
    if np.abs(T).max() <= 1e-9:
        return (
            f"the label map {estimator} maps all labels of the link {link.name!r} to one value; "
            "allowed: another estimator, or noise above 0"
        )
    return ""
