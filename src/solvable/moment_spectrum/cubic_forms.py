r"""Features of degree 3 sample by sample: forms of the input and the parts of highest chaos.

With directions read as symmetric tensors of three indices and (x)_r contracting r of them,

    f_U f_V - <U, V> = (1/6) I_6(U (x) V) + (3/2) I_4(U (x)_1 V) + 3 I_2(U (x)_2 V),

I_m(S) = <S, He_m(x)>. The Wick-corrected kernel K keeps the first term.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from math import comb

import numpy as np

from solvable.moment_spectrum.highest_chaos import chaos_eigenvalues
from solvable.moment_spectrum.sample_kernel import SampleKernel, corrected_numbers, plain_kernel
from solvable.operators._cubic import Cubic
from solvable.operators._engines import columns_of, products_of_pairs


@dataclass(frozen=True)
class CubicSample:
    """Draws that the law of a cubic first layer is made of, m of them for p features."""

    directions: np.ndarray  # A, orthonormal columns (D, p)
    couplings: np.ndarray  # V, (3, D, p): what each chaos of the index takes A_i to
    squared_input_norm: np.ndarray  # |x|^2, (m,)
    squared_norm: np.ndarray  # |F|^2, (m,)
    latent: np.ndarray  # f_i, (m, p)
    fourth: np.ndarray  # (3/2) I_4(A_i (x)_1 A_i), (m, p)
    second: np.ndarray  # 3 I_2(A_i (x)_2 A_i), (m, p)
    traced: np.ndarray  # x^T H_i x of the traceless part of A_i (x)_1 A_i traced once, (m, p)
    twice_traced: np.ndarray  # the same of A_i (x) A_i traced twice, (m, p)
    images: np.ndarray  # |K A_i|^2, (m, p)
    crossed: np.ndarray  # f_i f_V for each V, (3, m, p)
    crossed_sixth: np.ndarray  # <V_6, K A_i>, (m, p)

    @property
    def sixth(self) -> np.ndarray:
        """<A_i, K A_i>, shape (m, p)."""
        return np.asarray(self.latent**2 - 1 - self.fourth - self.second)

    @cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of K, shape (m, 6), and how often each occurs."""
        d = _dimension(len(self.directions))
        columns, counts = zip(*chaos_eigenvalues(self.squared_input_norm, d, 3), strict=True)
        return np.stack(columns, axis=1), np.array(counts, dtype=float)

    @property
    def kernel(self) -> SampleKernel:
        """The numbers of the corrected kernel."""
        values, counts = self.spectrum
        return corrected_numbers(
            self.latent, values**2 @ counts, self.sixth, self.images, len(self.directions)
        )

    @property
    def plain(self) -> SampleKernel:
        """The numbers of F F^T - I."""
        return plain_kernel(
            latent=self.latent, squared_norm=self.squared_norm, n_features=len(self.directions)
        )


def _dimension(n_features: int) -> int:
    """Dimension d of D = d (d + 1) (d + 2) / 6 features."""
    d = round((6 * n_features) ** (1 / 3)) - 1
    while comb(d + 2, 3) < n_features:
        d += 1
    return d


def tensors_of(directions: np.ndarray) -> np.ndarray:
    """Columns (D, k) as symmetric tensors (k, d, d, d) of the same norm."""
    d = _dimension(len(directions))
    return np.asarray(Cubic(d).to_tensor(directions)).T.reshape(-1, d, d, d)


def crossed_contractions(tensors: np.ndarray) -> np.ndarray:
    """R_ij = <A_i, P_j A_i> of the sixth chaos of f_j^2 / 2, shape (p, p)."""
    # P_j = |A_j><A_j| + 9 C_j, C_j(U)_efg = sym U_abc A_abe A_cfg: <A_i, C_j A_i> = tr (A_i (x)_2 A_j)^2
    count, d = tensors.shape[:2]
    flat = tensors.reshape(count * d, d * d)
    crossed = np.empty((count, count))
    for i, tensor in enumerate(tensors):
        m = (tensor.reshape(d, d * d) @ flat.T).reshape(d, count, d)
        crossed[i] = np.einsum("cje,ejc->j", m, m)
    return (flat.reshape(count, -1) @ flat.reshape(count, -1).T) ** 2 + 9 * crossed


