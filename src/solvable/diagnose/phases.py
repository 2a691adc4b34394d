"""The six phases of a spectrum: how they look, what they mean, what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """One of the six shapes of a spectrum."""

    name: str  # as in MatrixDiagnosis
    looks: str  # what is seen
    means: str  # what it says of the matrix
    advice: str  # what to do


# The six phases, in the order in which a spectrum leaves noise; collapse last.
PHASES = (
    Phase(
        "random-like",
        "the singular values fill the bulk of a random matrix and none lies beyond its edge",
        "nothing that was learned stands out of the noise: the matrix was hardly trained, is not "
        "used, or what it learned is below the threshold of detection",
        "look whether the matrix is trained and used at all; --initial tells noise that was there "
        "from the start from noise that came with training",
    ),
    Phase(
        "bleeding-out",
        "a bulk of noise, and a value that has only just left it",
        "a feature at the threshold of detection: it is there, but its direction is mostly noise",
        "expect more of it from more data, or from less noise by a stronger weight decay; pruning "
        "at the edge keeps directions that are mostly noise",
    ),
    Phase(
        "bulk+spikes",
        "a bulk of noise, and values clearly beyond its edge",
        "the values beyond the edge are learned features, and the bulk is noise, of the initial "
        "weights or of the training data",
        "prune at the edge, or denoise; if the noise came with training, a stronger weight decay "
        "should lower it",
    ),
    Phase(
        "bulk-decay",
        "values go over from the bulk into the outliers without a gap, or decay with neither an "
        "edge nor a power law",
        "many features were learned, and the weaker ones cannot be told from noise one by one",
        "where there is an edge, denoise rather than cut at it, as features lie below it too; judge "
        "training by how the matrix changes, with --initial, rather than by one number",
    ),
    Phase(
        "heavy-tailed",
        "no bulk of noise, and a tail that is a power law",
        "features of all scales were learned, the i-th about as strong as a power of i",
        "read the exponent as that of the features and not as a mark: the best weight decay makes "
        "it smaller, the interpolation peak larger, and equal exponents go with unequal errors",
    ),
    Phase(
        "rank-collapse",
        "nine in ten singular values are zero",
        "few directions are left: a strong penalty, a product of thin factors, or dead units",
        "store it as two thin factors; if the error is too large, lower the penalty",
    ),
)
