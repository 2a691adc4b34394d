"""Edges and outliers of the label-weighted second moment of Gaussian inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter, NotConverged
from solvable.spectra._spectrum_end import Side, Spikes
from solvable.spectra.edge_levels import edge_levels
from solvable.spectra.edges import upper_edge
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.roots import bracketed_root


def bulk_function(law: LabelLaw, parameter: float | np.ndarray, ratio: float) -> np.ndarray:
    """Position psi in the spectrum for a parameter lambda (arXiv:1702.06435)."""
    check_positive(ratio=ratio)
    at = _checked(law, parameter)
    # psi(lambda) = lambda (1 / alpha + E[T / (lambda - T)])   (spectra 25)
    share = (law.probabilities * law.weights / (at[..., None] - law.weights)).sum(axis=-1)
    return np.asarray(at * (1 / ratio + share))


def spike_function(law: LabelLaw, parameter: float | np.ndarray) -> np.ndarray:
    """Position phi_i of a direction i; the outlier is where phi_i equals psi."""
    at = _checked(law, parameter)
    # phi_i(lambda) = lambda E[T s_i² / (lambda - T)]   (spectra 25)
    share = law.probabilities * law.weights / (at[..., None] - law.weights)
    return np.asarray(at[..., None] * (share @ law.second_moments))


def _checked(law: LabelLaw, parameter: float | np.ndarray) -> np.ndarray:
    at = np.asarray(parameter, dtype=np.float64)
    bound = max(0.0, float(law.weights[-1]))
    if not (at > bound).all():
        raise InvalidParameter(f"parameter is {parameter}; allowed: above {bound:.6g}.")
    return at


@dataclass(frozen=True)
class SpectrumEnd:
    """One end of the spectrum; at the lower end, parameters belong to the weights -T."""

    edge: float  # edge of the bulk
    critical_parameter: float  # parameter lambda of the edge; 0 if lack of rank ends the bulk at 0
    parameters: np.ndarray  # parameter lambda of each outlier; NaN without an outlier, shape (k,)
    # position of the outlier, or the edge; for one direction at finite dimension, mean largest eigenvalue
    eigenvalues: np.ndarray
    following: np.ndarray  # edge; at finite dimension the mean of the next eigenvalue
    # squared overlap of the eigenvector with the direction, rounded at finite dimension
    squared_overlap: np.ndarray
    sharp_squared_overlap: np.ndarray  # limit of many dimensions; 0 without an outlier

    @property
    def outlying(self) -> np.ndarray:
        """Mask of the directions with an outlier at this end, in the limit of many dimensions."""
        return self.sharp_squared_overlap > 0


@dataclass(frozen=True)
class LabelWeightedSpectrum:
    """Both ends of the spectrum of a label-weighted second moment."""

    upper: SpectrumEnd
    lower: SpectrumEnd

    @property
    def bulk_edges(self) -> tuple[float, float]:
        """Lower and upper edge."""
        return self.lower.edge, self.upper.edge

    @property
    def at_upper_end(self) -> np.ndarray:
        """End at which each direction is an outlier or would first become one, shape (k,)."""
        sharp = self.upper.sharp_squared_overlap - self.lower.sharp_squared_overlap
        rounded = self.upper.squared_overlap - self.lower.squared_overlap
        return np.asarray(np.where(sharp != 0, sharp > 0, rounded >= 0))

    @property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalue of each direction at its end, shape (k,)."""
        return np.where(self.at_upper_end, self.upper.eigenvalues, self.lower.eigenvalues)

    @property
    def squared_overlap(self) -> np.ndarray:
        """Squared overlap of each direction at its end, shape (k,)."""
        return np.where(self.at_upper_end, self.upper.squared_overlap, self.lower.squared_overlap)

    @property
    def recovered(self) -> np.ndarray:
        """Mask of the directions with an outlier at either end, shape (k,)."""
        return self.upper.outlying | self.lower.outlying


def label_weighted_spectrum(
    law: LabelLaw, *, ratio: float, dimension: int | None = None
) -> LabelWeightedSpectrum:
    """Compute edges, outliers and overlaps of (1/n) sum T(y) x x^T, x ~ N(0, I_d), at n/d = ratio."""
    # The upper edge is the minimum of psi (bulk_function). Direction i is an outlier if phi_i > psi
    # there (spike_function), at psi(lambda) where both are equal, with squared overlap psi' / (psi'
    # - phi_i')   (spectra 25; arXiv:1702.06435). The lower end is the upper end of -T. Rounding at
    # finite dimension uses critical_profile.
    check_positive(ratio=ratio)
    if dimension is not None:
        if dimension <= law.n_directions:
            raise InvalidParameter(
                f"dimension is {dimension}; allowed: above the {law.n_directions} directions."
            )
        law = law.clipped(ratio * dimension)
    else:
        law.check_bounded()
    upper = spectrum_end(law, ratio, dimension)
    lower = spectrum_end(law.mirrored(), ratio, dimension)
    return LabelWeightedSpectrum(
        upper,
        SpectrumEnd(
            -lower.edge,
            lower.critical_parameter,
            lower.parameters,
            -lower.eigenvalues,
            -lower.following,
            lower.squared_overlap,
            lower.sharp_squared_overlap,
        ),
    )


