"""Studies as labelled arrays: grids, points without a grid, ragged lists, and missing values."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import solvable
from solvable import verbs
from solvable.errors import InvalidParameter
from solvable.study.labelled import LabelledPoint, dataset

pytest.importorskip("xarray")


def point(n: int, d: int, *replicates: dict, **prediction: object) -> LabelledPoint:
    return LabelledPoint({"n": n, "d": d, "map": "tanh"}, prediction, tuple(enumerate(replicates)))


def test_a_grid_has_its_parameters_as_dimensions() -> None:
    points = [
        point(n, d, {"error": n + d / 10}, {"error": n - d / 10}, error=float(n))
        for n in (1, 2, 3)
        for d in (10, 20)
    ]
    found = dataset(points, 2, system="toy")
    assert found["error"].dims == ("n", "d", "replicate")
    assert found["predicted.error"].dims == ("n", "d")
    assert found.attrs == {"system": "toy"}
    assert found["map"].item() == "tanh"
    assert found["error"].sel(n=2, d=20, replicate=1).item() == pytest.approx(0.0)
    np.testing.assert_array_equal(found["predicted.error"].sel(d=10), [1, 2, 3])


def test_points_without_a_grid_have_one_dimension() -> None:
    found = dataset([point(1, 10, {"error": 1.0}), point(2, 20, {"error": 2.0})], 1)
    assert found["error"].dims == ("point", "replicate")
    np.testing.assert_array_equal(found["n"], [1, 2])
    assert found["d"].dims == ("point",)


def test_ragged_lists_and_missing_replicates_are_nan() -> None:
    points = [
        point(1, 10, {"overlap": [1.0, 2.0, 3.0]}, {"overlap": [4.0]}, overlap=[9.0]),
        point(2, 10, {"overlap": [5.0, None]}, overlap=None, **{"no prediction": "too few"}),
    ]
    found = dataset(points, 2)
    assert found["overlap"].dims == ("n", "replicate", "overlap_entry")
    # a measured list and its prediction share the dimension
    assert found["predicted.overlap"].dims == ("n", "overlap_entry")
    nan = np.nan
    np.testing.assert_array_equal(
        found["overlap"],
        [[[1, 2, 3], [4, nan, nan]], [[5, nan, nan], [nan, nan, nan]]],
    )
    np.testing.assert_array_equal(found["predicted.overlap"], [[9, nan, nan], [nan] * 3])
    assert found["predicted.no prediction"].values.tolist() == ["", "too few"]


def test_words_lists_of_parameters_and_names_of_parameters() -> None:
    points = [
        LabelledPoint({"sizes": [1, 2], "k": None}, {}, ((0, {"phase": "found", "k": 2}),)),
        LabelledPoint({"sizes": [3], "k": 1}, {}, ((0, {"phase": "lost", "k": 3}),)),
    ]
    found = dataset(points, 1)
    assert found["sizes"].values.tolist() == ["1, 2", "3"]
    np.testing.assert_array_equal(found["k"], [np.nan, 1])
    assert found["phase"].values.tolist() == [["found"], ["lost"]]
    assert found["measured.k"].values.tolist() == [[2], [3]]
    assert dataset([], 0).sizes == {}


def test_a_study_and_its_predictions(tmp_path) -> None:
    found = solvable.run(
        "diagonal-network", samples=[40, 80], dimension=30, preset=None, seeds=2, workers=1,
        output=tmp_path / "run",
    )  # fmt: skip
    measured = found.to_xarray()
    assert measured.sizes["samples"] == measured.sizes["replicate"] == 2
    record = found.records[3]
    at = {"samples": record["parameters"]["samples"], "replicate": record["replicate"]}
    assert measured["error"].sel(at).item() == pytest.approx(record["metrics"]["error"])
    np.testing.assert_allclose(measured["captured"].sel(at), record["metrics"]["captured"])
    predicted = verbs.theory_of("diagonal-network", samples=[40, 80], dimension=30).to_xarray()
    np.testing.assert_allclose(predicted["error"], measured["predicted.error"])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(InvalidParameter, match="pip install xarray"):
        dataset([], 0)
