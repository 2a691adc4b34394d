"""Papers behind the system `quadratic-network`."""

from __future__ import annotations

from solvable.frame.system import Reference

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
"""Those that the theory and the settings rest on."""
