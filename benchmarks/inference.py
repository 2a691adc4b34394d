"""Measure curves and message passing of `solvable.inference`: `python benchmarks/inference.py`.

Prints the CPU time of the errors at 20 ratios for several priors and outputs (bound: 2 s each), and
the time of 30 steps of message passing at d = 2000, n = 4000 over that of their 60 matrix products
(bound: 3).
"""

from __future__ import annotations

import numpy as np
from gemm import cpu_seconds, exit_status, one_thread, show

from solvable.inference import (
    Density,
    GaussBernoulli,
    Gaussian,
    Output,
    Rademacher,
    state_evolution,
)
from solvable.inference.algorithm import _Run
from solvable.inference.priors import Prior

MODELS = [
    (Rademacher(0.5), "sign", {}),
    (GaussBernoulli(0.3), "relu", {}),
    (GaussBernoulli(0.3), "abs", {}),
    (Gaussian(), "relu", {"noise": 0.1}),
    (Gaussian(), "tanh", {"noise": 0.001}),
    (GaussBernoulli(0.3), "logistic", {"slope": 2.0}),
    (Density(lambda w: np.exp(-abs(w)), (-30, 30), breakpoints=[0]), "door", {"width": 1.0}),
]


def curve_time(prior: Prior, name: str, options: dict[str, float]) -> None:
    """Print the time of 20 ratios, with nothing cached."""
    output = Output(name, **options)  # a new object, so that its tables are computed
    seconds = cpu_seconds(lambda: state_evolution(prior, output, np.linspace(0.1, 3, 20)), 1)
    show(f"20 ratios, {prior!r}, {output!r}", seconds, 2.0, at_least=False, unit=" s")


def message_passing_time(prior: Prior, output: Output) -> None:
    """Print the time of 30 steps over that of the products with X."""
    d, n, steps = 2000, 4000, 30
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    w = prior.draw(d, rng)
    y = output.draw(X @ w, rng)
    state_evolution(prior, output, n / d)  # the curve is cached

    def run() -> None:
        _Run(X, y, prior, output, True, 0.0, 0).iterate(steps, 0.0, trivial=False)

    def products() -> None:
        for _ in range(steps):
            X.T @ (X @ w)

    work, bound = cpu_seconds(run, 2), cpu_seconds(products, 2)
    show(f"message passing over products, {output!r}", work / bound, 3.0, at_least=False)


if __name__ == "__main__":
    with one_thread():
        for model in MODELS:
            curve_time(*model)
        message_passing_time(Rademacher(0.5), Output("sign", flips=0.1))
        message_passing_time(GaussBernoulli(0.3), Output("relu", noise=0.1))
    raise SystemExit(exit_status())
