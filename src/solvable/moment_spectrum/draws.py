"""Draws of labels, latent features and norms: what the moments of the theory are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.moment_spectrum.cubic import draw_cubic
from solvable.moment_spectrum.cubic_forms import CubicSample
from solvable.moment_spectrum.orthogonal_form import OrthogonalForm
from solvable.moment_spectrum.sample_kernel import SampleKernel, corrected_kernel
from solvable.moment_spectrum.target_protocol import MomentTarget

Readout = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class LatentSample:
    r"""Draws of everything that the moments are made of.

    Attributes
    ----------
    labels : ndarray of shape (m,)
        :math:`y`.
    latent : ndarray of shape (m, p)
        :math:`h_i=\langle A_i,F\rangle`, :math:`\|A_i\|=1`.
    squared_norm : ndarray of shape (m,)
        :math:`\|F\|^2`, of mean D.
    corrected : SampleKernel, optional
        Exact numbers of the Wick-corrected kernel; degrees 2 and 3.
    strengths : ndarray of shape (p,), optional
        :math:`\lambda_i` in the index :math:`\frac1{\sqrt2}\sum_i\lambda_i(h_i^2-1)`, which serves
        as control variate.
    gram : ndarray of shape (p, p), optional
        :math:`\langle A_i,A_j\rangle`, with which the control variate has a known mean: Gaussian
        features and degree 2.
    matrices : ndarray of shape (p, d, d), optional
        :math:`M_i` of features of degree 2, which make the background.
    dimension : int, optional
        d of features of degree 2 that were drawn over all rotations of their matrices.
    mixing : ndarray of shape (p, p), optional
        Where the latent features are an orthonormal basis in place of directions that are not
        orthogonal: the unit directions in it, a column each.
    gaussian : bool
        Whether the features are Gaussian themselves: nothing then moves the bulk.
    cubic : CubicSample, optional
        Forms of features of degree 3.
    """

    labels: np.ndarray
    latent: np.ndarray
    squared_norm: np.ndarray
    corrected: SampleKernel | None = None
    strengths: np.ndarray | None = None
    gram: np.ndarray | None = None
    matrices: np.ndarray | None = None
    dimension: int | None = None
    gaussian: bool = False
    mixing: np.ndarray | None = None
    cubic: CubicSample | None = None

    def rows(self, rows: slice) -> LatentSample:
        """Some of the draws."""
        return replace(
            self,
            labels=self.labels[rows],
            latent=self.latent[rows],
            squared_norm=self.squared_norm[rows],
            corrected=self.corrected.rows(rows) if self.corrected else None,
        )


LatentDraw = Callable[
    [int, np.random.Generator], LatentSample | tuple[np.ndarray, np.ndarray, np.ndarray]
]
"""Draws n samples: ``draw(n, rng) -> (y, h, squared_norm)``, or a :class:`LatentSample`."""


def target_draw(target: MomentTarget) -> LatentDraw:
    """Draw of a target, in orthonormal directions where its own are not."""
    directions, form = target.directions, OrthogonalForm.orthonormal(target.weights)
    if target.first_layer != "orthonormal":
        basis, root = np.linalg.qr(directions)
        form = OrthogonalForm.of(root, target.weights)
        directions = basis @ form.turn
    if target.inputs == "hermite" and target.degree == 2:
        draw = quadratic_draw(
            matrices=target.feature_map.to_symmetric(directions),
            weights=form.strengths,
            readout=lambda index: np.asarray(target.label(index + form.offset)),
        )
        return lambda n, rng: replace(_whole(draw(n, rng)), mixing=form.mixing)
    if target.inputs == "hermite" and target.degree == 3:
        return lambda n, rng: _cubic(target, directions, form, n, rng)
    return lambda n, rng: gaussian_sample(target, form, n, rng)


def _whole(drawn: LatentSample | tuple[np.ndarray, np.ndarray, np.ndarray]) -> LatentSample:
    return drawn if isinstance(drawn, LatentSample) else LatentSample(*drawn)


def gaussian_sample(
    target: MomentTarget, form: OrthogonalForm, n: int, rng: np.random.Generator
) -> LatentSample:
    """Draws of Gaussian features: those of any first layer with this form."""
    latent = rng.standard_normal((n, target.features))
    rest = target.n_features_total - target.features
    outside = rng.chisquare(rest, n) if rest else 0.0
    return LatentSample(
        np.asarray(target.label(form.index(latent))),
        latent,
        np.sum(latent**2, axis=1) + outside,
        strengths=form.strengths,
        gram=np.eye(target.features),
        gaussian=True,
        mixing=form.mixing,
    )


def _cubic(
    target: MomentTarget,
    directions: np.ndarray,
    form: OrthogonalForm,
    n: int,
    rng: np.random.Generator,
) -> LatentSample:
    sample = draw_cubic(
        directions,
        form.strengths,
        lambda rows: rng.standard_normal((rows, target.dimension)),
        n,
    )
    return LatentSample(
        np.asarray(target.label(form.index(sample.latent))),
        sample.latent,
        sample.squared_norm,
        sample.kernel,
        form.strengths,
        mixing=form.mixing,
        cubic=sample,
    )


def gaussian_draw(
    *, weights: np.ndarray, n_features: int, readout: Readout | None = None
) -> LatentDraw:
    r"""Draw of the Gaussian-equivalent target with orthonormal directions.

    .. math:: h\sim N(0,I_p),\qquad y=g\Big(\frac1{\sqrt2}\sum_i\lambda_i(h_i^2-1)\Big),

    :math:`\|F\|^2=\|h\|^2+\chi^2_{D-p}`.
    """
    strengths = np.asarray(weights, dtype=np.float64)
    if strengths.ndim != 1 or not 1 <= strengths.size <= n_features:
        raise InvalidParameter(
            f"weights have shape {strengths.shape} and n_features is {n_features}; allowed: (p,) "
            "with 1 <= p <= n_features."
        )
    rest = n_features - strengths.size

    def draw(n: int, rng: np.random.Generator) -> LatentSample:
        latent = rng.standard_normal((n, strengths.size))
        outside = rng.chisquare(rest, n) if rest else 0.0
        return LatentSample(
            _label(latent, strengths, readout),
            latent,
            np.sum(latent**2, axis=1) + outside,
            strengths=strengths,
            gram=np.eye(strengths.size),
            gaussian=True,
        )

    return draw


def quadratic_draw(
    *, matrices: np.ndarray, weights: np.ndarray, readout: Readout | None = None
) -> LatentDraw:
    r"""Draw of the target with true features of degree 2, corrected kernel included.

    .. math:: h_i=\frac{x^\top M_ix-\mathrm{tr}M_i}{\sqrt2},\qquad x\sim N(0,I_d).
    """
    M, strengths = np.asarray(matrices, np.float64), np.asarray(weights, np.float64)
    if M.ndim != 3 or M.shape[1] != M.shape[2] or strengths.shape != M.shape[:1]:
        raise InvalidData(
            f"matrices have shape {M.shape} and weights {strengths.shape}; allowed: (p, d, d), (p,)."
        )
    norms = np.linalg.norm(M, axis=(1, 2))
    if not (norms > 0).all():
        raise InvalidData("a matrix is zero; a feature needs a direction.")
    M = M / norms[:, None, None]
    features, d = M.shape[:2]
    traces = np.trace(M, axis1=1, axis2=2)
    stacked = M.transpose(1, 0, 2).reshape(d, -1)
    gram = np.einsum("iab,jab->ij", M, M)

    def draw(n: int, rng: np.random.Generator) -> LatentSample:
        latent, images, s = np.empty((n, features)), np.empty((n, features)), np.empty(n)
        for start in range(0, n, 4_096):
            rows = slice(start, min(start + 4_096, n))
            X = rng.standard_normal((rows.stop - start, d))
            moved = (X @ stacked).reshape(len(X), features, d)
            images[rows] = np.einsum("npd,npd->np", moved, moved)
            latent[rows] = (np.einsum("nd,npd->np", X, moved) - traces) / np.sqrt(2)
            s[rows] = np.einsum("nd,nd->n", X, X)
        kernel = corrected_kernel(
            latent=latent,
            squared_input_norm=s,
            squared_images=images,
            traces=traces,
            dimension=d,
        )
        return LatentSample(
            _label(latent, strengths, readout),
            latent,
            (s**2 - 2 * s + d) / 2,  # |F|^2 = |x x^T - I|_F^2 / 2
            kernel,
            strengths,
            gram,
            M,
        )

    return draw


def _label(latent: np.ndarray, weights: np.ndarray, readout: Readout | None) -> np.ndarray:
    index = (latent**2 - 1) @ weights / np.sqrt(2)
    return index if readout is None else np.asarray(readout(index), dtype=np.float64)
