"""Claims of late interaction: overlaps, worth of labels, and pooled vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.agreement import Agreement, overlap_scatter
from solvable.frame.conditions import above, at_least
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point

PAGE = "derivations/late-interaction"


def worth(label: str) -> Callable[[Sequence[Point]], tuple[float, float] | None]:
    """Return an estimate: the log of the queries that a label needs, relative to scores."""

    def estimate(points: Sequence[Point]) -> tuple[float, float] | None:
        found = {point.setting.label: point for point in points}
        if not {label, "scores"} <= found.keys():
            return None
        one, scores = found[label], found["scores"]
        # The number of queries for a given signal to noise is proportional to its inverse square.
        ratios = [
            scores.mean("signal_to_noise") / one.mean("signal_to_noise"),
            predicted_signal(scores) / predicted_signal(one),
        ]
        return (
            (2 * float(np.log(ratios[0])), 2 * float(np.log(ratios[1])))
            if min(ratios) > 0
            else None
        )

    return estimate


def predicted_signal(point: Point) -> float:
    """Predicted <M, S> / (|S| s sqrt(n)), up to a factor: theta_k is d^(1/2) s (n / n_k)^(1/2)."""
    strengths = np.arange(1, point.setting.rank + 1) ** -float(point.setting.decay)
    roots = point.predicted("threshold_queries") ** -0.5
    return float(strengths @ roots / np.linalg.norm(strengths))


LABELS = (
    "no point without pipeline has both labels at one number of queries; run with --preset labels"
)

# fmt: off
CLAIMS = (
    Agreement("overlap-of-each-direction",
        "The squared overlap of every recovered direction equals its prediction.",
        "squared_overlap", f"{PAGE} (19), (20)", within=0.06,
        because="0.06: neighbouring directions mix at finite dimension.",
        where={"queries": above(3, "threshold_queries")}, entry="direction", scatter=overlap_scatter,
        missing="raise queries"),
    Agreement("threshold-of-each-direction",
        "The number of queries at which a direction leaves the bulk, estimated from its signal and the "
        "noise of the moment matrix, equals its prediction for each kind of label.",
        "threshold_queries", f"{PAGE} (16), (18)", within=0.12, relative=True, power=0.3,
        because="12 %: the signal of labels by rank is computed for directions one by one.",
        where={"queries": above(10, "threshold_queries")}, entry="direction", missing="raise queries"),
    *(Estimate(f"worth-of-{label}-labels",
        f"The number of queries needed with {words}, over that with scores, is the predicted one.",
        f"{PAGE} (15), (16)", estimate=worth(label), apart=("label",), within=within, power=0.5,
        where={"pipeline": "none"},
        because=f"{within} in the logarithm: the prediction holds for many dimensions.",
        missing=LABELS)
      for label, words, within in (
          ("top-1", "the best document against all", 0.1),
          ("random-negative", "the best document against a random other one", 0.1),
          ("runner-up", "the best document against the second", 0.2),
      )),
    Agreement("pooled-fraction",
        "Mean-pooled documents explain the predicted part of the variance of scores.",
        "pooled_fraction", f"{PAGE} (9)", within=0.01,
        because="0.01: the regression on pooled scores has one coefficient for all queries.",
        missing="no point has pipeline=none"),
    Agreement("ceiling-of-pooled-vectors",
        "The nDCG of the pooled teacher, the ceiling of dense models, equals its prediction.",
        "pooled_ndcg", f"{PAGE} (10), (11)", within=0.03, power=0.3,
        because="0.03: the prediction treats the pooled score given the score as normal, and is "
        "therefore 6 to 10 % too high.",
        where={"document_tokens": at_least(8)},
        missing="run with --preset pipelines"),
    Agreement("dense-stays-at-the-ceiling",
        "With 4,000 queries or more, the nDCG of the dense pipeline is at most that of the pooled "
        "teacher, and at least 0.6 times as large.",
        "ndcg", f"{PAGE} (11)", expected=lambda point: 0.8 * point.predicted("pooled_ndcg"),
        within=0.25, relative=True, power=0.6, because="25 %: the range of the statement.",
        where={"pipeline": "dense", "queries": at_least(4000)}),
)
# fmt: on
