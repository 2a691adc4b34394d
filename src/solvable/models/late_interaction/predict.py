"""Predicted metrics of the system `late-interaction`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.late_interaction.overlaps import predict_late_interaction
from solvable.models.late_interaction.parameters import TEST_DOCUMENTS, LateInteractionParameters
from solvable.models.late_interaction.ranking import pooled_ndcg
from solvable.models.late_interaction.teacher import LateInteractionTeacher
from solvable.models.late_interaction.theory import pooled_fraction


def make_teacher(parameters: LateInteractionParameters, seed: int = 0) -> LateInteractionTeacher:
    """Construct the teacher of a parameter set."""
    return LateInteractionTeacher(
        dimension=parameters.dimension,
        rank=parameters.rank,
        decay=parameters.decay,
        query_tokens=parameters.query_tokens,
        document_tokens=parameters.document_tokens,
        seed=seed,
    )


def predict(parameters: LateInteractionParameters) -> Metrics:
    """Predicted metrics of a parameter set; None where no theory exists."""
    teacher = make_teacher(parameters)
    spectral = predict_late_interaction(
        teacher,
        candidates=parameters.candidates,
        queries=parameters.queries,
        label=parameters.label,
    )
    alone = parameters.pipeline == "none"
    return {
        "squared_overlap": spectral.squared_overlap.tolist() if alone else None,
        "threshold_queries": spectral.threshold_queries.tolist(),
        "pooled_fraction": pooled_fraction(
            strengths=teacher.strengths,
            query_tokens=parameters.query_tokens,
            document_tokens=parameters.document_tokens,
        ),
        # No theory of the trained pipelines exists; a dense model stays below the pooled teacher.
        "ndcg": None,
        "pooled_ndcg": _pooled_ndcg(teacher),
    }


@lru_cache(maxsize=64)
def _pooled_ndcg(teacher: LateInteractionTeacher) -> float:
    """Predicted nDCG of the pooled teacher; cached, since it does not depend on the number of queries."""
    return pooled_ndcg(teacher, documents=TEST_DOCUMENTS)


def chance(parameters: LateInteractionParameters, _: Metrics) -> Metrics:
    """Metrics of a learner with random directions and a random ranking."""
    share = 1.0 if parameters.decay > 0 else float(parameters.rank)
    gains = 1 / np.log2(np.arange(10) + 2)
    return {
        "squared_overlap": [share / parameters.dimension] * parameters.rank,
        **dict.fromkeys(
            ("ndcg", "maxsim_ndcg", "pooled_ndcg"), float(gains.sum() / TEST_DOCUMENTS)
        ),
        "gain": 0.0,
        "first_phase_gain": 0.0,
        "signal_to_noise": float(parameters.queries**-0.5),
    }
