r"""Spectral distribution of an operator that is never formed, by stochastic Lanczos quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidData


@dataclass(frozen=True)
class LanczosQuadrature:
    """Spectral distribution estimated from several random starting vectors.

    Attributes
    ----------
    nodes : ndarray of shape (starts, steps)
        Nodes of the quadrature of each start, ascending, in units of the eigenvalues.
    weights : ndarray of shape (starts, steps)
        Weights of the nodes; each row sums to 1.
    """

    nodes: np.ndarray
    weights: np.ndarray

    @property
    def held(self) -> np.ndarray:
        """Mask of the nodes with weight; nodes beyond a complete invariant space have none."""
        return self.weights > 1e-14

    def cumulative(self, x: np.ndarray) -> np.ndarray:
        """Estimate the fraction of eigenvalues below each x, one row for each start.

        The mean of the rows is the estimate, and their scatter gives its standard error.
        """
        from scipy.interpolate import PchipInterpolator

        places = np.asarray(x, dtype=np.float64)
        rows = []
        for nodes, weights, held in zip(self.nodes, self.weights, self.held, strict=True):
            z, w = nodes[held], weights[held]
            if z.size == 1:  # a multiple of the identity
                rows.append((places >= z[0]).astype(float))
                continue
            # F(z_k) = w_1 + ... + w_(k-1) + w_k / 2. The distances of the first two nodes from a
            # square-root edge are in the ratio 1 : 4, so the edge is a third of their gap farther out.
            ends = z[0] - (z[1] - z[0]) / 3, z[-1] + (z[-1] - z[-2]) / 3
            known = np.concatenate([[ends[0]], z, [ends[1]]])
            levels = np.concatenate([[0.0], np.cumsum(w) - w / 2, [1.0]])
            curve = PchipInterpolator(known, levels)
            rows.append(curve(np.clip(places, *ends)))
        return np.array(rows)

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Eigenvalue below which each fraction of the eigenvalues lies, from the mean over starts."""
        nodes = np.sort(self.nodes[self.held])
        reach = nodes[-1] - nodes[0]
        ends = nodes[0] - reach, nodes[-1] + reach
        grid = np.unique(np.concatenate([nodes, np.linspace(*ends, 3_001)]))
        return np.asarray(np.interp(levels, self.cumulative(grid).mean(axis=0), grid))


def lanczos_quadrature(
    apply: Callable[[np.ndarray], np.ndarray],
    starts: np.ndarray,
    *,
    steps: int = 80,
    outside: np.ndarray | None = None,
) -> LanczosQuadrature:
    r"""Estimate the spectral distribution of a symmetric operator from products with vectors.

    From each starting vector :math:`g`, `steps` Lanczos steps give a tridiagonal matrix with
    eigenvalues :math:`z_k` and eigenvectors :math:`u_k`. They are the nodes and weights of the Gauss
    quadrature of the spectrum seen from :math:`g`,

    .. math::
        \frac{g^T f(C)\,g}{\|g\|^2}\approx\sum_k u_{k1}^2\,f(z_k),

    exact for polynomials :math:`f` of degree up to :math:`2\,\mathrm{steps}-1`. For Gaussian :math:`g`
    the left side has mean :math:`\frac1D\mathrm{tr}f(C)`. The estimated fraction :math:`F` of
    eigenvalues below a place has a standard deviation of about :math:`\sqrt{2F(1-F)/(Dk)}` with
    :math:`k` starts.

    Parameters
    ----------
    apply : callable
        ``apply(U) -> C U`` for a block of vectors, shape (D, k), in float64.
    starts : array of shape (D, k)
        Starting vectors, independent standard normal for an unbiased estimate.
    steps : int
        Number of products with each vector, at least 2. Details narrower than about the width of the
        spectrum / `steps` are not resolved, except at its edges. Default 80.
    outside : array of shape (D, m), optional
        Orthonormal columns that are projected out: the distribution is that of C on their complement.
        By default none.

    Returns
    -------
    LanczosQuadrature
        Nodes and weights of each start, with the cumulative distribution and its quantiles.

    Raises
    ------
    InvalidData
        If shapes disagree, or if a starting vector is zero or not finite.
    InvalidParameter
        If `steps` is below 2.

    Notes
    -----
    Vectors are fully orthogonalised: O(D k steps) memory and O(D k steps²) time, in addition to
    `steps` products with k vectors. An atom of the spectrum is spread between the neighbouring nodes.
    An isolated eigenvalue has a weight of about 1/D, different for each start; find it with an
    eigensolver, and project its eigenvector out. Equation 37 of docs/derivations/spectra.md. Backed by
    ``tests/spectra/test_lanczos.py`` (full diagonalisation, Marchenko-Pastur law).

    Examples
    --------
    >>> C = np.diag(np.linspace(0, 1, 2_000))
    >>> starts = np.random.default_rng(0).standard_normal((2_000, 4))
    >>> found = lanczos_quadrature(lambda U: C @ U, starts, steps=20)
    >>> found.cumulative(np.array([0.25, 0.5])).mean(axis=0).round(1)
    array([0.2, 0.5])
    """
    check_integer("steps", steps, 2)
    vectors = np.array(starts, dtype=np.float64)
    held = np.empty((len(vectors), 0)) if outside is None else np.asarray(outside, dtype=np.float64)
    if vectors.ndim != 2 or 0 in vectors.shape or held.ndim != 2 or len(held) != len(vectors):
        raise InvalidData(
            f"starts has shape {vectors.shape} and outside {held.shape}; allowed: (D, k) and (D, m) "
            "with D and k of at least 1."
        )
    vectors = vectors - held @ (held.T @ vectors)
    norms = np.linalg.norm(vectors, axis=0)
    if not (np.isfinite(norms).all() and (norms > 0).all()):
        raise InvalidData(
            "a starting vector is zero or not finite; allowed: finite vectors that are not in the span "
            "of outside."
        )
    most = min(steps, len(vectors) - held.shape[1])
    diagonal, beside = _tridiagonal(apply, vectors / norms, held, most)
    # z_k and u_k1² of the tridiagonal matrix   (spectra 37)
    rows = np.arange(most)
    matrices = np.zeros((*diagonal.shape, most))
    matrices[:, rows, rows] = diagonal
    matrices[:, rows[1:], rows[:-1]] = beside[:, :-1]
    nodes, units = np.linalg.eigh(matrices)
    return LanczosQuadrature(nodes, units[:, 0, :] ** 2)


def _tridiagonal(
    apply: Callable[[np.ndarray], np.ndarray], vectors: np.ndarray, outside: np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Diagonal of each start's Lanczos matrix, and the entries next to it; both (starts, steps)."""
    size, count = vectors.shape
    basis = np.zeros((count, steps, size))
    diagonal, beside = np.zeros((2, count, steps))
    for k in range(steps):
        basis[:, k] = vectors.T
        images = np.asarray(apply(vectors), dtype=np.float64)
        diagonal[:, k] = np.sum(vectors * images, axis=0)
        following = np.zeros_like(vectors)
        for start, image in enumerate(images.T):
            held, rest = basis[start, : k + 1], image
            for _ in range(2):  # full orthogonalisation takes two passes
                rest = rest - outside @ (outside.T @ rest)
                rest = rest - (held @ rest) @ held
            norm = float(np.linalg.norm(rest))
            # If an invariant space is complete, the vector stays zero and further nodes have no weight.
            if norm > 1e-12 * np.abs(diagonal[start]).max():
                beside[start, k], following[:, start] = norm, rest / norm
        vectors = following
    return diagonal, beside
