"""Over-parametrised quadratic networks (arXiv:2505.17958), with theory and direct solvers.

A network of quadratic units with weight decay learns a positive matrix: a convex problem. Two
scalars, an effective noise and a threshold, predict its errors, rank and whole spectrum.
"""

from __future__ import annotations

from solvable.frame.system import Preset, Reference, System
from solvable.models.quadratic.network.parameters import AXIS, QuadraticParameters

NUCLEAR_ROUTE = Reference(
    key="erba2025nuclear",
    bibtex="""@article{erba2025nuclear,
  title   = {The Nuclear Route: Sharp Asymptotics of {ERM} in Overparameterized Quadratic Networks},
  author  = {Erba, Vittorio and Troiani, Emanuele and Zdeborov{\\'a}, Lenka and Krzakala, Florent},
  journal = {arXiv preprint arXiv:2505.17958},
  year    = {2025}
}""",
)

SCALING_LAWS = Reference(
    key="defilippis2025scaling",
    bibtex="""@article{defilippis2025scaling,
  title   = {Scaling Laws and Spectra of Shallow Neural Networks in the Feature Learning Regime},
  author  = {Defilippis, Leonardo and Xu, Yizhou and Girardin, Julius and Troiani, Emanuele and
             Erba, Vittorio and Zdeborov{\\'a}, Lenka and Loureiro, Bruno and Krzakala, Florent},
  journal = {arXiv preprint arXiv:2509.24882},
  year    = {2025}
}""",
)

BAYES_OPTIMAL = Reference(
    key="maillard2024bayes",
    bibtex="""@inproceedings{maillard2024bayes,
  title     = {Bayes-optimal learning of an extensive-width neural network from quadratically many
               samples},
  author    = {Maillard, Antoine and Troiani, Emanuele and Martin, Simon and Krzakala, Florent and
               Zdeborov{\\'a}, Lenka},
  booktitle = {Advances in Neural Information Processing Systems},
  note      = {arXiv:2408.03733},
  year      = {2024}
}""",
)

WIDTH_AND_DATA = Reference(
    key="girardin2026width",
    bibtex="""@article{girardin2026width,
  title   = {How Width and Data Shape Generalization Scaling Laws in Quadratic Neural Networks},
  author  = {Girardin, Julius and others},
  journal = {arXiv preprint arXiv:2606.28242},
  year    = {2026}
}""",
)

GRADIENT_FLOW = Reference(
    key="martin2026high",
    bibtex="""@article{martin2026high,
  title   = {High-Dimensional Analysis of Gradient Flow for Extensive-Width Quadratic Neural
             Networks},
  author  = {Martin, Simon and Biroli, Giulio and Bach, Francis},
  journal = {Journal of Machine Learning Research},
  volume  = {27},
  number  = {136},
  note    = {arXiv:2601.10483},
  year    = {2026}
}""",
)

REFERENCES = (NUCLEAR_ROUTE, SCALING_LAWS, BAYES_OPTIMAL, WIDTH_AND_DATA, GRADIENT_FLOW)
"""Papers on which the theory and the settings rest."""

PRESETS = {
    "quick": Preset(
        "Both targets at d = 60 through the interpolation peak; under a minute.",
        {
            "target": ("marchenko-pastur", "power-law"),
            "dimension": (60,),
            "sample_ratio": (0.1, 0.17, 0.23, 0.3, 0.4, 0.7, 1.2, 2.0),
        },
        replicates=8,
    ),
    "control": Preset(
        "Samples against Gaussian matrices, and the weights themselves trained; a few minutes.",
        {
            "target": ("marchenko-pastur", "power-law"),
            "dimension": (40,),
            "regularisation": (0.1,),
            "sample_ratio": (0.25, 0.35, 0.5, 0.7, 1.0, 1.4),
            "sensing": ("network", "goe"),
            "network_samples": (2_300,),
        },
        replicates=8,
    ),
    "recovery": Preset(
        "No label noise: a low-rank target is recovered beyond a definite size; a few minutes.",
        {
            "dimension": (60,),
            "noise": (0.0,),
            "regularisation": (1e-3,),
            "sample_ratio": (0.12, 0.15, 0.18, 0.2, 0.22, 0.24, 0.28, 0.32, 0.4),
        },
        replicates=3,
    ),
    "regularisation": Preset(
        "Power law at three regularisations, from overfitting to a cut bulk; a few minutes.",
        {
            "target": ("power-law",),
            "dimension": (100,),
            "regularisation": (0.01, 1.0, 10.0),
            "sample_ratio": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4),
        },
        replicates=8,
    ),
    "paper": Preset(
        "The setting of arXiv:2505.17958: d = 100 and 160, through the peak; ten minutes.",
        {
            "dimension": (100, 160),
            "sample_ratio": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0, 1.5),
        },
        replicates=4,
    ),
}

system = System(
    name="quadratic-network",
    title="Two scalars predict error, rank and spectrum of a quadratic network",
    version="1",
    parameters=QuadraticParameters,
    measure="measure:measure",
    predict="predict:predict",
    teacher="measure:teacher",
    axis=AXIS,
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    curve="predict:curve",
    chance="predict:chance",
    presets=PRESETS,
    references=REFERENCES,
)
