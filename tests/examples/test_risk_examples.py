"""Examples of empirical risks: points of data lie on the curves, which reach known numbers."""

import numpy as np
import pytest
from scipy.special import ndtr


def test_lasso(run, agree):
    found = run("lasso")
    agree(found["points"], [found["predicted"](strength, 1.0) for strength in found["shown"]])
    best = found["predicted"](0.18714, 1.0)
    assert best == pytest.approx(0.033691, abs=2e-6)
    assert best <= found["curve"].min()
    assert found["bayes"][9] == pytest.approx(0.027553, abs=2e-6)


def test_gaussian_mixture(run, agree):
    found = run("gaussian_mixture")
    predicted = found["predicted"]
    agree(found["points"], [predicted("logistic", strength) for strength in found["shown"]])
    bayes = ndtr(-np.sqrt(0.8 / 0.5))
    assert pytest.approx(bayes) == found["BAYES"]
    for errors in found["curves"].values():
        assert errors.min() >= bayes - 1e-9
        assert errors[-1] == pytest.approx(bayes, abs=1e-6)


def test_random_features(run, agree):
    found = run("random_features")
    for strength, points in found["points"].items():
        agree(points, found["predicted"](found["shown"], strength))
    # the peak is where parameters equal samples, and a stronger penalty removes it
    weak, strong = found["curves"].values()
    after = found["features"] > 1.5
    assert found["features"][after][np.argmax(weak[after])] == pytest.approx(3.0, rel=0.1)
    assert (np.diff(strong) < 0).all()
