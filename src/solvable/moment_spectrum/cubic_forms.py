r"""Values per sample of features of degree 3 and of the highest-degree component of their products.

With directions read as symmetric tensors of three indices and (x)_r contracting r of them,

    f_U f_V - <U, V> = (1/6) I_6(U (x) V) + (3/2) I_4(U (x)_1 V) + 3 I_2(U (x)_2 V)   (sequential 25),

I_m(S) = <S, He_m(x)>. The Wick-corrected kernel K keeps the first term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import comb

import numpy as np

from solvable.moment_spectrum.highest_chaos import chaos_eigenvalues
from solvable.moment_spectrum.sample_kernel import SampleKernel, corrected_numbers
from solvable.operators._cubic import Cubic
from solvable.operators._engines import columns_of, products_of_pairs


@dataclass(frozen=True)
class CubicSample:
    """Draws for the spectrum of a cubic first layer: m samples of p features."""

    directions: np.ndarray  # directions A as orthonormal columns (D, p)
    squared_input_norm: np.ndarray  # squared norm of the input x, (m,)
    squared_norm: np.ndarray  # squared norm of the Hermite features F, (m,)
    latent: np.ndarray  # features f_i, (m, p)
    sixth: np.ndarray  # diagonal entries <A_i, K A_i> of the kernel, (m, p)
    images: np.ndarray  # squared norms of K A_i, (m, p)

    @cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of the kernel K, shape (m, 6), and their multiplicities."""
        d = _dimension(len(self.directions))
        columns, counts = zip(*chaos_eigenvalues(self.squared_input_norm, d, 3), strict=True)
        return np.stack(columns, axis=1), np.array(counts, dtype=float)

    @property
    def kernel(self) -> SampleKernel:
        """Norms and entries of each sample's corrected kernel."""
        values, counts = self.spectrum
        return corrected_numbers(
            self.latent, values**2 @ counts, self.sixth, self.images, len(self.directions)
        )


def _dimension(n_features: int) -> int:
    """Dimension d of the inputs that have D = d (d + 1) (d + 2) / 6 features."""
    d = round((6 * n_features) ** (1 / 3)) - 1
    while comb(d + 2, 3) < n_features:
        d += 1
    return d


def tensors_of(directions: np.ndarray) -> np.ndarray:
    """Convert columns (D, k) to symmetric tensors (k, d, d, d) of the same norm."""
    d = _dimension(len(directions))
    return np.asarray(Cubic(d).to_tensor(directions)).T.reshape(-1, d, d, d)


def crossed_contractions(tensors: np.ndarray) -> np.ndarray:
    """Matrix R_ij = <A_i, P_j A_i>, (p, p), where P_j is the operator of f_j² / 2 in Hermite degree 6."""
    # P_j = |A_j><A_j| + 9 C_j with C_j(U)_efg = sym U_abc A_abe A_cfg, so <A_i, C_j A_i> = tr (A_i
    # (x)_2 A_j)².
    count, d = tensors.shape[:2]
    flat = tensors.reshape(count * d, d * d)
    crossed = np.empty((count, count))
    for i, tensor in enumerate(tensors):
        m = (tensor.reshape(d, d * d) @ flat.T).reshape(d, count, d)
        crossed[i] = np.einsum("cje,ejc->j", m, m)
    return (flat.reshape(count, -1) @ flat.reshape(count, -1).T) ** 2 + 9 * crossed


