"""Label maps and standardisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from solvable.errors import InvalidData, InvalidParameter
from solvable.operators import apply_label_map, standardise

LABELS = np.random.default_rng(0).standard_normal(400) ** 3 + 5


def test_standardise_equals_numpy() -> None:
    y, mean, scale = standardise(LABELS)
    assert mean == pytest.approx(LABELS.mean())
    assert scale == pytest.approx(LABELS.std())
    np.testing.assert_allclose(y, (LABELS - LABELS.mean()) / LABELS.std(), atol=1e-12)
    np.testing.assert_allclose(y * scale + mean, LABELS, atol=1e-12)


@pytest.mark.parametrize("magnitude", [1e-200, 1e-8, 1e200])
def test_labels_of_extreme_size(magnitude: float) -> None:
    y, mean, scale = standardise(LABELS * magnitude)
    np.testing.assert_allclose(y, standardise(LABELS)[0], atol=1e-12)
    assert (mean / magnitude, scale / magnitude) == pytest.approx((LABELS.mean(), LABELS.std()))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("identity", lambda z: z),
        ("tanh", np.tanh),
        ("clip", lambda z: np.minimum(2.0, np.maximum(-2.0, z))),
    ],
)
def test_named_maps(name: Any, function: Any) -> None:
    z = (LABELS - LABELS.mean()) / LABELS.std()
    expected = function(z) - function(z).mean()
    np.testing.assert_allclose(apply_label_map(LABELS, name), expected, atol=1e-13)
    np.testing.assert_allclose(apply_label_map(LABELS, function), expected, atol=1e-13)


def test_clip_and_tanh_are_bounded_where_identity_is_not() -> None:
    # Centring shifts the bound by the mean of the mapped labels, which is within the bound.
    assert np.ptp(apply_label_map(LABELS, "clip")) <= 4 + 1e-12
    assert np.ptp(apply_label_map(LABELS, "tanh")) <= 2
    assert np.ptp(apply_label_map(LABELS, "identity")) > 8


def test_integers_and_lists_are_labels() -> None:
    weights = apply_label_map([0, 1, 1, 0], "identity")
    np.testing.assert_allclose(weights, [-1, 1, 1, -1])
    assert weights.dtype == np.float64


FINITE = arrays(np.float64, st.integers(2, 30), elements=st.floats(-1e6, 1e6))


@settings(max_examples=60, deadline=None)
@given(FINITE, st.floats(0.01, 100), st.floats(-100, 100), st.sampled_from(["tanh", "clip"]))
def test_scale_and_offset_of_labels_do_not_matter(
    y: np.ndarray, scale: float, offset: float, name: Any
) -> None:
    assume(y.std() > 1e-3 * (1 + np.abs(y).max()))
    weights = apply_label_map(y, name)
    assert abs(weights.mean()) < 1e-14
    np.testing.assert_allclose(apply_label_map(scale * y + offset, name), weights, atol=1e-7)
    np.testing.assert_allclose(apply_label_map(-scale * y, name), -weights, atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, st.integers(0, 6), elements=st.floats(allow_nan=True)))
def test_any_numbers_give_weights_or_one_clear_error(y: np.ndarray) -> None:
    try:
        weights = apply_label_map(y, "tanh")
    except InvalidData:
        return
    assert np.isfinite(weights).all()
    assert np.abs(weights).max() > 0


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([3.0, 3.0, 3.0], "all 3 labels equal 3"),
        ([0.1, 0.1 + 1e-17, 0.1], "to rounding"),
        ([0.0, 0.0], "all 2 labels equal 0"),
        ([1.0], "there are 1 labels; at least 2"),
        ([], "there are 0 labels"),
        ([1.0, np.nan, np.inf], "2 of 3 labels are NaN or infinite"),
        ([[1.0], [2.0]], r"shape \(2, 1\); allowed: \(n,\)"),
        (["a", "b"], "not numbers"),
    ],
)
def test_bad_labels(labels: Any, message: str) -> None:
    for function in (standardise, lambda y: apply_label_map(y, "tanh")):
        with pytest.raises(InvalidData, match=message):
            function(labels)


def test_bad_maps() -> None:
    with pytest.raises(InvalidParameter, match="Did you mean 'tanh'"):
        apply_label_map(LABELS, "tan")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="gave shape"):
        apply_label_map(LABELS, lambda z: z[:3])
    with pytest.raises(InvalidParameter, match="not finite"), np.errstate(invalid="ignore"):
        apply_label_map(LABELS, np.sqrt)
    with pytest.raises(InvalidData, match="sends all labels to 0"):
        apply_label_map(LABELS, lambda z: 0 * z)


def test_map_cannot_change_the_labels() -> None:
    def spoils(z: np.ndarray) -> np.ndarray:
        z[:] = np.tanh(z)
        return z

    before = LABELS.copy()
    np.testing.assert_allclose(apply_label_map(LABELS, spoils), apply_label_map(LABELS, "tanh"))
    np.testing.assert_array_equal(LABELS, before)
