"""The example of the quadratic head runs, prints its numbers and draws the curves of each picture."""

import importlib.util
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "quadratic_head.py"


@pytest.fixture
def example():
    mpl.use("Agg")
    spec = importlib.util.spec_from_file_location("quadratic_head", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.SIZES = (400, 800)
    module.STRENGTHS = np.array([0.5, 5.0])
    yield module
    module.plt.close("all")


def test_prints_and_draws_what_it_found(example, capsys):
    (ratios, spreads), (excess, _) = example.main(splits=2)
    printed = capsys.readouterr().out
    for n, ratio in zip((400, 800), ratios, strict=True):
        assert f"{n:5d} images: predicted over real error {ratio:.3f}" in printed
    # Each of two splits varies by 10 %; another test checks the claim on twelve splits.
    assert np.abs(ratios - 1).max() < 0.3
    assert excess < 1.2
    for axis in example.plt.gcf().axes:
        assert len(axis.containers) == 2
        real = axis.containers[1].lines[0].get_ydata()
        assert np.isfinite(real).all()
        assert axis.get_xlabel()
        assert axis.get_ylabel()
    assert spreads.shape == (2,)