def traceless(matrices: np.ndarray) -> np.ndarray:
    """Symmetric matrices (..., d, d) without their traces."""
    d = matrices.shape[-1]
    traces = np.trace(matrices, axis1=-2, axis2=-1) / d
    return np.asarray(matrices - traces[..., None, None] * np.eye(d))


def single_traces(tensors: np.ndarray) -> np.ndarray:
    """Trace over one pair of indices of sym(A_i (x)_1 A_i), shape (p, d, d)."""
    # W_abde = A_abc A_dec has traces A_aac A_dec and, twice, A_abc A_adc, of its three pairings.
    t = np.einsum("iaac->ic", tensors)
    return np.asarray(
        np.einsum("ic,idec->ide", t, tensors) / 3
        + 2 * np.einsum("iabc,iabd->icd", tensors, tensors, optimize=True) / 3
    )


def double_traces(tensors: np.ndarray) -> np.ndarray:
    """Matrix Z_i with <sym(A_i (x) A_i), sym(I (x) I (x) Q)> = <Z_i, Q>, shape (p, d, d)."""
    # Of 45 pairings of six slots with I I Q: Q across 18 A_abc A_abd and 9 t t^T, inside 18 A t.
    t = np.einsum("iaac->ic", tensors)
    across = np.einsum("iabc,iabd->icd", tensors, tensors, optimize=True)
    inside = np.einsum("iabc,ic->iab", tensors, t)
    return np.asarray(2 * across / 5 + t[:, :, None] * t[:, None, :] / 5 + 2 * inside / 5)


