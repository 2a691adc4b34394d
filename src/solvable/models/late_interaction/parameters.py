"""Parameters of the system `late-interaction`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.curves import Axis
from solvable.frame.parameters import Limit, Parameters

LabelKind = Literal["scores", "top-1", "random-negative", "runner-up"]
"""Labels of the candidates of a query; `solvable.models.late_interaction.teacher` defines them."""

TEST_DOCUMENTS = 60
"""Number of documents of a test query; the relevant one has the largest score of the teacher."""


class LateInteractionParameters(Parameters):
    """Parameters of the teacher of late interaction and of its students."""

    dimension: int = Field(30, ge=8, le=10_000)
    """Dimension d of a token."""
    rank: int = Field(6, ge=1, le=64)
    """Number r of directions of the teacher's kernel."""
    decay: float = Field(0.5, ge=0, le=4)
    """Exponent of the strengths k^-decay of the teacher's directions."""
    query_tokens: int = Field(4, ge=1, le=64)
    """Number L_q of tokens of a query."""
    document_tokens: int = Field(8, ge=2, le=256)
    """Number L_d of tokens of a document."""
    candidates: int = Field(8, ge=3, le=128)
    """Number K of documents of a query, the positive included."""
    queries: int = Field(1000, ge=10, le=10**7)
    """Number n of queries of the spectral estimator, or of the first phase of a pipeline."""
    label: LabelKind = "scores"
    """Labels of the spectral estimator: scores, or the best document minus other documents."""
    pipeline: Literal["none", "dense", "a", "b", "c"] = "none"
    """Training: overlaps alone; dense; KD only (a); supervised and KD (b); all phases (c)."""
    supervised_queries: int = Field(800, ge=1, le=10**6)
    """Number of queries of a pipeline's second phase."""
    distillation_queries: int = Field(200, ge=1, le=10**6)
    """Number of queries of a pipeline's third phase."""

    limits = (
        Limit(
            lambda p: (
                float(p.queries)
                * (p.query_tokens + p.candidates * p.document_tokens)
                * (p.dimension + p.query_tokens * p.rank)
            ),
            2e10,
            "{queries} queries with {candidates} documents of {document_tokens} tokens in {dimension} "
            "dimensions take {cost:.1g} products",
            "queries, candidates, document_tokens or dimension",
        ),
        Limit(lambda p: p.dimension, 2_000, "dimension is {dimension}", "dimension"),
    )

    @model_validator(mode="after")
    def _check(self) -> LateInteractionParameters:
        if self.rank > self.dimension // 2:
            raise ValueError(
                f"rank is {self.rank} and dimension is {self.dimension}; allowed: at most half of the "
                f"dimension, {self.dimension // 2}"
            )
        return self


AXIS = Axis(
    "queries",
    "queries n",
    point_name="d = {dimension}, rank {rank}, decay {decay:g}, {query_tokens} and {document_tokens} "
    "tokens, {candidates} candidates",
    words={
        "label": "{}",
        "pipeline": "pipeline {}",
        "document_tokens": "{} document tokens",
        "dimension": "d = {}",
        "candidates": "{} candidates",
    },
    margin=1.5,
)
"""Axis of the curves: the number of queries."""
