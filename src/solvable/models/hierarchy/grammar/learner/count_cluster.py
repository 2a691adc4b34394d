r"""Count-and-cluster: labels are counted for each tuple, and tuples are clustered by their counts."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.fitting.inputs import seed_from
from solvable.models.hierarchy.grammar.learner.strings import (
    StringClassifier,
    observed_symbols,
    symbol_codes,
)
from solvable.models.hierarchy.rules import LARGEST_TUPLES, tuple_numbers

Positions = Literal["concat", "first", "pooled"]


@dataclass(frozen=True)
class TupleClusters:
    """Cluster of each observed tuple of one level; tuples never counted have a random one."""

    numbers: np.ndarray
    clusters: np.ndarray
    base: int
    n_clusters: int
    seed: int
    blank: int | None = None

    def of(self, tuples: np.ndarray) -> np.ndarray:
        """Return the cluster of each tuple number."""
        places = np.minimum(np.searchsorted(self.numbers, tuples), self.numbers.size - 1)
        # A random odd factor and the upper half of the product spread numbers over all clusters.
        factor = np.uint64(np.random.default_rng(self.seed).integers(2**62) * 2 + 1)
        spread = (tuples.astype(np.uint64) * factor) >> np.uint64(33)
        other = (spread % np.uint64(self.n_clusters)).astype(np.intp)
        found = np.where(self.numbers[places] == tuples, self.clusters[places], other)
        return (
            found if self.blank is None else np.where(tuples == self.blank, self.n_clusters, found)
        )


@dataclass(eq=False, repr=False)
class CountClusterClassifier(StringClassifier):
    r"""Classifier that replaces tuples by clusters of tuples with similar laws of the label.

    From the leaves up, the labels of the strings that contain a tuple :math:`\mu` are counted. The rows

    .. math:: \sqrt{\hat n_{\mu,i}/\hat n_\mu}\,\big(\hat q_{\mu,i}-\hat q\big),\qquad
        \hat n_\mu=\sum_i\hat n_{\mu,i},

    one block of coordinates per position :math:`i`, are clustered by k-means with weights
    :math:`\hat n_\mu`, where :math:`\hat q_{\mu,i}` is the law of the label given :math:`\mu` at position
    :math:`i`, and :math:`\hat q` that of all labels. Clusters are the symbols of the next level.
    Sources: arXiv:2307.02129, Appendix D; derivations/hierarchy (3), (5), (6).

    Parameters
    ----------
    branching : int
        Number :math:`s` of symbols in a tuple, at least 2.
    n_clusters : int, optional
        Number of clusters of each level; default the number of different symbols of the strings.
    positions : {"concat", "first", "pooled"}
        Counts of each position in its own block, of the first position only, or summed over positions.
    n_init : int
        Starts of k-means.
    random_state : int, RandomState, Generator or None
        Seed of k-means and of the clusters of tuples that were never counted.
    blank : int, optional
        Largest symbol, if it is a blank. A tuple of blanks is a blank of the next level.

    Attributes
    ----------
    classes_, levels_, depth_ : ndarray, list of TupleClusters, and int
        Labels, clusters of the tuples of each level from the leaves up, and number of levels.

    Examples
    --------
    >>> from solvable.models.hierarchy.target import RandomHierarchy
    >>> target = RandomHierarchy(8, 4, 2, 2, seed=0)
    >>> X, y = target.sample(600, rng=0)
    >>> CountClusterClassifier().fit(X, y).score(*target.sample(500, rng=1))
    1.0
    """

    branching: int = 2
    _: KW_ONLY
    n_clusters: int | None = None
    positions: Positions = "concat"
    n_init: int = 8
    random_state: Any = 0
    blank: int | None = None

    def _fit_strings(self, strings: np.ndarray, labels: np.ndarray) -> None:
        self.symbols_, blank = observed_symbols(strings), None
        if self.blank is not None:
            # The blank has the last code of each level.
            self.symbols_ = np.append(self.symbols_[self.symbols_ < self.blank], self.blank)
            blank = self.symbols_.size - 1
        self.n_clusters_ = self.n_clusters or self.symbols_.size - (blank is not None)
        seed = seed_from(self.random_state)
        symbols, base = symbol_codes(strings, self.symbols_), self.symbols_.size + 1
        self.levels_: list[TupleClusters] = []
        for level in range(self.depth_, 0, -1):
            if base**self.branching > 2**LARGEST_TUPLES:
                raise InvalidData(
                    f"there are {base}^{self.branching} possible tuples; allowed: at most 2^62."
                )
            tuples = tuple_numbers(symbols, base, self.branching)
            numbers, counts = self._counts(tuples, labels)
            if level == 1:
                self.label_numbers_, self.label_base_ = numbers, base
                self.label_counts_ = counts[:, 0]
                break
            empty = None
            if blank is not None:
                empty = blank * sum(base**place for place in range(self.branching))
                numbers, counts = numbers[numbers != empty], counts[numbers != empty]
            rows, weights = self._rows(counts, labels)
            clusters = cluster_rows(rows, weights, self.n_clusters_, self.n_init, seed + level)
            fitted = TupleClusters(numbers, clusters, base, self.n_clusters_, seed + level, empty)
            self.levels_.append(fitted)
            symbols, base = fitted.of(tuples), self.n_clusters_
            if blank is not None:
                blank, base = base, base + 1
        self.label_prior_ = np.bincount(labels) / labels.size

    def _counts(self, tuples: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sorted tuple numbers and their counts, shape (tuples, positions, classes)."""
        n_classes = self.classes_.size
        counted = tuples[:, :1] if self.positions == "first" else tuples
        numbers, places = np.unique(counted, return_inverse=True)
        places = places.reshape(counted.shape)
        counts = np.stack(
            [
                np.bincount(column * n_classes + labels, minlength=numbers.size * n_classes)
                for column in places.T
            ]
        ).reshape(-1, numbers.size, n_classes)
        if self.positions == "pooled":
            counts = counts.sum(axis=0, keepdims=True)
        return numbers, np.moveaxis(counts, 0, 1)

    def _rows(self, counts: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Laws of the label minus that of all strings, one block per position."""
        prior = np.bincount(labels) / labels.size
        at_position = counts.sum(axis=2, keepdims=True)
        total = at_position.sum(axis=1, keepdims=True)
        # sqrt(n_i / n) (q_i - prior), with q_i = counts_i / n_i
        rows = (counts - at_position * prior) / np.sqrt(np.maximum(at_position, 1) * total)
        return rows.reshape(len(rows), -1), total[:, 0, 0]

    def level_symbols(self, X: Any) -> list[np.ndarray]:
        """Return learned symbols, shape (n, s ** l) for l = L - 1, ..., 1, and labels, shape (n, 1)."""
        symbols, found = symbol_codes(self._checked(X), self.symbols_), []
        for fitted in self.levels_:
            symbols = fitted.of(tuple_numbers(symbols, fitted.base, self.branching))
            found.append(symbols)
        return [*found, np.argmax(self._top(symbols), axis=1)[:, None]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the share of each label among strings with the same top tuple, (n, n_classes)."""
        # It is the share among all training labels for a top tuple that was never seen.
        return self._outputs(self._checked(X))

    def _outputs(self, symbols: np.ndarray) -> np.ndarray:
        """Return the probabilities of checked strings, shape (n, n_classes)."""
        symbols = symbol_codes(symbols, self.symbols_)
        for fitted in self.levels_:
            symbols = fitted.of(tuple_numbers(symbols, fitted.base, self.branching))
        return self._top(symbols)

    def _top(self, symbols: np.ndarray) -> np.ndarray:
        """Probabilities of the labels given the learned symbols of level 1."""
        tuples = tuple_numbers(symbols, self.label_base_, self.branching)[:, 0]
        laws = self.label_counts_ / self.label_counts_.sum(axis=1, keepdims=True)
        places = symbol_codes(tuples, self.label_numbers_)
        return np.concatenate([laws, self.label_prior_[None]])[places]

    def _check_settings(self) -> None:
        if self.positions not in get_args(Positions):
            raise InvalidParameter(
                unknown_choice("positions", self.positions, list(get_args(Positions)))
            )
        if self.n_clusters is not None:
            check_integer("n_clusters", self.n_clusters, 2)
        check_integer("n_init", self.n_init, 1)
        if self.blank is not None:
            check_integer("blank", self.blank, 1)


RERUNS = 2
"""Largest number of further runs of k-means if a cluster is too small."""


def cluster_rows(
    rows: np.ndarray, weights: np.ndarray, n_clusters: int, n_init: int, seed: int
) -> np.ndarray:
    """Return the cluster of each row, shape (n,); all true groups are assumed to have equal size."""
    # k-means runs again, with other starting points, while its smallest cluster has less than half of
    # the mean size; the run with the largest smallest cluster is kept.
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if len(rows) <= n_clusters:
        return np.arange(len(rows))
    best, largest = np.zeros(len(rows), dtype=np.intp), -1
    for run in range(1 + RERUNS):
        with warnings.catch_warnings():
            # Rows may coincide; then there are fewer clusters, which is no error here.
            warnings.simplefilter("ignore", ConvergenceWarning)
            means = KMeans(n_clusters, n_init=n_init, random_state=(seed + run) % 2**32)
            clusters = means.fit_predict(rows, sample_weight=weights)
        smallest = int(np.bincount(clusters, minlength=n_clusters).min())
        if smallest > largest:
            best, largest = clusters, smallest
        if 2 * smallest * n_clusters >= len(rows):
            break
    return np.asarray(best, dtype=np.intp)


def count_gradients(counts: np.ndarray) -> np.ndarray:
    """Gradient of each tuple from its counts of labels, shape (tuples, classes) both."""
    # g = N(mu; alpha) / N - N(mu) / (n_c N) (hierarchy 8)
    return np.asarray((counts - counts.mean(axis=1, keepdims=True)) / counts.sum())


def gradient_distances(counts: np.ndarray) -> tuple[float, float]:
    """Mean squared distances of the gradients of two synonyms, and of any two tuples of a level."""
    # `counts` of labels has shape (parents, rules, classes), with zeros for tuples that no string
    # contains. The ratio of the two numbers is the synonymic sensitivity, 1 without any signal
    # (hierarchy 8).
    parents, rules, classes = counts.shape
    gradients = count_gradients(counts.reshape(-1, classes)).reshape(counts.shape)
    squares, sums = float((gradients**2).sum()), gradients.sum(axis=1)
    # Pairs of n rows: sum |g - g'|² = n sum |g|² - |sum g|².
    synonyms = rules * squares - float((sums**2).sum())
    tuples = parents * rules
    everything = tuples * squares - float((sums.sum(axis=0) ** 2).sum())
    pairs = parents * rules * (rules - 1) / 2
    return (synonyms / pairs if pairs else float("nan"), everything / (tuples * (tuples - 1) / 2))