def cubic_operator(tensors: np.ndarray, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Apply the degree-6 operator of sum_i c_i f_i² / 2, without spikes, to columns (D, k)."""
    # tau_6 = sum_i c_i / 2 sym(A_i (x) A_i) 6! / 6. Two of its twenty pairings give the spike
    # c_i A_i A_i^T, the other eighteen the operator 9 c_i C_i.
    d = tensors.shape[1]
    engine = Cubic(d)

    def apply(columns: np.ndarray) -> np.ndarray:
        count = columns.shape[1]
        U = np.asarray(engine.to_tensor(columns)).T.reshape(count * d, d * d)
        image = np.zeros((count, d, d * d))
        for c, A in zip(weights, tensors.reshape(-1, d, d * d), strict=True):
            # one term 9 c sym U_abc A_abe A_cfg
            image += 9 * c * ((U @ A.T).reshape(count, d, d).transpose(0, 2, 1) @ A)
        return np.asarray(engine.from_tensor(image.reshape(count, -1).T))

    return apply


def draw_cubic(directions: np.ndarray, draws: int, rng: np.random.Generator) -> CubicSample:
    """Draw samples of the forms of orthonormal directions, in blocks."""
    forms = _Forms(directions)
    sizes = [min(2_048, draws - start) for start in range(0, draws, 2_048)]
    return joined([forms(rng.standard_normal((size, forms.dimension))) for size in sizes])


def cubic_sample(directions: np.ndarray, blocks: Sequence[np.ndarray]) -> CubicSample:
    """Compute the cubic forms of inputs, given in blocks of shape (m, d)."""
    forms = _Forms(directions)
    return joined([forms(X) for X in blocks])


def joined(samples: Sequence[CubicSample]) -> CubicSample:
    """Concatenate blocks of draws that have the same directions."""
    names = [field.name for field in fields(CubicSample)][1:]
    arrays = {name: np.concatenate([getattr(s, name) for s in samples]) for name in names}
    return CubicSample(samples[0].directions, **arrays)


class _Forms:
    """Computation of the arrays of a `CubicSample` from a block of inputs."""

    def __init__(self, directions: np.ndarray) -> None:
        self.directions = directions
        d = self.dimension = _dimension(len(directions))
        tensors = tensors_of(directions)
        rows, columns = np.triu_indices(d)
        scale = np.where(rows == columns, 1.0, 2.0)[:, None]
        # For all vectors together, x_a x_b U_abc is one product with the pairs x_a x_b, a <= b.
        table = tensors[:, rows, columns, :].transpose(1, 0, 2).reshape(rows.size, -1)
        self.table = (scale * table).astype(np.float32)
        self.traces = np.einsum("iaac->ic", tensors)
        forms = np.einsum("iabc,iabd->icd", tensors, tensors, optimize=True)
        self.forms = (scale * forms[:, rows, columns].T).astype(np.float32)  # x^T S x = |A x|²

    def __call__(self, X: np.ndarray) -> CubicSample:
        """Compute the sample of a block of inputs (m, d)."""
        d = self.dimension
        pairs = products_of_pairs(columns_of(X.astype(np.float32))).T
        a = (pairs @ self.table).astype(np.float64).reshape(len(X), -1, d)  # A x x
        moved = (pairs @ self.forms).astype(np.float64)
        s = np.sum(X.astype(np.float64) ** 2, axis=1)
        cubes = np.einsum("nic,nc->ni", a, X)  # <A, x (x) x (x) x>
        along = X @ self.traces.T
        f = (cubes - 3 * along) / np.sqrt(6)  # <A, He_3(x)> / sqrt(6)
        # I_4(A (x)_1 A) = |a - t|² - 4 |A x|² + 2, t the trace of A; I_2(A (x)_2 A) = |A x|² - 1
        b = a - self.traces
        bb = np.sum(b**2, axis=2)
        lower = 1.5 * (bb - 4 * moved + 2) + 3 * (moved - 1)
        # sum_|alpha|=3 He_alpha² / alpha!: coefficient of t³ of (1 - t²)^(-d/2) e^(s t / (1 + t))
        squared_norm = s**3 / 6 - s**2 + s + d / 2 * s
        # K A = f F - (3/2) sym(b (x) X) + 3 sym(M (x) x) - A with X = x x^T - I, M = A x, a = M x,
        # b = a - t; inner products of the four terms, b . x = <M, X> = cubes - along
        aa, ab, bx, column = np.sum(a**2, axis=2), np.sum(a * b, axis=2), cubes - along, s[:, None]
        b_terms = (bb * ((column - 1) ** 2 + d - 1) + 2 * (bb + (column - 2) * bx**2)) / 3
        m_terms = (moved * column + 2 * aa) / 3
        b_with_m = (2 * (column - 1) * ab + bx**2) / 3
        f_with_b = bx * (column**2 - 4 * column + d + 2) / np.sqrt(6)
        f_with_m = ((column - 2) * cubes - column * along) / np.sqrt(6)
        images = (
            f**2 * (squared_norm[:, None] - 2) + 2.25 * b_terms + 9 * m_terms + 1
            - 3 * f * f_with_b + 6 * f * f_with_m - 9 * b_with_m + 3 * bb - 6 * moved
        )  # fmt: skip
        return CubicSample(self.directions, s, squared_norm, f, f**2 - 1 - lower, images)
