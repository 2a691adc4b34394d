r"""Layer-wise network: filters of random Fourier features, trained one after the other on labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np

from solvable.arrays import ArraySource, Source, as_source, check_integer, check_real, random_stream
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.fitting.inputs import is_source_like, seed_from
from solvable.models.hierarchy.grammar.learner.filters import (
    Counted,
    Filter,
    fit_features,
    fit_kernel,
    normalised,
)
from solvable.models.hierarchy.grammar.learner.strings import (
    StringClassifier,
    check_flag,
    observed_symbols,
    symbol_codes,
    whole_numbers,
)
from solvable.operators.lift import RandomLift

Mode = Literal["kernel", "features"]
Positions = Literal["first", "shared"]


@dataclass(eq=False, repr=False)
class LayerwiseRBFClassifier(StringClassifier):
    r"""Hierarchical network whose filters are trained on labels, one level after the other.

    From the leaves up, the :math:`s` tokens of each patch are joined to a vector :math:`h`, and the patch
    becomes one token of the next level,

    .. math:: h'=\frac{W\Phi(h)}{\langle 1,W\Phi(h)\rangle}\in\mathbb R^{n_c},\qquad
        \min_W\ \tfrac12\hat E\|e_y-W\Phi(h_1)\|^2+\tfrac\lambda2\|W\|_F^2,

    with random features :math:`\Phi` of the kernel :math:`e^{-\|h-h'\|^2/2\sigma^2}`. A token estimates
    the law of the label given its patch, which is equal for synonyms. The largest coordinate of the top
    token is the prediction. arXiv:2601.19756, Lemma 14; derivations/hierarchy (10), (11), (12).

    Parameters
    ----------
    branching : int
        Number :math:`s` of tokens in a patch, at least 2.
    rules : int, optional
        Number :math:`m` of rules of each symbol, if known, for :math:`\lambda` and the expected
        distance of tokens. By default both are estimated, which includes the noise of tokens and needs
        fewer strings.
    mode, n_features : {"kernel", "features"}, and int
        The limit of infinitely many features, or this number of pairs of cosine and sine, whose memory
        does not grow with the number of strings.
    bandwidth : float
        Bandwidth :math:`\sigma` of each level over the distance between tokens of different symbols.
        Accuracy falls steeply below 0.2 and above 0.5; with branching 3, 0.4 to 0.5 needs fewer strings.
    regularisation : float or "auto"
        Ridge :math:`\lambda`. "auto": :math:`1/(Vm)`, or the inverse number of different patches of
        leaves.
    positions : {"first", "shared"}
        Patches on which a filter is trained: the first of each string, or all.
    fresh : bool
        Whether each level uses a part of the strings of its own, as in the proof of the paper.
    steps : int, optional
        Gradient steps of size :math:`2/(1+\lambda)` from :math:`W=0`, in "features" only; default the
        exact minimiser.
    chunk_rows : int
        Strings that are embedded at a time.
    random_state : int, RandomState, Generator or None
        Seed of the features and of the estimated distances.

    Attributes
    ----------
    classes_, depth_ : ndarray and int
        Labels, and number :math:`L` of levels.
    filters_, bandwidths_, regularisation_ : list of filters, list of float, and float
        Filters and their bandwidths, from the leaves up, and the ridge of all filters.

    Notes
    -----
    "kernel" takes :math:`u^3/3` operations and :math:`12u^2` bytes per level with :math:`u` different
    first patches, "features" :math:`4uM^2` and :math:`32M^2`. Accuracy stays below 1 if two symbols
    have laws of the label closer than about two bandwidths.

    Examples
    --------
    >>> from solvable.models.hierarchy.target import RandomHierarchy
    >>> target = RandomHierarchy(8, 4, 2, 2, seed=0)
    >>> X, y = target.sample(800, rng=0)
    >>> model = LayerwiseRBFClassifier(rules=4).fit(X, y)
    >>> model.score(*target.sample(500, rng=1)) > 0.95
    True
    """

    branching: int = 2
    _: KW_ONLY
    rules: int | None = None
    mode: Mode = "kernel"
    n_features: int = 1000
    bandwidth: float = 0.3
    regularisation: float | Literal["auto"] = "auto"
    positions: Positions = "first"
    fresh: bool = False
    steps: int | None = None
    chunk_rows: int = 1 << 15
    random_state: Any = 0

    def fit(self, X: Any, y: Any) -> LayerwiseRBFClassifier:
        """Fit all filters, from the leaves up; X is an array, a ``.npy`` file, or a Source."""
        self._check_settings()
        source, labels = self._start_source(X, y)
        seed = seed_from(self.random_state)
        self.filters_: list[Filter] = []
        self.bandwidths_: list[float] = []
        self.regularisation_ = self._ridge(source, labels)
        for level in range(self.depth_, 0, -1):
            sigma = self.bandwidth * self._separation(source, labels, level, seed)
            self.bandwidths_.append(sigma)
            self.filters_.append(self._filter(source, labels, level, sigma, seed))
        return self

    def level_embeddings(self, X: Any) -> list[np.ndarray]:
        """Return tokens, shape (n, s ** l, n_classes) for l = L - 1, ..., 0; coordinates have sum 1."""
        found: list[np.ndarray] = []
        self._embedded(self._checked(X), found)
        return found

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the top token, with negative coordinates set to 0, shape (n, n_classes)."""
        return self._outputs(self._checked(X))

    def _outputs(self, symbols: np.ndarray) -> np.ndarray:
        """Return the probabilities of checked strings, shape (n, n_classes)."""
        parts = []
        for start in range(0, len(symbols), self.chunk_rows):
            codes, tokens = self._embedded(symbols[start : start + self.chunk_rows])
            parts.append(tokens[codes[:, 0]])
        positive = np.maximum(np.concatenate(parts), 0)
        return np.asarray(positive / positive.sum(axis=1, keepdims=True))

    def _start_source(self, X: Any, y: Any) -> tuple[Source, np.ndarray]:
        """Check strings and labels; return the strings as a source, and find the symbols."""
        source: Source
        if is_source_like(X):
            source = as_source(X)
            labels = self._start_labels(y, source.n_samples, source.n_columns)
            if self.mode == "kernel":
                source = ArraySource(np.concatenate([b for _, b in source.chunks(self.chunk_rows)]))
        else:
            strings, labels = self._start_fit(X, y)
            source = ArraySource(strings)
        if self.fresh and source.n_samples < self.depth_:
            raise InvalidData(
                f"there are {source.n_samples} strings for {self.depth_} levels with fresh=True; "
                f"allowed: at least {self.depth_}."
            )
        parts = (np.unique(whole_numbers(block)) for _, block in source.chunks(self.chunk_rows))
        self.symbols_ = observed_symbols(np.concatenate(list(parts)))
        return source, labels

    def _ridge(self, source: Source, labels: np.ndarray) -> float:
        """Ridge of all levels: the inverse number of patches of leaves."""
        if self.regularisation != "auto":
            return float(self.regularisation)
        # lambda = 1 / (V m) (hierarchy 10)
        if self.rules is not None:
            return 1 / (self.symbols_.size * self.rules)
        return 1 / len(next(self._patches_of(source, labels, self.depth_))[0])

    def _separation(self, source: Source, labels: np.ndarray, level: int, seed: int) -> float:
        """Typical distance of the tokens of different symbols that enter a level."""
        if level == self.depth_:
            return sqrt(2)
        if self.rules is not None:
            # E|q - q'|² = 2 (V / n_c) m^-l (hierarchy 5)
            square = 2 * self.symbols_.size / self.classes_.size / self.rules**level
            # Laws averaged over k positions differ by a factor sqrt(k) less.
            return sqrt(square / (self.branching**level if self.positions == "shared" else 1))
        codes, tokens, _ = next(self._tokens_of(source, labels, level))
        drawn = random_stream(seed, "separation", level).choice(codes.ravel(), (2, 5000))
        distances = np.linalg.norm(tokens[drawn[0]] - tokens[drawn[1]], axis=1)
        # A share 1 / V of all pairs are synonyms. The quantile at 1.6 / V is close to the smallest
        # distance of the other pairs, about 0.6 of the typical one.
        smallest = float(np.quantile(distances, min(1.6 / self.symbols_.size, 0.5)))
        return smallest / 0.6 or 1.0

    def _filter(
        self, source: Source, labels: np.ndarray, level: int, sigma: float, seed: int
    ) -> Filter:
        """Train the filter of one level."""
        parts = self._patches_of(source, labels, level)
        if self.mode == "kernel":
            return fit_kernel(*next(parts), sigma, self.regularisation_)
        size = self.symbols_.size if level == self.depth_ else self.classes_.size
        # The dual kernel of this activation is exp(-|h - h'|² / scale²).
        lift = RandomLift(
            self.branching * size, self.n_features, "fourier", sqrt(2) * sigma, seed + level
        )
        return fit_features(parts, lift, self.regularisation_, self.steps)

    def _patches_of(self, source: Source, labels: np.ndarray, level: int) -> Iterator[Counted]:
        """Different patches of a level with their counts of labels, one chunk at a time."""
        n_classes = self.classes_.size
        for codes, tokens, chunk_labels in self._tokens_of(source, labels, level):
            numbers, patches = joined(codes, tokens, self.branching)
            places = numbers * n_classes + chunk_labels[:, None]
            counts = np.bincount(places.ravel(), minlength=len(patches) * n_classes)
            yield patches, counts.reshape(-1, n_classes).astype(float)

    def _tokens_of(
        self, source: Source, labels: np.ndarray, level: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Numbers of tokens, different tokens, and labels at a level, one chunk at a time."""
        n = source.n_samples
        # With fresh samples each level has its own part of the rows, the leaves the first part.
        part = self.depth_ - level
        start, stop = [n * (part + i) // self.depth_ for i in (0, 1)] if self.fresh else (0, n)
        # The first patch of a level depends on these leaves only.
        width = self.branching ** (part + 1) if self.positions == "first" else source.n_columns
        for rows, block in source.chunks(n if self.mode == "kernel" else self.chunk_rows):
            low, high = max(rows.start, start), min(rows.stop, stop)
            if low < high:
                strings = whole_numbers(block[low - rows.start : high - rows.start, :width])
                yield *self._embedded(strings), labels[low:high]

    def _embedded(
        self, strings: np.ndarray, found: list[np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Apply all trained filters: numbers of the tokens, shape (n, k), and the different tokens."""
        n_symbols = self.symbols_.size
        # The token of a masked or unknown symbol has the same coordinate for each known one.
        tokens = np.vstack([np.eye(n_symbols), np.full((1, n_symbols), n_symbols**-0.5)])
        codes = symbol_codes(strings, self.symbols_)
        for trained in self.filters_:
            codes, patches = joined(codes, tokens, self.branching)
            tokens = normalised(trained.outputs(patches))
            if found is not None:
                found.append(tokens[codes])
        return codes, tokens

    def _check_settings(self) -> None:
        for name, allowed in (("mode", get_args(Mode)), ("positions", get_args(Positions))):
            if getattr(self, name) not in allowed:
                raise InvalidParameter(unknown_choice(name, getattr(self, name), allowed))
        for name in ("rules", "steps"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1)
        if self.steps is not None and self.mode == "kernel":
            raise InvalidParameter(
                f"steps is {self.steps} in mode 'kernel'; allowed: None, or mode='features'."
            )
        check_integer("n_features", self.n_features, 1)
        check_integer("chunk_rows", self.chunk_rows, 1)
        check_flag("fresh", self.fresh)
        check_real("bandwidth", self.bandwidth, 1e-100)
        if self.regularisation != "auto":
            check_real("regularisation", self.regularisation, 1e-100, also=", or 'auto'")


def joined(codes: np.ndarray, tokens: np.ndarray, branching: int) -> tuple[np.ndarray, np.ndarray]:
    """Number the patches of s tokens: numbers of shape (n, k / s), and the different patches."""
    split = codes.reshape(-1, branching)
    numbers = split[:, 0]
    for column in split.T[1:]:
        # Numbers are made consecutive after each token, so that products stay below 2^63.
        numbers = np.unique(numbers, return_inverse=True)[1] * len(tokens) + column
    _, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    return places.reshape(len(codes), -1), tokens[split[first]].reshape(first.size, -1)
