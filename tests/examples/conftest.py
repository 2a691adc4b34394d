"""Run of an example, and comparison of its points with its curves."""

import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run():
    mpl.use("Agg")

    def run(name):
        path = EXAMPLES / f"{name}.py"
        assert len(path.read_text("utf-8").splitlines()) <= 60
        return runpy.run_path(str(path))

    yield run
    import matplotlib.pyplot as plt

    assert all(panel.get_xlabel() for panel in plt.gcf().axes)
    plt.close("all")


@pytest.fixture
def agree():
    def check(points, predicted):
        """Means over data sets lie within four standard errors of the prediction."""
        for (mean, error), number in zip(points, predicted, strict=True):
            assert (np.abs(mean - number) < 4 * np.asarray(error) + 1e-12).all()
            assert (np.asarray(error) < 0.1 * np.asarray(number)).all(), "data do not test this"

    return check
