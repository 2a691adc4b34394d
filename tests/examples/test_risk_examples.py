"""Examples of empirical risks: fits of scikit-learn lie on the curves, which reach published numbers."""

import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from scipy.special import ndtr

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run():
    mpl.use("Agg")
    yield lambda name: runpy.run_path(str(EXAMPLES / f"{name}.py"))
    import matplotlib.pyplot as plt

    assert all(panel.get_xlabel() for panel in plt.gcf().axes)
    plt.close("all")


def agree(points, predicted):
    """Means over data sets lie within four standard errors of the prediction."""
    for (mean, error), number in zip(points, predicted, strict=True):
        assert (np.abs(mean - number) < 4 * np.asarray(error) + 1e-12).all()
        assert (np.asarray(error) < 0.1 * np.asarray(number)).all(), "the data do not test this"


def test_lasso(run):
    found = run("lasso")
    agree(found["points"], [found["predicted"](strength, 1.0) for strength in found["shown"]])
    best = found["predicted"](0.18714, 1.0)
    assert best == pytest.approx(0.033691, abs=2e-6)
    assert best <= found["curve"].min()
    assert found["bayes"][9] == pytest.approx(0.027553, abs=2e-6)


def test_logistic_regression(run):
    found = run("logistic_regression")
    for strength, points in found["points"].items():
        agree(points, found["predicted"](strength, found["shown"]).error)
    # Candès and Sur (2020) at a signal of standard deviation 2
    assert found["threshold"] == pytest.approx(2.89914, abs=1e-5)


def test_support_vector_machine(run):
    found = run("support_vector_machine")
    for strength, points in found["points"].items():
        risk = found["predicted"](strength, found["shown"])
        agree(points, np.transpose([risk.error, risk.training_loss]))


def test_gaussian_mixture(run):
    found = run("gaussian_mixture")
    predicted = found["predicted"]
    agree(found["points"], [predicted("logistic", strength) for strength in found["shown"]])
    bayes = ndtr(-np.sqrt(0.8 / 0.5))
    assert pytest.approx(bayes) == found["BAYES"]
    for errors in found["curves"].values():
        assert errors.min() >= bayes - 1e-9
        assert errors[-1] == pytest.approx(bayes, abs=1e-6)


def test_random_features(run):
    found = run("random_features")
    for strength, points in found["points"].items():
        agree(points, found["predicted"](found["shown"], strength))
    # the peak is where parameters equal samples, and a stronger penalty removes it
    weak, strong = found["curves"].values()
    after = found["features"] > 1.5
    assert found["features"][after][np.argmax(weak[after])] == pytest.approx(3.0, rel=0.1)
    assert (np.diff(strong) < 0).all()
