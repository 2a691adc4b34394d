r"""One gradient step of a two-layer network, and clusters of its weights, level by level."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.errors import InvalidData
from solvable.fitting.inputs import seed_from
from solvable.models.hierarchy.grammar.learner.count_cluster import TupleClusterClassifier


class OneStepClusterClassifier(TupleClusterClassifier):
    r"""Classifier that clusters the first-layer weights of a network after one gradient step.

    At each level, from the leaves up, a two-layer network with ReLU neurons sees the first tuple
    :math:`\mu` of each string in one-hot code. All first-layer weights start at the same value, and the
    second layer is random and fixed. One full-batch step on the cross-entropy moves the weights of a
    tuple by a linear image of

    .. math:: g_{\mu,\alpha}=\frac{\hat N(\mu;\alpha)-\hat N(\mu)/n_c}{N},

    where :math:`\hat N(\mu;\alpha)` counts the strings with first tuple :math:`\mu` and label
    :math:`\alpha`. In the limit of infinite width the image preserves distances. k-means of these
    vectors gives the symbols of the next level, for the tuples at all positions.

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
    classes_ : ndarray of shape (n_classes,)
        Labels.
    levels_ : list of TupleClusters
        Clusters of the tuples of each level, from the leaves up.
    depth_ : int
        Number :math:`L` of levels.

    Raises
    ------
    InvalidParameter, InvalidData
        If a parameter is out of range, or the strings have a wrong shape or missing values.

    Notes
    -----
    The vectors are counts, not frequencies: rare tuples are close to zero and cluster together.
    Sources: arXiv:2307.02129, Equation 13; derivations/hierarchy (8).

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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.width is not None:
            check_integer("width", self.width, 1)


def count_gradients(counts: np.ndarray) -> np.ndarray:
    """Gradient of each tuple from its counts of labels, shape (tuples, classes) both."""
    # g = N(mu; alpha) / N - N(mu) / (n_c N) (hierarchy 8)
    return np.asarray((counts - counts.mean(axis=1, keepdims=True)) / counts.sum())


def measured_sensitivity(
    patch_numbers: np.ndarray,
    parents: np.ndarray,
    labels: np.ndarray,
    n_classes: int,
    *,
    rules: int | None = None,
) -> float:
    r"""Measure the synonymic sensitivity of a network after one gradient step.

    .. math:: S=\frac{\langle\|g_\mu-g_{\rm syn(\mu)}\|^2\rangle}{\langle\|g_\mu-g_{\mu'}\|^2\rangle},

    with the vectors :math:`g_\mu` of :class:`OneStepClusterClassifier`. The first mean is over pairs of
    different patches with the same parent, and the second over all pairs of different patches, each
    patch with equal weight.

    Parameters
    ----------
    patch_numbers : ndarray of shape (n,)
        Number of the first patch of each string at one level.
    parents : ndarray of shape (n,)
        Symbol above that patch; a function of the patch.
    labels : ndarray of shape (n,)
        Labels from 0 to n_classes - 1.
    n_classes : int
        Number of labels.
    rules : int, optional
        Number :math:`m` of patches of each parent. Patches that no string contains then count with
        :math:`g=0`; by default they are left out, which lowers the result where a patch is expected
        only a few times.

    Returns
    -------
    float
        Ratio, 1 without any signal and 0 if synonyms have equal vectors; NaN if no two synonyms, or no
        two patches with different vectors, were observed.

    Raises
    ------
    InvalidData, InvalidParameter
        If the arrays have different lengths, a label is out of range, or a parent has more than `rules`
        patches.

    Notes
    -----
    Sources: arXiv:2307.02129, Equation 13; derivations/hierarchy (8).

    Examples
    --------
    >>> measured_sensitivity(np.arange(4), np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), 2)
    0.0
    """
    patch_numbers, parents, labels = map(np.asarray, (patch_numbers, parents, labels))
    if not patch_numbers.shape == parents.shape == labels.shape == (patch_numbers.size,):
        raise InvalidData(
            f"patches, parents and labels have shapes {patch_numbers.shape}, {parents.shape} and "
            f"{labels.shape}; allowed: three vectors of equal length."
        )
    if labels.size == 0 or labels.min() < 0 or labels.max() >= n_classes:
        raise InvalidData(f"labels must be whole numbers from 0 to {n_classes - 1}, at least one.")
    _, first, places = np.unique(patch_numbers, return_index=True, return_inverse=True)
    counts = np.bincount(places * n_classes + labels, minlength=first.size * n_classes)
    gradients = count_gradients(counts.reshape(-1, n_classes))
    groups = np.unique(parents[first], return_inverse=True)[1]
    size = np.bincount(groups)
    if rules is not None:
        check_integer("rules", rules, int(size.max()))
        size = np.full(size.size, rules)
    synonyms = _mean_square_distance(gradients, groups, size)
    everything = _mean_square_distance(gradients, np.zeros_like(groups), size.sum(keepdims=True))
    return float(synonyms / everything) if everything > 0 else float("nan")


def _mean_square_distance(rows: np.ndarray, groups: np.ndarray, size: np.ndarray) -> float:
    """Mean squared distance of all pairs of rows of a group; rows that are missing are 0."""
    sums = np.zeros((size.size, rows.shape[1]))
    np.add.at(sums, groups, rows)
    # The pairs of a group of n rows have sum n sum |g|² - |sum g|².
    squares = np.bincount(groups, weights=np.einsum("ij,ij->i", rows, rows))
    pairs = size @ (size - 1) / 2
    total = size @ squares - np.einsum("ij,ij->", sums, sums)
    return float(total / pairs) if pairs else float("nan")