class CubicForms:
    """All forms of a block of inputs that a :class:`CubicSample` holds."""

    def __init__(self, directions: np.ndarray, couplings: np.ndarray) -> None:
        self.directions, self.couplings = directions, couplings
        self.features = directions.shape[1]
        d = self.dimension = _dimension(len(directions))
        everything = np.concatenate([directions, *couplings], axis=1)
        self.tensors = tensors_of(everything)
        count = everything.shape[1]
        rows, columns = np.triu_indices(d)
        scale = np.where(rows == columns, 1.0, 2.0)[:, None]
        # x_a x_b U_abc of all vectors is one product with the pairs x_a x_b, a <= b.
        table = self.tensors[:, rows, columns, :].transpose(1, 0, 2).reshape(rows.size, count * d)
        self.table = (scale * table).astype(np.float32)
        self.traces = np.einsum("iaac->ic", self.tensors)
        own, sixth = self.tensors[: self.features], self.tensors[self.features : 2 * self.features]
        forms = np.einsum("iabc,iabd->icd", own, own, optimize=True)
        mixed = np.einsum("iabc,iabd->icd", own, sixth, optimize=True)
        mixed = (mixed + mixed.transpose(0, 2, 1)) / 2
        # Forms x^T S x: |A x|^2, <A x, V x>, those of the traced fourth and sixth chaos.
        traced = traceless(single_traces(own)), traceless(double_traces(own))
        stacked = np.concatenate([forms, mixed, *traced])
        self.forms = (scale * stacked[:, rows, columns].T).astype(np.float32)

    def __call__(self, X: np.ndarray) -> CubicSample:
        """Sample of a block of inputs (m, d)."""
        p, d = self.features, self.dimension
        pairs = products_of_pairs(columns_of(X.astype(np.float32))).T
        images = (pairs @ self.table).astype(np.float64).reshape(len(X), -1, d)
        moved, mixed, traced, twice = np.split((pairs @ self.forms).astype(float), 4, axis=1)
        s = np.sum(X**2, axis=1)
        cubes = np.einsum("nic,nc->ni", images, X)  # <U, x (x) x (x) x>
        along = X @ self.traces.T
        latent = (cubes - 3 * along) / np.sqrt(6)  # f_U = <U, He_3(x)> / sqrt(6)
        f, t, v = latent[:, :p], self.traces, images - self.traces
        inner, with_trace = images[:, :p], t[:p]
        # I_4(U (x)_1 V) = a_U . a_V - t_U . a_V - t_V . a_U - 4 <U x, V x> + t_U . t_V + 2 <U, V>
        # with a_U = U x x, t_U its trace; I_2(U (x)_2 V) = <U x, V x> - <U, V>
        fourth = np.sum((inner - with_trace) ** 2, axis=2) - 4 * moved + 2
        crossed_fourth = np.sum(v[:, :p] * v[:, p : 2 * p], axis=2) - 4 * mixed
        crossed = np.stack([f * latent[:, k * p : (k + 1) * p] for k in (1, 2, 3)])
        return CubicSample(
            directions=self.directions,
            couplings=self.couplings,
            squared_input_norm=s,
            squared_norm=_third_norm(s, d),
            latent=f,
            fourth=1.5 * fourth,
            second=3 * (moved - 1),
            traced=traced,
            twice_traced=twice,
            images=self._images(s, f, inner, cubes[:, :p], along[:, :p], moved),
            crossed=crossed,
            crossed_sixth=crossed[0] - 1.5 * crossed_fourth - 3 * mixed,
        )

    def _images(
        self,
        s: np.ndarray,
        f: np.ndarray,
        a: np.ndarray,
        cubes: np.ndarray,
        along: np.ndarray,
        moved: np.ndarray,
    ) -> np.ndarray:
        """|K A|^2 of K A = f F - (3/2) sym(b (x) X) + 3 sym(M (x) x) - A."""
        # X = x x^T - I, M = A x, a = M x, b = a - t; inner products of the four terms
        d, s = self.dimension, s[:, None]
        b = a - self.traces[: self.features]
        bb, aa, ab = np.sum(b**2, axis=2), np.sum(a**2, axis=2), np.sum(a * b, axis=2)
        bx = cubes - along  # b . x, and <M, X>
        squared_norm = _third_norm(s, d)
        b_terms = (bb * ((s - 1) ** 2 + d - 1) + 2 * (bb + (s - 2) * bx**2)) / 3
        m_terms = (moved * s + 2 * aa) / 3
        b_with_m = (2 * (s - 1) * ab + bx**2) / 3
        f_with_b = bx * (s**2 - 4 * s + d + 2) / np.sqrt(6)
        f_with_m = ((s - 2) * cubes - s * along) / np.sqrt(6)
        return np.asarray(
            f**2 * (squared_norm - 2) + 2.25 * b_terms + 9 * m_terms + 1
            - 3 * f * f_with_b + 6 * f * f_with_m - 9 * b_with_m + 3 * bb - 6 * moved
        )  # fmt: skip


def _third_norm(s: np.ndarray, d: int) -> np.ndarray:
    """|F|^2 of degree 3 from |x|^2."""
    # sum_|alpha|=3 He_alpha^2 / alpha!: coefficient of t^3 of (1 - t^2)^(-d/2) e^(s t / (1 + t))
    return np.asarray(s**3 / 6 - s**2 + s + d / 2 * s)


def joined(samples: list[CubicSample]) -> CubicSample:
    """Blocks of draws of the same directions, one after the other."""
    fixed = {"directions": samples[0].directions, "couplings": samples[0].couplings}
    arrays = {
        field.name: np.concatenate(
            [getattr(sample, field.name) for sample in samples],
            axis=1 if field.name == "crossed" else 0,
        )
        for field in fields(CubicSample)
        if field.name not in fixed
    }
    return CubicSample(**fixed, **arrays)
