"""Measure CPU seconds of spectral law and theory of quadratic networks, on one BLAS thread.

python benchmarks/quadratic_theory.py
"""

from __future__ import annotations

import numpy as np
from gemm import cpu_seconds, exit_status, one_thread, show


def laws() -> None:
    """Measure the time of one spectral law with its moments above a threshold."""
    from solvable.spectra.free_convolution import SpectralLaw
    from solvable.spectra.functionals import truncated_moments
    from solvable.spectra.measures import discrete, power_law
    from solvable.spectra.product_measure import marchenko_pastur

    cases = {
        "Marchenko-Pastur": (marchenko_pastur(0.2), 1.0),
        "power law, 200 atoms": (power_law(dimension=200, exponent=1.0), 1.0),
        "200 isolated atoms": (discrete(np.linspace(1, 40, 200)), 0.05),
    }
    for name, (target, noise) in cases.items():
        seconds = cpu_seconds(
            lambda target=target, noise=noise: truncated_moments(
                SpectralLaw(target, noise=noise), noise
            ),
            9,
        )
        show(f"law and moments, {name}, ms", 1e3 * seconds, 20, at_least=False)


def solutions() -> None:
    """Measure the time of one solution of the theory, and of a curve of 50 points."""
    from solvable.models.quadratic.network.theory import quadratic_curve, solve_quadratic
    from solvable.spectra.measures import discrete, power_law
    from solvable.spectra.product_measure import marchenko_pastur

    cases = {
        "power law, 300 atoms": (power_law(dimension=300, exponent=1.0), 0.5, 0.02, 0.3),
        "300 atoms of a bulk": (discrete(np.linspace(0, 3, 300)), 0.5, 0.02, 0.3),
        "400 isolated atoms": (discrete(np.linspace(1, 40, 400)), 1e-3, 0.02, 2.0),
    }
    for name, (target, label_noise, penalty, limit) in cases.items():
        seconds = cpu_seconds(
            lambda target=target, label_noise=label_noise, penalty=penalty: solve_quadratic(
                target, sample_ratio=0.6, label_noise=label_noise, regularisation=penalty
            ),
            5,
        )
        show(f"solution, {name}, s", seconds, limit, at_least=False)
    for name, target in (
        ("Marchenko-Pastur", marchenko_pastur(0.2)),
        ("power law, 300 atoms", power_law(dimension=300, exponent=1.0)),
    ):
        seconds = cpu_seconds(
            lambda target=target: quadratic_curve(
                target,
                sample_ratios=np.geomspace(0.05, 2, 50),
                label_noise=0.5,
                regularisation=0.02,
            ),
            2,
        )
        show(f"curve of 50 points, {name}, s", seconds, 3, at_least=False)


if __name__ == "__main__":
    with one_thread():
        laws()
        solutions()
    raise SystemExit(exit_status())
