"""The six phases of a spectrum: how they look, what they mean, what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """One of the six shapes of a spectrum.

    Parameters
    ----------
    name : str
        As in :class:`solvable.analysis.diagnosing.MatrixDiagnosis`.
    looks : str
        What is seen.
    means : str
        What it says of the matrix.
    advice : str
        What to do.
    """

    name: str
    looks: str
    means: str
    advice: str


PHASES = (
    Phase(
        "random-like",
        "the singular values fill the bulk of a random matrix and none lies beyond its edge",
        "nothing that was learned stands out of the noise: the matrix was hardly trained, is not "
        "used, or what it learned is weaker than the threshold of detection",
        "look whether the matrix is trained and used at all; --initial tells noise that was there "
        "from the start from noise that came with training",
    ),
    Phase(
        "bleeding-out",
        "a bulk of noise, and values that have only just left it",
        "features at the threshold: they are there, but their directions are mostly noise",
        "more data or a stronger weight decay, which lower the noise, rather than more training; "
        "do not prune at the edge, because what is kept there is mostly noise",
    ),
    Phase(
        "bulk+spikes",
        "a bulk of noise, and values clearly beyond its edge",
        "so many features were learned, and the rest is noise",
        "the values beyond the edge are what to keep: prune or denoise the rest, and try a "
        "stronger weight decay",
    ),
    Phase(
        "bulk-decay",
        "neither a bulk of noise nor a power law: the spectrum decays in another way",
        "features of all strengths overlap with the noise, and no law tells one from the other",
        "read neither a noise level nor an exponent off it; judge it by its change, with --initial "
        "or along training",
    ),
    Phase(
        "heavy-tailed",
        "no bulk of noise; the largest values follow a power law",
        "features of all scales were learned, the i-th about as strong as a power of i",
        "read the exponent as that of the features, not as a mark: with the best weight decay it is "
        "smaller, near the interpolation peak larger, and equal exponents go with unequal errors",
    ),
    Phase(
        "rank-collapse",
        "nine in ten singular values are zero",
        "few directions are left: a strong penalty, a product of thin factors, or dead units",
        "store it as two thin factors; if the error is too large, lower the penalty",
    ),
)
"""The six phases, from least to most that was learned, and collapse."""
