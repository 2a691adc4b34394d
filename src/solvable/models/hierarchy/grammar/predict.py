"""Prediction of the system `random-hierarchy` for each task."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.hierarchy.grammar import language, theory
from solvable.models.hierarchy.grammar.parameters import RandomHierarchyParameters


def predict(parameters: RandomHierarchyParameters) -> Metrics:
    """Predict what the task measures, and the thresholds."""
    common: Metrics = {
        "p_star": parameters.threshold,
        "threshold_ratio": 1.0,
        "chance_accuracy": 1 / parameters.n_classes,
    }
    return common | TASKS[parameters.task](parameters)


def _classification(parameters: RandomHierarchyParameters) -> Metrics:
    """Signal and noise of the label statistics of each level, and the synonymic sensitivity."""
    p = parameters
    sizes = _sizes(p, "vocabulary", "rules", "branching", "depth", "classes", "ensemble")
    sensitivity = theory.synonymic_sensitivity(**sizes, samples=p.n_samples)
    found: Metrics = {
        "signal": numbers(theory.squared_signal(**sizes)),
        "noise": numbers(theory.squared_noise(**sizes, samples=p.n_samples)),
        "synonymic_sensitivity": numbers(sensitivity),
        "leaf_sensitivity": numbers(sensitivity)[-1],
    }
    if p.zipf:
        pass
    return found


def _sizes(parameters: RandomHierarchyParameters, *names: str) -> dict[str, object]:
    values = parameters.model_dump() | {"classes": parameters.n_classes}
    return {name: values[name] for name in names}


def numbers(values: np.ndarray) -> list[float | None]:
    """Convert to a list, with None for what is not finite."""
    return [float(value) if np.isfinite(value) else None for value in np.asarray(values)]


TASKS: dict[str, Callable[[RandomHierarchyParameters], Metrics]] = {}
