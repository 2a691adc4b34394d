"""Regression on sequences of tokens: weights that are a product of two matrices, and what that is worth.

A label is the sum of a sequence of tokens weighed by a matrix of extensive rank, plus noise. Bayes
message passing with a denoiser of singular values reaches the best error that is possible; without noise
it finds the matrix from as many samples as it has degrees of freedom, fewer than the nuclear norm needs.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, Reference, System
from solvable.models.sensing.bilinear.parameters import BilinearParameters

BILINEAR = Reference(
    key="erba2025bilinear",
    bibtex="""@article{erba2025bilinear,
  title   = {Bilinear Sequence Regression: A Model for Learning from Long Sequences of High-Dimensional
             Tokens},
  author  = {Erba, Vittorio and Troiani, Emanuele and Biggio, Luca and Maillard, Antoine and
             Zdeborov{\\'a}, Lenka},
  journal = {Physical Review X},
  note    = {arXiv:2410.18858},
  year    = {2025}
}""",
)

MATRIX_SENSING = Reference(
    key="xu2025fundamental",
    bibtex="""@inproceedings{xu2025fundamental,
  title     = {Fundamental Limits of Matrix Sensing: Exact Asymptotics, Universality, and Applications},
  author    = {Xu, Yizhou and Maillard, Antoine and Zdeborov{\\'a}, Lenka and Krzakala, Florent},
  booktitle = {Conference on Learning Theory},
  note      = {arXiv:2503.14121},
  year      = {2025}
}""",
)

PRESETS = {
    "quick": Preset(
        "Two ranks of a square matrix of 40 rows, with noise and without; under a minute.",
        {
            "dimension": (40,),
            "rank_ratio": (0.2, 1.0),
            "noise": (0.0, 0.1),
            "sample_ratio": (0.15, 0.3, 0.48, 0.7),
        },
        replicates=8,
    ),
    "paper": Preset(
        "Two ranks of a square matrix of 100 rows, with noise and without; two minutes.",
        {
            "dimension": (100,),
            "rank_ratio": (0.2, 1.0),
            "noise": (0.0, 0.1),
            "sample_ratio": (0.1, 0.2, 0.3, 0.45, 0.6),
        },
        replicates=4,
    ),
}

system = System(
    name="bilinear-sequence",
    title="Regression on token sequences, where the weights are a product of two matrices",
    version="1",
    parameters=BilinearParameters,
    measure="measure:measure",
    predict="predict:predict",
    curve="predict:curve",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "samples per entry n/(dL)",
        told=lambda setting: setting.place,
        words={"rank_ratio": "r/d = {:g}", "aspect": "L/d = {:g}", "noise": "noise {:g}"},
        scale="linear",
        margin=1.1,
        resolution=60,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=(BILINEAR, MATRIX_SENSING),
)
