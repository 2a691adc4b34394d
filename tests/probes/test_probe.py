"""The probe as a function: rows, keys, resumption, and learners that raise."""

import json

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

import solvable
from solvable.errors import InvalidParameter

SMALL = {"degree": 1, "dimension": 10, "features": 2, "label_noise": 0.5}


class OwnTarget:
    """A target of one sine, with a parameter."""

    def __init__(self, scale=1.0, seed=0):
        self.scale = scale

    def sample(self, n, rng):
        X = rng.standard_normal((n, 3))
        return X, self.clean(X) + 0.1 * rng.standard_normal(n)

    def clean(self, X):
        return self.scale * np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2

    def parts(self, X):
        return ("sine", "square"), np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])


class Moody:
    """A learner that cannot read more than 150 rows."""

    def fit(self, X, y):
        if len(X) > 150:
            raise ValueError("too many rows")
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_rows_and_keys():
    found = solvable.probe("spectral", samples=[100, 1600], settings=SMALL, workers=1)
    plain = found.to_dict()
    assert {"features", "half_samples", "references"} <= set(plain)
    row = plain["features"][0]
    assert {"samples", "feature", "learned_share", "standard_error"} <= set(row)
    assert len(plain["features"]) == 4
    shares = {(r["samples"], r["feature"]): r["learned_share"] for r in plain["features"]}
    assert shares[1600, "feature 1"] > 0.8 > shares[100, "feature 2"]
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert len(found.to_dataframe()) == 4
    assert "spectral learns half of feature 1" in str(found)


def test_neighbours_and_full_trees_fit_noise_and_a_line_learns_nothing_even():
    found = solvable.probe(
        [KNeighborsRegressor(1), ExtraTreesRegressor(1, bootstrap=True), Ridge()],
        samples=[400],
        settings=SMALL,
        seeds=1,
    )
    ridge = next(curve for curve in found.curves if "Ridge" in curve.learner)
    assert np.abs(ridge.mean).max() < 0.1
    for curve in found.curves:
        if curve is not ridge:
            assert curve.others["rest"][0] > 0.2
            assert curve.others["excess_rest"][0] > 1.5


def test_a_learner_that_raises_loses_one_setting_alone():
    found = solvable.probe(Moody(), samples=[100, 200], settings=SMALL, seeds=1)
    (failed,) = found.failures
    assert (failed["learner"], failed["samples"]) == ("Moody", 200)
    assert failed["error"] == "ValueError: too many rows"
    assert "1 fit failed, the first by Moody on 200 rows" in str(found)
    assert {row["samples"] for row in found.table} == {100}


def test_an_own_target_and_its_parameter():
    found = solvable.probe(KNeighborsRegressor(5), OwnTarget(2.0), samples=[200, 2000], seeds=1)
    assert found.names == ("sine", "square")
    assert found.curves[0].mean[-1].min() > 0.6


def test_a_stopped_probe_is_resumed_and_compared(tmp_path):
    options = {"samples": [100, 400], "settings": SMALL, "workers": 1}
    first = solvable.probe("spectral", output=tmp_path / "run", **options)
    again = solvable.probe("spectral", output=tmp_path / "run", **options)
    assert again.study.fresh == frozenset()
    assert again.table == first.table
    report = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "solvable probe spectral --target sequential-recovery --set" in report
    loaded = solvable.load(tmp_path / "run")
    assert loaded.system.name == "probe"
    other = solvable.probe("spectral", output=tmp_path / "other", seed=1, **options)
    assert solvable.compare(first.study, other.study).differences


@pytest.mark.parametrize(
    ("target", "learner", "settings"),
    [
        ("label-hierarchy", "rbf-kernel", {"dimension": 8, "depth": 2, "labels": 6}),
        ("random-hierarchy", "cnn", {"vocabulary": 4, "rules": 2, "depth": 2}),
        ("quadratic-network", "spectral", {"dimension": 8}),
        ("compositional-target", "spectral", {"dimension": 10, "features": 2}),
        ("sequential-recovery", "rbf-kernel", {"degree": 2, "dimension": 8, "features": 2}),
    ],
)
def test_other_targets(target, learner, settings):
    found = solvable.probe(learner, target, samples=[300], settings=settings, seeds=1, workers=1)
    assert found.curves[0].mean.shape == (1, len(found.names))
    assert found.curves[0].mean[0, -1 if "low degree" in found.names else 0] > 0.2
    assert found.to_dict()["half_samples"]


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("cannot be probed", {"target": "boltzmann-machine"}),
        ("allowed: sequential-recovery", {"target": "nosuch"}),
        ("the name of a parameter", {"settings": {"foo": 1}}),
        ("degree is 3", {"settings": {"degree": 3}}),
        ("from 8", {"samples": [3]}),
        ("at least one learner", {"learner": []}),
        ("without fit and predict", {"learner": None}),
        ("a mapping", {"settings": [1]}),
        ("seeds is 0", {"seeds": 0}),
        ("raised TypeError", {"target": "json:loads"}),
        ("no method sample", {"target": "json:decoder"}),
    ],
)
def test_bad_input_is_one_line(words, change):
    asked = {"learner": "mlp", "target": "sequential-recovery"} | change
    with pytest.raises(InvalidParameter, match=words) as caught:
        solvable.probe(**asked)
    assert "\n" not in str(caught.value)
