r"""One gradient step of a two-layer network, and clusters of its weights, level by level."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.fitting.inputs import seed_from
from solvable.models.hierarchy.grammar.learner.count_cluster import TupleClusterClassifier


class OneStepClusterClassifier(TupleClusterClassifier):
    r"""Classifier that clusters the first-layer weights of a network after one gradient step.

    At each level a two-layer ReLU network with equal first-layer weights sees the first tuple :math:`\mu`
    of each string in one-hot code. One full-batch step on the cross-entropy moves the weights of a
    tuple by a linear image of

    .. math:: g_{\mu,\alpha}=\frac{\hat N(\mu;\alpha)-\hat N(\mu)/n_c}{N},

    where :math:`\hat N(\mu;\alpha)` counts the strings with first tuple :math:`\mu` and label
    :math:`\alpha`. k-means of these vectors gives the symbols of the next level; rare tuples are close to
    zero and cluster together. arXiv:2307.02129, Equation 13; derivations/hierarchy (8).

    Parameters
    ----------
    branching : int
        Number :math:`s` of symbols in a tuple, at least 2.
    n_clusters : int, optional
        Number of clusters of each level; default the number of different symbols of the strings.
    width : int, optional
        Number of neurons; default the limit of infinite width.
    n_init : int
        Starts of k-means.
    random_state : int, RandomState, Generator or None
        Seed of the second layer, of k-means and of the clusters of tuples that were never counted.

    Attributes
    ----------
    classes_, levels_, depth_ : ndarray, list of TupleClusters, and int
        Labels, clusters of the tuples of each level from the leaves up, and number of levels.

    Examples
    --------
    >>> from solvable.models.hierarchy.target import RandomHierarchy
    >>> target = RandomHierarchy(8, 4, 2, 2, seed=0)
    >>> X, y = target.sample(2000, rng=0)
    >>> OneStepClusterClassifier().fit(X, y).score(*target.sample(500, rng=1))
    1.0
    """

    positions = "first"

    def __init__(
        self,
        branching: int = 2,
        *,
        n_clusters: int | None = None,
        width: int | None = None,
        n_init: int = 10,
        random_state: Any = 0,
    ) -> None:
        self.branching = branching
        self.n_clusters = n_clusters
        self.width = width
        self.n_init = n_init
        self.random_state = random_state

    def _rows(self, counts: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradients of the first-layer weights of each tuple."""
        rows = count_gradients(counts[:, 0])
        if self.width is not None:
            stream = random_stream(seed_from(self.random_state), "second layer")
            second = stream.standard_normal((rows.shape[1], self.width))
            rows = rows @ (second / np.sqrt(self.width))
        return rows, np.ones(len(rows))

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.width is not None:
            check_integer("width", self.width, 1)


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
