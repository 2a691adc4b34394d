"""Joint distribution of a mapped label and the directions on which the label depends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.structured_spikes import WeightedSample, compress_sample


@dataclass(frozen=True)
class LabelLaw:
    """Distribution of a weight T(y), with conditional second moments of the latent coordinates s."""

    # Several directions must diagonalise E[s s^T | T] for every T at once, which holds for any
    # two-valued label. A continuous label is given by a quadrature; an unbounded label has no edge in the
    # limit, and quantities then depend on the dimension.

    weights: np.ndarray  # values of the weight T, ascending, shape (m,)
    probabilities: np.ndarray  # probabilities above 0, normalised here to sum 1
    second_moments: np.ndarray  # conditional second moments E[s_i² | T], shape (m, k)

    def __post_init__(self) -> None:
        T, chance, moments = (
            np.asarray(array, dtype=np.float64)
            for array in (self.weights, self.probabilities, self.second_moments)
        )
        fits = T.ndim == 1 and chance.shape == T.shape and moments.shape[:1] == T.shape
        if not (fits and T.size and moments.ndim == 2 and moments.shape[1]):
            raise InvalidData(
                f"weights have shape {T.shape}, probabilities {chance.shape} and second_moments "
                f"{moments.shape}; allowed: (m,), (m,) and (m, k) with m, k >= 1."
            )
        finite = all(np.isfinite(array).all() for array in (T, chance, moments))
        if not finite or (chance <= 0).any() or (moments < 0).any():
            raise InvalidData(
                "weights must be finite, probabilities above 0 and second moments at least 0."
            )
        if not T.any():
            raise InvalidData("all weights are zero: the matrix has no spectrum.")
        order = np.argsort(T, kind="stable")
        object.__setattr__(self, "weights", T[order])
        object.__setattr__(self, "probabilities", chance[order] / chance.sum())
        object.__setattr__(self, "second_moments", moments[order])

    @classmethod
    def balanced(cls, *strengths: float) -> LabelLaw:
        r"""Make balanced labels :math:`\pm1` with :math:`E[y\,s_i^2]=\Delta_i`, in [-1, 1]."""
        delta = np.asarray(strengths, dtype=np.float64)
        if not delta.size or not (np.abs(delta) <= 1).all():
            raise InvalidParameter(f"strengths are {strengths}; allowed: numbers in [-1, 1].")
        # E[s_i² | y] = 1 + y Delta_i.
        return cls(np.array([-1.0, 1.0]), np.full(2, 0.5), np.stack([1 - delta, 1 + delta]))

    @classmethod
    def from_draws(cls, weights: np.ndarray, squares: np.ndarray) -> LabelLaw:
        """Make a label law from draws of :math:`T`, shape (m,), and of :math:`s_i^2`, shape (m, k)."""
        T, squared = np.asarray(weights, float), np.asarray(squares, float)
        if T.ndim != 1 or squared.ndim != 2 or len(squared) != len(T) or not T.size:
            raise InvalidData(
                f"weights have shape {T.shape} and squares {squared.shape}; allowed: (m,), (m, k)."
            )
        values, group = np.unique(T, return_inverse=True)
        # Distinct values are kept, unless they are more than the groups of a compressed sample.
        if values.size > 4_000:
            sample = compress_sample(T, squared)
            return cls(sample.weights, sample.probabilities, sample.couplings)
        counts = np.bincount(group)
        sums = [np.bincount(group, column) for column in squared.T]
        return cls(values, counts / T.size, np.stack(sums, axis=1) / counts[:, None])

    @property
    def n_directions(self) -> int:
        """Number k of directions."""
        return int(self.second_moments.shape[1])

    @property
    def mean_weight(self) -> float:
        """Mean weight :math:`E[T]`."""
        return float(self.probabilities @ self.weights)

    @property
    def weight_power(self) -> float:
        r"""Mean squared weight :math:`\tau_2=E[T^2]`."""
        return float(self.probabilities @ self.weights**2)

    @property
    def strengths(self) -> np.ndarray:
        r"""Spike heights :math:`\theta_i=E[T(s_i^2-1)]`, shape (k,)."""
        return np.asarray((self.probabilities * self.weights) @ (self.second_moments - 1))

    @property
    def weak_recovery_ratio(self) -> np.ndarray:
        """Samples per dimension below which no function of T finds each direction, shape (k,)."""
        # alpha_opt = 1 / E[(E[s_i² | T] - 1)²], 1/Delta² for balanced labels   (spectra 26;
        # arXiv:1708.05932, Equation 17).
        power = self.probabilities @ (self.second_moments - 1) ** 2
        # Moments that are 1 by symmetry differ from 1 only by rounding.
        with np.errstate(divide="ignore"):
            return np.asarray(1 / np.where(power > 1e-24, power, 0.0))

    def optimal(self, direction: int = 0) -> LabelLaw:
        """Label law of the label map that finds a direction from the fewest samples."""
        # Luo, Alghamdi and Lu, arXiv:1811.04420: T* = 1 - 1 / E[s_i² | T]   (spectra 26).
        given = self.second_moments[:, direction]
        if not given.all():
            raise InvalidData(
                "a label of positive probability leaves the coordinate no variance, so the best "
                "map is infinite there; bound the map, or merge this label with others."
            )
        return LabelLaw(1 - 1 / given, self.probabilities, self.second_moments)

    def check_bounded(self) -> None:
        """Raise :class:`InvalidParameter` if the weights have an unbounded tail."""
        # A tail is unbounded if clipping (at the value that one in 1e9 exceeds) costs a third.
        largest = float(np.abs(self.weights).max())
        resolved = float(np.abs(self.clipped(1e9).weights).max())
        if resolved < largest / 1.5:
            raise InvalidParameter(
                f"the weights reach {largest:.3g}, but {resolved:.3g} is exceeded by fewer than one "
                "sample in 1e9: they are not bounded, and the spectrum has no edge in the limit of "
                "many dimensions. Pass dimension=..., or a bounded label map such as 'tanh'."
            )

    def mirrored(self) -> LabelLaw:
        """Label law of -T; its spectrum's upper end is the lower end of this law's spectrum."""
        return LabelLaw(-self.weights, self.probabilities, self.second_moments)

    def merged(self, groups: int) -> LabelLaw:
        """Label law with at most this many weights; neighbours are merged, in the tails last."""
        if self.weights.size <= groups:
            return self
        place = np.arcsinh(self.weights / np.sqrt(self.weight_power))
        bins = ((place - place[0]) / (place[-1] - place[0]) * (groups - 1)).astype(int)
        group = np.unique(bins, return_inverse=True)[1]
        chance, total = self.probabilities, np.bincount(group, self.probabilities)
        moments = [np.bincount(group, chance * column) / total for column in self.second_moments.T]
        weights = np.bincount(group, chance * self.weights) / total
        return LabelLaw(weights, total, np.stack(moments, axis=1))

    def clipped(self, n_samples: float) -> LabelLaw:
        """Label law with weights clipped at the value that fewer than one of ``n_samples`` exceeds."""
        sample = WeightedSample(self.weights, self.probabilities, self.second_moments)
        return LabelLaw(sample.clipped(n_samples).weights, self.probabilities, self.second_moments)
