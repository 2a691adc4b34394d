"""Properties of a data set that scaling arguments use, as numbers and as sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.scale.exponents.linear_forms import about
from solvable.scale.networks_of_data.layer_description import near_fraction


@dataclass(frozen=True)
class FeatureStrength:
    """Strength of one target's linear part, and of its direction, in the inputs."""

    # lambda_0 = w^T Sigma w / (|w|² tr Sigma)   (scale 17)
    label: str  # name of the class or of the target
    strength: float  # lambda_0 for the direction w that a ridge regression finds
    error: float | None  # standard error of log lambda_0, leaving out fifths of the rows
    alignment: float  # <y, K_0, y> / <y, y> for the linear part of y, with tr K_0 = 1
    explained: float  # share of the target's variance that a linear fit explains on held-out rows

    @property
    def is_seen(self) -> bool:
        """Return True if the target has a linear part whose direction a fit can estimate."""
        return self.explained > 0.02


@dataclass(frozen=True)
class InputSpectrum:
    """Spectrum of the inputs of a data set."""

    # A neuron with the prior w ~ N(0, I / tr Sigma) reaches unit variance along w_* at the cost
    # 1 / (2 lambda_0), with lambda_0 = w_*^T Sigma w_* / (|w_*|² tr Sigma); 1/d for white inputs.

    name: str
    n_rows: int  # number of rows measured
    n_columns: int  # number of columns that vary
    eigenvalues: np.ndarray  # eigenvalues of the covariance over its trace, descending
    features: tuple[FeatureStrength, ...]  # directions of the classes, or of the single target
    # shares of the target's held-out variance explained by polynomials of degree up to 1, 2 and 3
    degrees: tuple[float, ...]
    degree_error: float  # standard error of the share of each degree
    notes: tuple[str, ...] = ()  # sentences about rows or columns that were left out
    # least and largest number of inputs that a model may take: without and with the dropped columns
    n_inputs: tuple[int, int] | None = None

    def check_inputs(self, dimension: int) -> None:
        """Raise an error unless a model with this number of inputs can take the data."""
        least, most = self.n_inputs or (self.n_columns, dimension)
        if least <= dimension <= most:
            return
        held = f"{least}" if least == most else f"{least} to {most}"
        raise InvalidData(
            f"{self.name} has {held} columns and the model takes {dimension} inputs; allowed: equal "
            "numbers. Give the data of the model, or correct input_shape."
        )

    @property
    def effective_dimension(self) -> float:
        """Effective dimension of the inputs, corrected for the noise from having few rows."""
        # d_eff = (tr Sigma)² / tr Sigma², with E tr S² = tr Sigma² + (tr Sigma)² / n   (scale 18)
        second = float(np.sum(self.eigenvalues**2)) - 1 / self.n_rows
        return min(float(self.n_columns), 1 / max(second, 1 / self.n_columns))

    def strength(self, degree: int) -> float:
        """Return the linear feature's eigenvalue; by default the value for equal directions."""
        seen = [x.alignment if degree == 1 else x.strength for x in self.features if x.is_seen]
        return float(np.median(seen)) if seen else 1 / self.effective_dimension

    @property
    def degree(self) -> int:
        """Least degree that explains some of the target's variance; this degree is learned first."""
        shares = np.diff([0.0, *self.degrees])
        seen = [k + 1 for k, share in enumerate(shares) if share > max(0.05, 3 * self.degree_error)]
        return seen[0] if seen else len(self.degrees)

    def linear_exponent(self, dimension: int | None = None, degree: int | None = None) -> Fraction:
        """Return the exponent of the linear feature's eigenvalue: -1 for white inputs."""
        d = self.n_columns if dimension is None else dimension
        if not d >= 2:
            raise InvalidParameter(f"dimension is {d}; allowed: at least 2.")
        # No eigenvalue exceeds the trace, so that the exponent is at most 0.
        return min(Fraction(0), _power(self.strength(degree or self.degree), d))

    def words(self, dimension: int | None = None, degree: int | None = None) -> list[str]:
        """Write the measured properties as sentences, for a model's dimension and a target's degree."""
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
            f"polynomials explain {parts} of the target's variance on held-out rows (standard error "
            f"{100 * self.degree_error:.1f} % of it): degree {self.degree} is learned first"
        )
        return [f"{sentence}." for sentence in (*said, *self.notes)]

    def _direction(self, d: int, degree: int) -> list[str]:
        """Write how strong the target's direction is in the inputs."""
        exponent = f"d^({self.linear_exponent(d, degree)})"
        power = about(f"lambda_0 = {exponent}, where white inputs have d^-1")
        seen = [feature for feature in self.features if feature.is_seen]
        if not seen:
            return [
                "the target has no linear part, so that its direction is unknown; it is taken as one "
                f"of {self.effective_dimension:.3g} equal directions, {power}"
            ]
        held, aligned = self.strength(2), self.strength(1)
        low, high = (f(x.strength for x in seen) for f in (min, max))
        spread = f" ({low:.3g} to {high:.3g} over the classes)" if len(seen) > 1 else ""
        errors = [feature.error for feature in seen if feature.error is not None]
        within = f", to a factor of {math.exp(float(np.median(errors))):.2f}" if errors else ""
        said = [
            f"the direction of the target has a share {held:.3g} of the variance of the inputs{spread}"
            f"{within}, about {_near(held, d)}: a neuron along it costs the inverse",
            f"the kernel value of the linear target is {aligned:.3g}, about {_near(aligned, d)}",
        ]
        if degree == 1:
            return [*said, f"degree 1 uses the kernel value: {power}"]
        return [*said, f"degree {degree} uses the share of the direction: {power}"]

    def to_dict(self, dimension: int | None = None, degree: int | None = None) -> dict[str, Any]:
        """Return the measured properties as JSON."""
        return {
            "name": self.name,
            "rows": self.n_rows,
            "columns": self.n_columns,
            "effective_dimension": self.effective_dimension,
            "linear_exponent": about(str(self.linear_exponent(dimension, degree))),
            "features": [vars(feature) for feature in self.features],
            "explained_by_degree": list(self.degrees),
            "degree": self.degree,
            "notes": list(self.notes),
        }


def _near(value: float, d: int) -> str:
    return about(f"d^({_power(value, d)})")


def _power(value: float, d: int) -> Fraction:
    """Write a number as a power of d with a simple fraction as exponent."""
    return near_fraction(math.log(value) / math.log(d))
