"""What the theory of scaling has to know of a data set, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.fitting.power_tail import TailFit
from solvable.scale.exponents.linear_forms import about
from solvable.scale.networks_of_data.layer_description import near_fraction


@dataclass(frozen=True)
class FeatureStrength:
    """How strong the linear part of one target is in the inputs."""

    label: str  # class, or the name of the target
    strength: float  # w^T Sigma w / (|w|² tr Sigma) of the ridge's direction w: lambda_0
    error: float | None  # of its logarithm, by leaving out fifths of the rows
    alignment: float  # <y, K_0, y> / <y, y> of the linear part, tr K_0 = 1
    explained: float  # share of the target's variance that is linear, rows left out

    @property
    def is_seen(self) -> bool:
        """Whether the target has a linear part whose direction a fit can tell."""
        return self.explained > 0.02


@dataclass(frozen=True)
class InputSpectrum:
    """Spectrum of a data set's inputs as the theory of scaling needs it."""

    # A neuron with the prior w ~ N(0, I / tr Sigma) reaches the unit feature w_* . x at the cost 1 / (2
    # lambda_0), lambda_0 = w_*^T Sigma w_* / (|w_*|² tr Sigma), which is 1/d for white inputs.

    name: str
    n_rows: int  # measured
    n_columns: int  # that vary
    eigenvalues: np.ndarray  # of the covariance over its trace, falling
    features: tuple[FeatureStrength, ...]  # one for each class, or one
    # share of the target's variance, on rows left out, explained to degree 1, 2 and 3
    degrees: tuple[float, ...]
    degree_error: float  # standard error of these shares
    tail: TailFit | None
    reason: str  # why there is no power law
    notes: tuple[str, ...] = ()  # what was left out
    # least and most inputs of a model of these data: all columns, without and with those dropped in
    # reading
    n_inputs: tuple[int, int] | None = None

    def check_inputs(self, dimension: int) -> None:
        """Raise unless a model with this number of inputs can take the data."""
        least, most = self.n_inputs or (self.n_columns, dimension)
        if least <= dimension <= most:
            return
        held = f"{least}" if least == most else f"{least} to {most}"
        raise InvalidData(
            f"{self.name} has {held} columns and the model takes {dimension} inputs; allowed: data "
            "and a model with the same number. Give the data that the model is for, or correct "
            "input_shape."
        )

    @property
    def effective_dimension(self) -> float:
        """Number of equal directions that would spread as much, free of the noise of few rows."""
        # d_eff = (tr S)² / tr S², where E tr S² = tr Sigma² + (tr Sigma)² / n
        second = float(np.sum(self.eigenvalues**2)) - 1 / self.n_rows
        return min(float(self.n_columns), 1 / max(second, 1 / self.n_columns))

    def strength(self, degree: int) -> float:
        """Eigenvalue of the linear feature for a target of a degree; of equal directions if unseen."""
        seen = [x.alignment if degree == 1 else x.strength for x in self.features if x.is_seen]
        return float(np.median(seen)) if seen else 1 / self.effective_dimension

    @property
    def decay(self) -> float | None:
        """Exponent a of eigenvalues ~ k^-a; None where no power law is believed."""
        # density ~ lambda^-alpha of lambda_k ~ k^-a: alpha = 1 + 1 / a
        if self.reason or self.tail is None:
            return None
        return 1 / (self.tail.exponent - 1)

    @property
    def degree(self) -> int:
        """Least degree that explains a share of the target: what is learned first."""
        shares = np.diff([0.0, *self.degrees])
        seen = [k + 1 for k, share in enumerate(shares) if share > max(0.05, 3 * self.degree_error)]
        return seen[0] if seen else len(self.degrees)

    def linear_exponent(self, dimension: int | None = None, degree: int | None = None) -> Fraction:
        """Exponent of d of the linear feature's eigenvalue: -1 for white inputs."""
        d = self.n_columns if dimension is None else dimension
        if not d >= 2:
            raise InvalidParameter(f"dimension is {d}; allowed: at least 2.")
        # A direction stronger than the whole trace does not exist: the exponent is at most 0.
        return min(Fraction(0), _power(self.strength(degree or self.degree), d))

    def words(self, dimension: int | None = None, degree: int | None = None) -> list[str]:
        """What was measured, as sentences, for a model's dimension and a target's degree."""
        d = self.n_columns if dimension is None else dimension
        said = [
            f"{self.name}: {self.n_rows:,} rows, {self.n_columns} columns that vary, effective "
            f"dimension {self.effective_dimension:.3g}"
        ]
        said += self._direction(d, degree or self.degree)
        parts = ", ".join(
            f"{100 * share:.0f} % to degree {k + 1}" for k, share in enumerate(self.degrees)
        )
        said.append(
            f"polynomials explain {parts} of the target's variance on rows left out (standard error "
            f"{100 * self.degree_error:.1f} %): what is learned first has degree {self.degree}"
        )
        if self.decay is None:
            said.append(f"no power law of the spectrum: {self.reason}")
        else:
            assert self.tail is not None
            low, high = (1 / (max(alpha, 1.001) - 1) for alpha in reversed(self.tail.interval))
            said.append(
                f"eigenvalues fall as k^-{self.decay:.2f} ({low:.2f} to {high:.2f}), which passes "
                f"its test (p = {self.tail.p_value:.2f})"
            )
        return [f"{sentence}." for sentence in (*said, *self.notes)]

    def _direction(self, d: int, degree: int) -> list[str]:
        """The strength of the target's direction, in words."""
        exponent = f"d^({self.linear_exponent(d, degree)})"
        power = about(f"lambda_0 = {exponent}, where white inputs have d^-1")
        seen = [feature for feature in self.features if feature.is_seen]
        if not seen:
            return [
                "the target has no linear part that would tell its direction: taken is one of "
                f"{self.effective_dimension:.3g} equal ones, {power}"
            ]
        held, aligned = self.strength(2), self.strength(1)
        low, high = (f(x.strength for x in seen) for f in (min, max))
        spread = f" ({low:.3g} to {high:.3g} over the classes)" if len(seen) > 1 else ""
        errors = [feature.error for feature in seen if feature.error is not None]
        within = f", to a factor of {math.exp(float(np.median(errors))):.2f}" if errors else ""
        said = [
            f"the direction of the target holds {held:.3g} of the variance of the inputs{spread}"
            f"{within}, about {_near(held, d)}: a neuron along it pays the inverse",
            f"the kernel value of the linear target is {aligned:.3g}, about {_near(aligned, d)}",
        ]
        if degree == 1:
            return [*said, f"at degree 1 the kernel value counts: {power}"]
        return [*said, f"at degree {degree} the direction has to be paid for: {power}"]

    def to_dict(self, dimension: int | None = None, degree: int | None = None) -> dict[str, Any]:
        """What was measured, as JSON."""
        return {
            "name": self.name,
            "rows": self.n_rows,
            "columns": self.n_columns,
            "effective_dimension": self.effective_dimension,
            "linear_exponent": about(str(self.linear_exponent(dimension, degree))),
            "features": [vars(feature) for feature in self.features],
            "explained_by_degree": list(self.degrees),
            "degree": self.degree,
            "decay": self.decay,
            "no_power_law": self.reason or None,
            "notes": list(self.notes),
        }


def _near(value: float, d: int) -> str:
    return about(f"d^({_power(value, d)})")


def _power(value: float, d: int) -> Fraction:
    """Exponent of d of a number, as a simple fraction."""
    return near_fraction(math.log(value) / math.log(d))
