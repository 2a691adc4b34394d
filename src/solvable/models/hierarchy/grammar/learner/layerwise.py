r"""Layer-wise network: filters of random Fourier features, trained one after the other on labels."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np

from solvable.arrays import ArraySource, Source, check_integer, check_positive, random_stream
from solvable.errors import InvalidParameter, unknown_choice
from solvable.fitting.inputs import seed_from
from solvable.models.hierarchy.grammar.learner.filters import (
    Filter,
    Sums,
    fit_features,
    fit_kernel,
    normalised,
)
from solvable.models.hierarchy.grammar.learner.token_strings import (
    StringClassifier,
    symbol_codes,
    whole_numbers,
)
from solvable.operators.lift import RandomLift

Mode = Literal["kernel", "features"]
Positions = Literal["first", "shared"]


class LayerwiseRBFClassifier(StringClassifier):
    """Layer-wise."""

    def __init__(
        self,
        branching: int = 2,
        *,
        rules: int | None = None,
        mode: Mode = "kernel",
        n_features: int = 1000,
        bandwidth: float = 0.3,
        regularisation: float | Literal["auto"] = "auto",
        positions: Positions = "first",
        fresh: bool = False,
        steps: int | None = None,
        chunk_rows: int = 1 << 15,
        random_state: Any = 0,
    ) -> None:
        self.branching = branching
        self.rules = rules
        self.mode = mode
        self.n_features = n_features
        self.bandwidth = bandwidth
        self.regularisation = regularisation
        self.positions = positions
        self.fresh = fresh
        self.steps = steps
        self.chunk_rows = chunk_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> LayerwiseRBFClassifier:
        """Fit all filters, from the leaves up."""
        self._check_parameters()
        source, labels = self._start_source(X, y)
        seed = seed_from(self.random_state)
        parts = (np.unique(whole_numbers(block)) for _, block in source.chunks(self.chunk_rows))
        self.symbols_ = np.unique(np.concatenate(list(parts)))
        self.filters_: list[Filter] = []
        self.bandwidths_: list[float] = []
        self.regularisation_ = self._ridge(source, labels)
        for level in range(self.depth_, 0, -1):
            codes, tokens, _ = next(self._tokens_of(source, labels, level))
            sigma = self.bandwidth * self._separation(level, codes, tokens, seed)
            self.bandwidths_.append(sigma)
            self.filters_.append(self._filter(source, labels, level, sigma, seed))
        return self

    def _filter(
        self, source: Source, labels: np.ndarray, level: int, sigma: float, seed: int
    ) -> Filter:
        """Train the filter of one level."""
        parts = self._patches_of(source, labels, level)
        if self.mode == "kernel":
            return fit_kernel(*next(parts), sigma, self.regularisation_)
        # The dual kernel of the activation is exp(-|x - y|² / scale²).
        lift = RandomLift(
            self.branching * self._token_size(level),
            self.n_features,
            activation="fourier",
            scale=sqrt(2) * sigma,
            seed=seed + level,
        )
        return fit_features(parts, lift, self.regularisation_, self.steps)

    def _ridge(self, source: Source, labels: np.ndarray) -> float:
        """Ridge of all levels: the inverse number of tuples of the lowest level."""
        if self.regularisation != "auto":
            return float(self.regularisation)
        # lambda = 1 / (V m) (hierarchy 10)
        if self.rules is not None:
            return 1 / (self.symbols_.size * self.rules)
        return 1 / len(next(self._patches_of(source, labels, self.depth_))[0])

    def _separation(self, level: int, codes: np.ndarray, tokens: np.ndarray, seed: int) -> float:
        """Typical distance of tokens of different symbols that enter a level."""
        if level == self.depth_:
            return sqrt(2)
        if self.rules is not None:
            # E|q - q'|² = 2 (V / n_c) m^-l (hierarchy 5)
            square = 2 * self.symbols_.size / self.classes_.size / self.rules**level
            # A mean over k positions has a signal smaller by sqrt(k).
            return sqrt(square / (self.branching**level if self.positions == "shared" else 1))
        rng = random_stream(seed, "separation", level)
        drawn = rng.choice(codes.ravel(), (2, 5000))
        distances = np.linalg.norm(tokens[drawn[0]] - tokens[drawn[1]], axis=1)
        # Of all pairs, 1 / V are synonyms; this quantile is close to the smallest distance of the others,
        # about 0.6 of the typical one.
        closest = float(np.quantile(distances, min(1.6 / self.symbols_.size, 0.5)))
        return closest / 0.6 or 1.0

    def _token_size(self, level: int) -> int:
        """Number of coordinates of a token that enters a level."""
        return self.symbols_.size if level == self.depth_ else self.classes_.size

    def _tokens_of(
        self, source: Source, labels: np.ndarray, level: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Token numbers, different tokens and labels that enter a level, one chunk at a time."""
        n = source.n_samples
        # Fresh samples: each level has its own part of the rows, the leaves the first.
        start, stop = 0, n
        if self.fresh:
            start, stop = (n * (self.depth_ - level + i) // self.depth_ for i in (0, 1))
        # The first patch of a level depends on these leaves only.
        width = self.branching ** (self.depth_ - level + 1)
        rows = n if self.mode == "kernel" else self.chunk_rows
        for part, block in source.chunks(rows):
            low, high = max(part.start, start), min(part.stop, stop)
            if low < high:
                strings = whole_numbers(block)[low - part.start : high - part.start]
                if self.positions == "first":
                    strings = strings[:, :width]
                codes, tokens = self._embedded(strings)
                yield codes, tokens, labels[low:high]

    def _patches_of(self, source: Source, labels: np.ndarray, level: int) -> Iterator[Sums]:
        """Different patches of a level with their counts of labels, one chunk at a time."""
        n_classes = self.classes_.size
        for codes, tokens, chunk_labels in self._tokens_of(source, labels, level):
            numbers, patches = joined_tokens(codes, tokens, self.branching)
            places = numbers * n_classes + chunk_labels[:, None]
            counts = np.bincount(places.ravel(), minlength=len(patches) * n_classes)
            yield patches, counts.reshape(-1, n_classes).astype(float)

    def _embedded(
        self, strings: np.ndarray, found: list[np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Apply all fitted filters: numbers of the tokens, shape (n, k), and the different tokens."""
        n_symbols = self.symbols_.size
        # an unknown symbol has the same coordinate in each direction
        tokens = np.vstack([np.eye(n_symbols), np.full((1, n_symbols), n_symbols**-0.5)])
        codes = symbol_codes(strings, self.symbols_)
        for fitted in self.filters_:
            codes, patches = joined_tokens(codes, tokens, self.branching)
            tokens = normalised(fitted.outputs(patches))
            if found is not None:
                found.append(tokens[codes])
        return codes, tokens

    def level_embeddings(self, X: Any) -> list[np.ndarray]:
        """Return the learned token embeddings of each level, from level L - 1 up to the label."""
        found: list[np.ndarray] = []
        self._embedded(self._checked(X), found)
        return found

    def predict_proba(self, X: Any) -> np.ndarray:
        strings = self._checked(X)
        parts = []
        for start in range(0, len(strings), self.chunk_rows):
            codes, tokens = self._embedded(strings[start : start + self.chunk_rows])
            parts.append(tokens[codes[:, 0]])
        positive = np.maximum(np.concatenate(parts), 0)
        return positive / positive.sum(axis=1, keepdims=True)

    def _start_source(self, X: Any, y: Any) -> tuple[Source, np.ndarray]:
        strings, labels = self._start_fit(X, y)
        return ArraySource(strings), labels

    def _check_parameters(self) -> None:
        pass


def joined_tokens(
    codes: np.ndarray, tokens: np.ndarray, branching: int
) -> tuple[np.ndarray, np.ndarray]:
    """Number the patches of s tokens: their numbers, shape (n, k / s), and the different patches."""
    split = codes.reshape(-1, branching)
    numbers = split[:, 0]
    for column in split.T[1:]:
        # numbered again after each token, so that products stay below 2^63
        numbers = np.unique(numbers, return_inverse=True)[1] * len(tokens) + column
    _, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    return places.reshape(len(codes), -1), tokens[split[first]].reshape(first.size, -1)
