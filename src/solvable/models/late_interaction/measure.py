"""Measure one replicate of late interaction: overlaps of the spectral estimator, or a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidData
from solvable.frame.points import Metrics, listed
from solvable.models.late_interaction.parameters import TEST_DOCUMENTS, LateInteractionParameters
from solvable.models.late_interaction.phases import (
    Checkpoint,
    Kind,
    Phase,
    PhaseData,
    Pipeline,
    draw_phases,
    pipeline_phases,
    train_phases,
)
from solvable.models.late_interaction.scoring import maxsim, ndcg, pooled
from solvable.models.late_interaction.student import Scores
from solvable.models.late_interaction.teacher import LateInteractionTeacher, label_weights

TEST_QUERIES = 300
"""Number of fresh queries on which rankings are scored."""

SIMPLER: Mapping[str, Pipeline | None] = {"dense": None, "a": "dense", "b": "a", "c": "b"}
"""Pipeline with one phase of MaxSim scores less."""

STAGES = ("start", *get_args(Kind))
"""Names of the students before training and after each phase."""

NOT_MEASURED: Metrics = dict.fromkeys(
    (
        *("squared_overlap", "threshold_queries", "signal_to_noise", "pooled_fraction"),
        *("ndcg", "maxsim_ndcg", "pooled_ndcg", "gain", "first_phase_gain"),
        *("phase_ndcg", "phase_documents", "documents", "multi_vector_documents"),
        *("kernel_cosine", "effective_rank", *(f"{stage}_eigenvalues" for stage in STAGES)),
    )
)
"""All metrics, as not measured."""

Reading = tuple[np.ndarray, Scores]
"""A factor of a kernel with the scores by which it ranks documents."""


def draw_teacher(
    parameters: LateInteractionParameters, rng: np.random.Generator
) -> LateInteractionTeacher:
    """Draw the directions of a replicate."""
    return LateInteractionTeacher(
        dimension=parameters.dimension,
        rank=parameters.rank,
        decay=parameters.decay,
        query_tokens=parameters.query_tokens,
        document_tokens=parameters.document_tokens,
        seed=int(rng.integers(2**31)),
    )


def teacher(
    parameters: LateInteractionParameters, rng: np.random.Generator
) -> Mapping[str, np.ndarray]:
    """Return the directions and strengths of a replicate."""
    drawn = draw_teacher(parameters, rng)
    return {"directions": drawn.directions, "strengths": drawn.strengths}


def measure(parameters: LateInteractionParameters, rng: np.random.Generator) -> Metrics:
    """Measured metrics of one replicate."""
    drawn = draw_teacher(parameters, rng)
    if parameters.pipeline == "none":
        return {**NOT_MEASURED, **_spectral(parameters, drawn, rng)}
    return {**NOT_MEASURED, **_trained(parameters, parameters.pipeline, drawn, rng)}


def _spectral(
    parameters: LateInteractionParameters, target: LateInteractionTeacher, rng: np.random.Generator
) -> Metrics:
    """Overlaps of the spectral estimator, thresholds, and the pooled fraction of the same scores."""
    n, d = parameters.queries, target.dimension
    moment, sums = np.zeros((d, d)), np.zeros(3)
    for part in target.chunks(n, candidates=parameters.candidates, rng=rng):
        weights = label_weights(part.scores, parameters.label, rng)
        moment += moment_matrix(part.queries, part.documents, weights) * len(weights) / n
        vectors = pooled(part.queries, part.documents, target.factor)
        both = [x - x.mean(axis=1, keepdims=True) for x in (part.scores, vectors)]
        sums += [np.sum(both[i] * both[j]) for i, j in ((0, 0), (1, 1), (0, 1))]
    # entries off the diagonal, orthogonal to the true directions, have variance s² = v L_q L_d / (2n)
    rest = np.eye(d) - target.directions @ target.directions.T
    noise = float(np.sum((rest @ moment @ rest) ** 2)) / ((d - target.rank) * (d - target.rank + 1))
    heights = np.einsum("dk,de,ek->k", target.directions, moment, target.directions)
    with np.errstate(divide="ignore"):
        # n_k = n d s² / theta_k²   (late-interaction 18)
        thresholds = np.where(heights > 0, n * d * noise / heights**2, np.inf)
    signal = float(np.sum(moment * target.kernel)) / np.linalg.norm(target.kernel)
    return {
        "squared_overlap": target.squared_overlap(moment).tolist(),
        "threshold_queries": listed(thresholds),
        "signal_to_noise": float(signal / np.sqrt(n * noise)),
        # rho² = Cov(s, x)² / (Var s Var x) within queries, for the pooled score x   (late-interaction 9)
        "pooled_fraction": float(sums[2] ** 2 / (sums[0] * sums[1])),
    }


def _trained(
    parameters: LateInteractionParameters,
    pipeline: Pipeline,
    target: LateInteractionTeacher,
    rng: np.random.Generator,
) -> Metrics:
    """Metrics of a pipeline, and its lead over the next simpler one on the same data."""
    seed = int(rng.integers(2**63))
    data = draw_phases(
        target,
        _phases(parameters, pipeline),
        candidates=parameters.candidates,
        rng=random_stream("late interaction", "pipeline", seed),
    )
    students = _students(parameters, target, pipeline, data, seed)
    simpler = SIMPLER[pipeline]
    scores = [phase.scores for phase in _phases(parameters, pipeline)]
    last = students[-1].factor
    readings: dict[str, Reading] = {
        "maxsim_ndcg": (last, "multi-vector"),
        "pooled_ndcg": (target.factor, "dense"),
    }
    for k, student in enumerate(students):
        readings[STAGES[k]] = student.factor, scores[max(k - 1, 0)]
    if simpler is not None:
        others = _students(parameters, target, simpler, data, seed)
        readings["simpler"] = others[-1].factor, _phases(parameters, simpler)[-1].scores
        readings["simpler first"] = others[1].factor, "multi-vector"
    found = score_readings(target, readings, rng)
    stages = [found[stage] for stage in STAGES]
    return {
        "squared_overlap": target.squared_overlap(last.T @ last).tolist(),
        "ndcg": stages[-1],
        "maxsim_ndcg": found["maxsim_ndcg"],
        "pooled_ndcg": found["pooled_ndcg"],
        "gain": None if simpler is None else stages[-1] - found["simpler"],
        "first_phase_gain": stages[1] - found["simpler first"] if simpler == "b" else None,
        "phase_ndcg": stages,
        "phase_documents": [float(student.documents) for student in students],
        "documents": float(students[-1].documents),
        "multi_vector_documents": float(students[-1].multi_vector_documents),
        **_spectra(target, students),
    }


def _phases(parameters: LateInteractionParameters, pipeline: Pipeline) -> tuple[Phase, ...]:
    """Phases of a pipeline with the numbers of queries of the parameters."""
    return pipeline_phases(
        pipeline,
        queries=parameters.queries,
        supervised_queries=parameters.supervised_queries,
        distillation_queries=parameters.distillation_queries,
    )


def _students(
    parameters: LateInteractionParameters,
    target: LateInteractionTeacher,
    pipeline: Pipeline,
    data: Sequence[PhaseData],
    seed: int,
) -> list[Checkpoint]:
    """Train a pipeline; the same seed gives the same start and order to all pipelines."""
    return train_phases(
        target,
        _phases(parameters, pipeline),
        candidates=parameters.candidates,
        width=min(parameters.dimension, max(16, 2 * parameters.rank)),
        rng=random_stream("late interaction", "pipeline", seed),
        data=data,
    )


def score_readings(
    target: LateInteractionTeacher, readings: Mapping[str, Reading], rng: np.random.Generator
) -> dict[str, float]:
    """Mean nDCG of each pair of a factor and a kind of score, all on the same fresh queries."""
    values: dict[str, list[np.ndarray]] = {name: [] for name in readings}
    for part in target.chunks(TEST_QUERIES, candidates=TEST_DOCUMENTS, rng=rng):
        relevant = part.scores.argmax(axis=1)
        for name, (factor, scores) in readings.items():
            ranked = (pooled if scores == "dense" else maxsim)(part.queries, part.documents, factor)
            values[name].append(ndcg(ranked, relevant))
    return {name: float(np.concatenate(parts).mean()) for name, parts in values.items()}


def _spectra(target: LateInteractionTeacher, students: Sequence[Checkpoint]) -> Metrics:
    """Cosine with the true kernel, effective rank and eigenvalues of each student's kernel."""
    kernels = [student.factor.T @ student.factor for student in students]
    size = np.linalg.norm(target.kernel)
    values = [np.linalg.svd(student.factor, compute_uv=False) ** 2 for student in students]
    metrics: Metrics = {
        # <S, S*> / (|S| |S*|)
        "kernel_cosine": [
            float(np.sum(S * target.kernel) / (np.linalg.norm(S) * size)) for S in kernels
        ],
        # (Tr S)² / Tr S²
        "effective_rank": [float(v.sum() ** 2 / np.sum(v**2)) for v in values],
    }
    for stage, spectrum in zip(STAGES, values, strict=True):
        metrics[f"{stage}_eigenvalues"] = (spectrum / spectrum.sum()).tolist()
    return metrics


