"""Validation of blocks and label codes, and encoded labels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter
from solvable.learners import Block, network_blocks
from solvable.networks.blocks import LabelCode, check_blocks


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"reduce": 0}, "reduce is 0"),
        ({"reduce": 2.0}, "reduce is 2.0"),
        ({"reduce": True}, "reduce is True"),
        ({"reduce": "all"}, "'all'"),
        ({"width": 0}, "width is 0"),
        ({"width": 10.5}, "width is 10.5"),
        ({"width": -math.inf}, "width is -inf"),
        ({"width": math.nan}, "width is nan"),
        ({"activation": "softplus"}, "softplus"),
        ({"reduce": 3, "whitening": "zca"}, "zca"),
        ({"patch": 4, "width": 5}, "patch is 4"),
        ({"patch": 0, "width": 5}, "patch is 0"),
        ({"pooling": 0}, "pooling is 0"),
        ({"patch": 3, "width": math.inf}, "kernel of a convolutional lift"),
        ({"patch": 3, "width": None}, "convolutional"),
        ({"first_moment": True}, "belong to a filter"),
        ({"whitening": "std"}, "belong to a filter"),
    ],
)
def test_values_out_of_range_are_refused(changes, match):
    with pytest.raises(InvalidParameter, match=match):
        Block(**changes)


@pytest.mark.parametrize("value", [1, np.int64(7), "auto", None])
def test_numbers_of_numpy_are_numbers(value):
    assert Block(reduce=value, width=np.int32(5)).reduce == value


@pytest.mark.parametrize(
    ("blocks", "match"),
    [
        ([], "at least one"),
        ([3], "at least one"),
        ([Block(width=math.inf), Block(width=10)], "without a filter"),
        ([Block(width=5), Block(width=5, patch=3)], "dense lift"),
    ],
)
def test_blocks_that_cannot_follow_one_another_are_refused(blocks, match):
    with pytest.raises(InvalidParameter, match=match):
        check_blocks(blocks)


def test_blocks_of_every_allowed_order_pass():
    check_blocks([Block(width=math.inf), Block(), Block(5, 10), Block(3, None), Block(None, 10)])
    check_blocks([Block(width=5, patch=3), Block(3, 5, patch=3, pooling=2), Block(3)])


def test_networks_without_filters():
    assert network_blocks(2) == [Block(), Block()]
    assert network_blocks(1, width=9, activation="erf") == [Block(None, 9, "erf")]
    with pytest.raises(InvalidParameter, match="depth is 0"):
        network_blocks(0)


@settings(max_examples=40, deadline=None)
@given(counts=st.lists(st.integers(1, 50), min_size=2, max_size=6), centre=st.booleans())
def test_class_codes(counts, centre):
    code = LabelCode(np.array(counts), centre=centre)
    encoded = np.repeat(np.arange(len(counts)), counts)
    weights, outputs = code.weights(encoded), code.outputs(encoded)
    assert not code.is_real
    np.testing.assert_array_equal(code.encode(encoded), encoded)
    assert code.power == pytest.approx(np.sum(weights**2) / len(encoded))
    if len(counts) > 2:
        # Filters use centred one-hot columns, the readout the plain ones.
        np.testing.assert_allclose(weights, outputs - outputs.mean(axis=0), atol=1e-12)
        assert outputs.shape == (len(encoded), code.n_outputs) == (sum(counts), len(counts))
        return
    signs = np.where(encoded == 1, 1.0, -1.0)[:, None]
    np.testing.assert_array_equal(outputs, signs)
    np.testing.assert_allclose(weights, signs - centre * signs.mean(), atol=1e-12)


def test_real_codes():
    y = np.array([1.0, 2.0, 6.0])
    code = LabelCode(np.empty(0, dtype=int), y.mean(), y.std())
    encoded = code.encode(y)
    assert code.is_real
    assert encoded.mean() == pytest.approx(0, abs=1e-15)
    assert encoded.std() == pytest.approx(1)
    assert code.power == pytest.approx(1.0)
    np.testing.assert_array_equal(code.weights(encoded), code.outputs(encoded))


def test_labels_without_content_are_refused():
    with pytest.raises(InvalidData, match="one class"):
        LabelCode(np.array([4]))
    with pytest.raises(InvalidData, match="constant"):
        LabelCode(np.empty(0, dtype=int), 1.0, 0.0)
