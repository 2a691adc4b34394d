"""Examples of classifiers: fits of scikit-learn lie on the curves, and the threshold is published."""

import numpy as np
import pytest


def test_logistic_regression(run, agree):
    found = run("logistic_regression")
    for strength, points in found["points"].items():
        agree(points, found["predicted"](strength, found["shown"]).error)
    # Candès and Sur (2020) at a signal of standard deviation 2
    assert found["threshold"] == pytest.approx(2.89914, abs=1e-5)


def test_support_vector_machine(run, agree):
    found = run("support_vector_machine")
    for strength, points in found["points"].items():
        risk = found["predicted"](strength, found["shown"])
        agree(points, np.transpose([risk.error, risk.training_loss]))
