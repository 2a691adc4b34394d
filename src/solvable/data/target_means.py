"""Encode a column of many texts by the mean target of each text, fitted on training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

MOST_CLASSES = 10  # largest number of classes of which each gets a column of shares
PARTS = 5  # each part of the training rows is encoded by the means over the other parts


@dataclass(frozen=True)
class Means:
    """Mean target of each text, shrunken towards that of all rows; shares for classes."""

    name: str
    classes: int  # 0 for numbers
    prior: tuple[float, ...]  # mean over all training rows, one per output
    means: Mapping[str, tuple[float, ...]]  # shrunken mean of each text of the training rows

    @classmethod
    def fit(cls, name: str, column: np.ndarray, y: np.ndarray, classes: int) -> Means | None:
        """Compute the means; None for many classes."""
        return None if classes > MOST_CLASSES else cls(name, classes, (), {}).refit(column, y)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        if self.classes < 3:
            return (f"{self.name}: mean of the target",)
        return tuple(f"{self.name}: share of class {code + 1}" for code in range(self.classes))

    @property
    def sentence(self) -> str:
        """Description of the encoding."""
        what = "mean of the target" if self.classes < 3 else "share of each class"
        return (
            f"column {self.name!r}: also replaced by the {what} for each text in the training rows"
        )

    def refit(self, column: np.ndarray, y: np.ndarray) -> Means:
        """Compute the means of the training rows again."""
        # Empirical Bayes: the mean of a text with n_i rows gets the weight n_i / (n_i + s² / t²), with
        # the variance s² inside texts and t² between their means, from an analysis of variance.
        targets = self._targets(y)
        prior = targets.mean(axis=0)
        texts, codes = np.unique(
            ["" if one is None else one for one in column], return_inverse=True
        )
        counts = np.bincount(codes).astype(float)
        sums = np.stack([np.bincount(codes, one) for one in targets.T], axis=1)
        means = sums / counts[:, None]
        n, groups = len(column), len(texts)
        # The variances of all classes are added, so that shrunken shares add up to 1.
        inside = np.sum((targets - means[codes]) ** 2) / max(n - groups, 1)
        between = np.sum(counts[:, None] * (means - prior) ** 2) / max(groups - 1, 1)
        # E[between] = s² + t² n_0 with n_0 = (n - sum_i n_i² / n) / (groups - 1)
        per_text = (n - np.sum(counts**2) / n) / max(groups - 1, 1)
        spread = max(between - inside, 0.0) / max(per_text, 1e-12)
        weight = counts / (counts + inside / spread) if spread > 0 else np.zeros(groups)
        shrunken = prior + weight[:, None] * (means - prior)
        kept = {str(text): tuple(row) for text, row in zip(texts, shrunken.tolist(), strict=True)}
        return replace(self, prior=tuple(prior.tolist()), means=kept)

    def _targets(self, y: np.ndarray) -> np.ndarray:
        if self.classes < 3:
            return np.asarray(y, dtype=float)[:, None]
        return np.eye(self.classes)[np.asarray(y, dtype=int)]

    def encode(self, column: np.ndarray) -> np.ndarray:
        """Return the means of the texts; that of all rows for texts that were not seen."""
        known = [self.means.get("" if one is None else one, self.prior) for one in column]
        return np.array(known, dtype=float).reshape(len(column), len(self.columns))

    def encode_training(self, column: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the means for training rows, each from rows other than itself."""
        # A text's mean contains the target of its own rows, which a model would otherwise trust.
        part = np.random.default_rng(0).permutation(len(column)) % PARTS
        found = np.empty((len(column), len(self.columns)))
        for one in range(PARTS):
            here = part == one
            if here.any() and not here.all():
                found[here] = self.refit(column[~here], y[~here]).encode(column[here])
            elif here.any():
                found[here] = self.prior
        return found

    def report(self, column: np.ndarray) -> str:
        """Return no sentence, as the encoding by frequency reports texts that were not seen."""
        return ""
