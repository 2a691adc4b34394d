"""nDCG of a teacher's pooled score, which limits every dense model."""

from __future__ import annotations

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.models.late_interaction.labels import STEP, score_density
from solvable.models.late_interaction.moments import query_scores
from solvable.models.late_interaction.teacher import LateInteractionTeacher
from solvable.models.late_interaction.theory import check_gaussian_tokens


def pooled_ndcg(teacher: LateInteractionTeacher, *, documents: int, depth: int = 10) -> float:
    r"""Compute the nDCG of the pooled score with the teacher's kernel, the ceiling of a dense model.

    Given the query, the score is :math:`s=\rho x+R` with the pooled score x, normal and independent of R;
    x given s is taken for normal, and the rank of the relevant document is binomial. Within 0.03 of
    simulations. derivations/late-interaction (10), (11).

    Parameters
    ----------
    teacher : LateInteractionTeacher
        Teacher with independent tokens.
    documents, depth : int
        Number M of documents, from 2 to 100,000, and number of ranks that count, at least 1.

    Returns
    -------
    float
        Mean nDCG over queries.

    Examples
    --------
    >>> round(pooled_ndcg(LateInteractionTeacher(), documents=60), 2)
    0.29
    """
    check_gaussian_tokens(teacher)
    check_integer("documents", documents, 2, 100_000)
    check_integer("depth", depth, 1)
    place, density = score_density(teacher.query_tokens, teacher.document_tokens)
    slope = np.gradient(np.log(np.maximum(density, 1e-300)), STEP)
    curvature = np.gradient(slope, STEP)
    distribution = np.cumsum(density) * STEP - density * STEP / 2
    largest = documents * density * np.clip(distribution, 0, 1) ** (documents - 1)
    inside = density > 1e-9 * density.max()
    # Of the grid every fifth score is used, of the largest scores those that occur.
    columns = np.stack([place, density, largest, slope, np.minimum(curvature, 0)])[:, inside][
        :, ::5
    ]
    mean = [_ndcg(columns, rho, documents, depth) for rho in _correlations(teacher)]
    return float(np.mean(mean))


def _correlations(teacher: LateInteractionTeacher) -> np.ndarray:
    """Twelve quantiles of the correlation of pooled and true scores over queries."""
    lam = teacher.strengths
    rows = int(np.clip(2e6 / (teacher.query_tokens * lam.size), 500, 20_000))
    stream = random_stream("late interaction", "correlations")
    tokens = stream.standard_normal((rows, teacher.query_tokens, lam.size)) * lam
    _, deviation = query_scores(tokens, teacher.document_tokens, 0.0)
    # rho(Q)² = |S q|² / (L_d Var(s|Q))   (late-interaction 10)
    summed = np.linalg.norm(tokens.sum(axis=1), axis=1)
    rho = summed / deviation / np.sqrt(teacher.document_tokens)
    return np.asarray(np.quantile(rho, (np.arange(12) + 0.5) / 12))


def _ndcg(columns: np.ndarray, rho: float, documents: int, depth: int) -> float:
    """Mean nDCG of a query with correlation rho between pooled and true scores."""
    from scipy.special import ndtr
    from scipy.stats import binom

    place, density, largest, slope, curvature = columns
    inner, weights = np.polynomial.hermite_e.hermegauss(16)
    weights = weights / weights.sum()
    mean = -rho * slope
    spread = np.sqrt(np.maximum(1 + rho**2 * curvature, 1e-4))
    chosen = np.flatnonzero(largest > 1e-4 * largest.max())
    x = mean[chosen, None] + spread[chosen, None] * inner
    # a = P(x' > x | s' < s)   (late-interaction 11)
    above = ndtr((mean - x[..., None]) / spread)
    lower = density * (place < place[chosen, None])
    above = np.einsum("tis,ts->ti", above, lower) / lower.sum(axis=1, keepdims=True)
    ranks = np.arange(min(depth, documents))
    gains = binom.pmf(ranks, documents - 1, above[..., None]) @ (1 / np.log2(ranks + 2))
    return float(largest[chosen] @ gains @ weights / largest[chosen].sum())
