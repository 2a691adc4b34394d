"""Groups of equal size among the rows of a matrix, by k-means with restarts."""

from __future__ import annotations

import warnings

import numpy as np

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
