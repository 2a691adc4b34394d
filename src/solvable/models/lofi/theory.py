"""Theory of low-degree filtering: what the first filter finds, and from when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter
from solvable.spectra.label_emergence import emergence_ratio
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import label_weighted_spectrum


@dataclass(frozen=True)
class FilterPrediction:
    r"""Prediction for a filter of raw Gaussian inputs at one sample size or (leading axis) several.

    Attributes
    ----------
    samples : ndarray of shape () or (m,)
        :math:`n`.
    bulk_edges : ndarray of shape (2,) or (m, 2)
        Lower and upper edge.
    eigenvalues : ndarray of shape (k,) or (m, k)
        Place of each direction at its end; near the edge for one inside.
    opposite_eigenvalues : ndarray of shape (k,) or (m, k)
        Place at the other end, where most directions leave nothing but the edge.
    squared_overlap : ndarray of shape (k,) or (m, k)
        Of the eigenvector of each direction, rounding included.
    recovered : ndarray of bool, shape (k,) or (m, k)
        Whether a direction is out of the bulk in the limit of many dimensions.
    subspace_overlap : ndarray of shape () or (m,)
        Mean over the directions of their squared projection on the k kept eigenvectors.
    emergence_samples : ndarray of shape (k,)
        :math:`\alpha_cd`: from here on the direction stays out of the bulk.
    weak_recovery_samples : ndarray of shape (k,)
        :math:`\alpha_{\rm opt}d`, with the best map of the label in place of this one.
    """

    samples: np.ndarray
    bulk_edges: np.ndarray
    eigenvalues: np.ndarray
    opposite_eigenvalues: np.ndarray
    squared_overlap: np.ndarray
    recovered: np.ndarray
    subspace_overlap: np.ndarray
    emergence_samples: np.ndarray
    weak_recovery_samples: np.ndarray


def with_other_vectors(overlap: np.ndarray, dimension: int) -> np.ndarray:
    """Overlap of each direction (last axis) with the span of the eigenvectors of all of them."""
    # What c_i^2 leaves is spread over the other d - 1 eigenvectors; of the kept ones each belongs to
    # its own direction by c_j^2.
    rest = 1 - overlap
    others = rest.sum(axis=-1, keepdims=True) - rest
    return np.asarray(overlap + rest * others / (dimension - 1))


def predict_filter(
    law: LabelLaw, *, dimension: int, samples: float | np.ndarray, rounding: bool = True
) -> FilterPrediction:
    r"""Eigenvalues, overlaps and emergence of the filter :math:`\frac1n\sum T_\mu x_\mu x_\mu^\top`.

    .. math::
        \alpha_c:\ \alpha E\Big[\frac{T(s_i^2-1)}{\bar\lambda-T}\Big]=1,\qquad
        \alpha_{\rm opt}=1/E\big[(E[s_i^2\mid T]-1)^2\big],

    for balanced labels :math:`\pm1`: :math:`\alpha_c\Delta^2=1+1/\bar\lambda^2` against
    :math:`\alpha_{\rm opt}\Delta^2=1`.

    Notes
    -----
    A millisecond per sample size, 0.1 s for the thresholds. Lu and Li, arXiv:1702.06435; Mondelli and
    Montanari, arXiv:1708.05932; finite size derived. Backed by ``tests/models/lofi/test_theory.py`` and
    ``tests/models/lofi/test_note_theory.py`` (simulations).
    """
    sizes = np.atleast_1d(np.asarray(samples, dtype=np.float64))
    if sizes.ndim != 1 or not (np.isfinite(sizes).all() and (sizes > 0).all()):
        raise InvalidParameter(f"samples is {samples}; allowed: numbers above 0, () or (m,).")
    rounded_at = dimension if rounding else None
    spectra = [
        label_weighted_spectrum(law, ratio=float(n) / dimension, dimension=rounded_at)
        for n in sizes
    ]
    overlap = np.array([spectrum.squared_overlap for spectrum in spectra])
    opposite = [
        np.where(spectrum.at_upper_end, spectrum.lower.eigenvalues, spectrum.upper.eigenvalues)
        for spectrum in spectra
    ]
    kept = with_other_vectors(overlap, dimension)
    row = 0 if np.ndim(samples) == 0 else slice(None)
    return FilterPrediction(
        samples=sizes[row],
        bulk_edges=np.array([spectrum.bulk_edges for spectrum in spectra])[row],
        eigenvalues=np.array([spectrum.eigenvalues for spectrum in spectra])[row],
        opposite_eigenvalues=np.array(opposite)[row],
        squared_overlap=overlap[row],
        recovered=np.array([spectrum.recovered for spectrum in spectra])[row],
        subspace_overlap=kept.mean(axis=1)[row],
        # alpha_c: alpha E[T (s_i^2 - 1) / (lambda_bar - T)] = 1
        emergence_samples=emergence_ratio(law, dimension=rounded_at) * dimension,
        weak_recovery_samples=law.weak_recovery_ratio * dimension,
    )