def moment_matrix(queries: np.ndarray, documents: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Moment matrix of summed query and document tokens, weighted by labels, shape (d, d)."""
    # Queries have shape (n, d) or (n, L_q, d), documents (n, K, d) or (n, K, L_d, d), weights (n, K).
    # Its mean is (K - 1) L_q S for Gaussian tokens and scores as labels; it is the first gradient step of
    # contrastive training. Matrices of several blocks of queries average to that of all.
    q, d, y = (np.asarray(values, dtype=np.float64) for values in (queries, documents, weights))
    q = q.sum(axis=1) if q.ndim == 3 else q
    d = d.sum(axis=2) if d.ndim == 4 else d
    fits = q.ndim == 2 and d.ndim == 3 and d.shape[:2] == y.shape
    if not fits or not q.size or q.shape != (d.shape[0], d.shape[2]):
        raise InvalidData(
            f"queries have shape {np.shape(queries)}, documents {np.shape(documents)} and weights "
            f"{y.shape}; allowed: (n, d) or (n, L_q, d), (n, K, d) or (n, K, L_d, d), and (n, K)."
        )
    # M = (1 / n) sum q (sum_c y_c d_c)^T, symmetrised   (late-interaction 14)
    matrix = q.T @ np.einsum("nc,ncd->nd", y, d) / len(q)
    if not np.isfinite(matrix).all():
        raise InvalidData("the tokens or weights are not finite; allowed: finite numbers.")
    return np.asarray((matrix + matrix.T) / 2)


def spectral_kernel(matrix: np.ndarray, *, edge: float = 0.0) -> np.ndarray:
    """Part of a symmetric matrix (d, d) with eigenvalues above an edge; 0 keeps the positive part."""
    M = np.asarray(matrix, dtype=np.float64)
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise InvalidData(f"the matrix has shape {M.shape}; allowed: (d, d).")
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    kept = np.where(values > max(edge, 0.0), values, 0.0)
    return np.asarray((vectors * kept) @ vectors.T)