def signed_parameters(spectrum: LabelWeightedSpectrum) -> np.ndarray:
    """Parameter of each direction's outlier at its end, shape (k,); without an outlier, of the edge."""
    up, low = spectrum.upper, spectrum.lower
    upper = np.where(np.isfinite(up.parameters), up.parameters, up.critical_parameter)
    lower = np.where(np.isfinite(low.parameters), low.parameters, low.critical_parameter)
    # At the lower end, parameters belong to the weights -T.
    return np.asarray(np.where(spectrum.at_upper_end, upper, -lower))


def critical_parameter(law: LabelLaw, ratio: float) -> tuple[float, float]:
    """Upper edge and its parameter lambda, which is 0 if the bulk ends at 0."""
    # lambda solves 1/alpha = E[T² / (lambda - T)²]
    edge, _, point = upper_edge(law.weights, ratio, law.probabilities)
    return edge, 0.0 if np.isinf(point) else 1 / point


def excess(law: LabelLaw, ratio: float, parameter: float) -> np.ndarray:
    """Relative distance of each direction beyond the bulk, shape (k,); above 0 for outliers."""
    # (phi_i - psi) alpha / lambda = alpha E[T (s_i² - 1) / (lambda - T)] - 1
    share = law.probabilities * law.weights / (parameter - law.weights)
    return np.asarray(ratio * (share @ (law.second_moments - 1)) - 1)


def spectrum_end(
    law: LabelLaw, ratio: float, dimension: int | None, *, rounded: bool = True
) -> SpectrumEnd:
    """Compute the upper end alone; overlaps that are not rounded take a third of the time."""
    if dimension is not None:
        # The other coordinates cause the noise along a direction.
        ratio *= dimension / (dimension - law.n_directions)
        dimension -= law.n_directions
    edge, scale, point = upper_edge(law.weights, ratio, law.probabilities)
    critical = 0.0 if np.isinf(point) else 1 / point
    k = law.n_directions
    parameters = np.full(k, np.nan)
    places, overlaps = np.full(k, edge), np.zeros(k)
    beyond = excess(law, ratio, critical) if critical else np.full(k, -1.0)
    for i in np.flatnonzero(beyond > 0):
        at = _meeting(law, ratio, critical, int(i))
        chance = law.probabilities * (law.weights / (at - law.weights)) ** 2
        slope = max(1 / ratio - float(chance.sum()), 0.0)
        parameters[i] = at
        places[i] = bulk_function(law, at, ratio)
        overlaps[i] = slope / (slope + float(chance @ law.second_moments[:, i]))
    if dimension is None or not critical:
        return SpectrumEnd(edge, critical, parameters, places, np.full(k, edge), overlaps, overlaps)
    unit = scale * dimension ** (-2 / 3)
    # Above the threshold psi(lambda*) = edge + kappa D^(-2/3) w². Below, psi is a parabola and
    # phi_i - psi is linear: w = D^(1/3) (phi_i - psi) / -phi_i' sqrt(psi'' / (2 kappa))
    # (spectra 27).
    share = law.probabilities * (law.weights / (critical - law.weights)) ** 2
    curvature = 2 * float(share @ (1 / (critical - law.weights)))
    depth = beyond * critical / ratio / (share @ law.second_moments)
    w = np.where(beyond > 0, np.sqrt(np.maximum(places - edge, 0) / unit), 0.0)
    w = np.where(beyond > 0, w, depth * np.sqrt(curvature / (2 * unit)))
    first, second = edge_levels(w)
    means = _rounded(law, ratio, dimension) if rounded else overlaps
    return SpectrumEnd(
        edge, critical, parameters, edge + unit * first, edge + unit * second, means, overlaps
    )


def _meeting(law: LabelLaw, ratio: float, critical: float, direction: int) -> float:
    """Parameter at which psi equals a direction's phi; phi - psi is monotone beyond the edge."""

    def below(log_ratio: float) -> float:
        return float(excess(law, ratio, critical * np.exp(log_ratio))[direction])

    high, at_zero = 1.0, below(0.0)
    for _ in range(10):
        at_high = below(high)
        if at_high < 0:
            meeting = bracketed_root(below, 0.0, high, ends=(at_zero, at_high))
            return float(critical * np.exp(meeting))
        high *= 2
    raise NotConverged(
        f"no outlier was found between {critical:.3g} and {critical * np.exp(high / 2):.3g}: check "
        "the label law for extreme values.",
        {"critical": critical},
    )


def _rounded(law: LabelLaw, ratio: float, dimension: int) -> np.ndarray:
    """Mean overlaps; the transition is rounded at a finite dimension."""
    side = Side(law.weights, law.probabilities, np.zeros(1), 0.0, ratio * dimension, dimension)
    couplings = law.weights[:, None] ** 2 * law.second_moments
    found = side.spikes(Spikes(law.strengths, couplings, np.zeros(law.n_directions)))
    return side.rounded(found)
