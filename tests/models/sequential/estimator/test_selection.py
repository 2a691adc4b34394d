"""Selection of outliers on both sides, and reasons for rejected candidates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.models.sequential.estimator.selection import beyond, is_enough, select_outliers
from solvable.moment_spectrum.bulk_edges import NullEdges
from solvable.operators.eigen import Eigenpairs

NOISE = (-1.0, 1.2)


def eigenpairs(values, converged=None, n_upper=None):
    values = np.array(values, dtype=float)
    good = np.ones(values.size, dtype=bool) if converged is None else np.array(converged)
    return Eigenpairs(
        values=values,
        vectors=np.eye(max(values.size, 1))[:, : values.size],
        residuals=np.where(good, 1e-6, 0.4),
        products=17,
        route="lanczos",
        converged=good,
        scale=float(np.abs(values).max(initial=0)),
        n_upper=values.size // 2 if n_upper is None else n_upper,
    )


def noise_only(values, vectors):
    return NullEdges(NOISE, NOISE, 0.0, NOISE)


def growing_edges(values, vectors):
    """Edges with a population bulk of a third of the strongest feature."""
    reach = np.abs(values).max(initial=0) / 3
    bulk = min(NOISE[0], -reach), max(NOISE[1], reach)
    return NullEdges(NOISE, bulk, 0.0, bulk, room=0.2)


def test_both_sides_are_tested_against_their_own_edge():
    pairs = eigenpairs([1.5, 1.1, -0.9, -1.15, -1.9])
    selection = select_outliers(pairs, noise_only, wanted=None)
    # -1.15 is outside and 1.1 is not, because the two edges differ.
    assert pairs.values[selection.order].tolist() == [-1.9, 1.5, -1.15]
    assert selection.outliers.all()
    assert {one.reason for one in selection.rejected} == {"below threshold"}


def test_distance_beyond_the_edge_ranks_not_the_modulus():
    pairs = eigenpairs([2.0, 0.0, -1.95])
    selection = select_outliers(pairs, noise_only, wanted=1)
    assert pairs.values[selection.order].tolist() == [-1.95]


def test_fewer_features_than_asked_for_gives_a_reason_each():
    pairs = eigenpairs([3.0, 1.1, 0.9, -0.7, -0.8, -0.95])
    selection = select_outliers(pairs, noise_only, wanted=3)
    assert pairs.values[selection.order].tolist() == [3.0]
    assert [one.reason for one in selection.rejected] == ["below threshold"] * 2
    assert [one.eigenvalue for one in selection.rejected] == [1.1, -0.95]
    assert [one.rank for one in selection.rejected] == [2, 3]
    assert not any(one.returned for one in selection.rejected)
    assert "1.1" in selection.rejected[0].message
    assert "[-1, 1.2]" in selection.rejected[0].message


def test_forced_returns_the_number_asked_for_and_still_says_why():
    pairs = eigenpairs([3.0, 1.1, 0.9, -0.7, -0.8, -0.95])
    selection = select_outliers(pairs, noise_only, wanted=3, forced=True)
    # Both are inside: -0.95 is closer to its edge, 1.1 is farther from the centre.
    assert pairs.values[selection.order].tolist() == [3.0, 1.1, -0.95]
    assert selection.outliers.tolist() == [True, False, False]
    assert [one.returned for one in selection.rejected] == [True, True]


def test_features_widen_the_population_bulk():
    pairs = eigenpairs([6.0, 2.5, 1.5, -1.5, -2.4])
    selection = select_outliers(pairs, growing_edges, wanted=None)
    assert selection.edges.bulk == (-2.0, 2.0)
    assert pairs.values[selection.order].tolist() == [6.0, 2.5, -2.4]
    assert {(one.eigenvalue, one.reason) for one in selection.rejected} == {
        (1.5, "inside population bulk"),
        (-1.5, "inside population bulk"),
    }
    message = selection.rejected[0].message
    assert "[-1, 1.2]" in message
    assert "[-2, 2]" in message


def test_weak_candidates_do_not_predict_the_bulk_that_would_reject_them():
    """The strongest are selected first, so 1.5, outside the noise only, is rejected."""
    seen = []

    def record(values, vectors):
        seen.append(values.tolist())
        return growing_edges(values, vectors)

    select_outliers(eigenpairs([6.0, 1.5]), record, wanted=None)
    assert seen == [[], [6.0]]


def test_unconverged_directions_are_no_features():
    pairs = eigenpairs([3.0, 2.0, -2.0], converged=[False, True, True])
    selection = select_outliers(pairs, noise_only, wanted=3)
    assert pairs.values[selection.order].tolist() == [-2.0, 2.0]
    (rejection,) = selection.rejected
    assert rejection.reason == "solver not converged"
    assert "0.4" in rejection.message or "4.00e-01" in rejection.message
    assert "17 products" in rejection.message


def test_automatic_number_lists_a_few_of_each_reason():
    values = np.concatenate([[9.0], np.linspace(2.9, 1.3, 9), np.linspace(1.1, 0.1, 9)])
    selection = select_outliers(eigenpairs(values), growing_edges, wanted=None)
    reasons = [one.reason for one in selection.rejected]
    assert reasons.count("inside population bulk") == 3
    assert reasons.count("below threshold") == 3
    assert max(one.eigenvalue for one in selection.rejected) == pytest.approx(2.9)


def test_nothing_outside():
    selection = select_outliers(eigenpairs([0.5, -0.5]), growing_edges, wanted=None)
    assert selection.order.size == 0
    assert len(selection.rejected) == 2


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12),
    st.integers(1, 12),
    st.booleans(),
)
def test_what_is_selected_and_what_is_rejected_adds_up(values, wanted, forced):
    pairs = eigenpairs(values)
    selection = select_outliers(pairs, growing_edges, wanted=wanted, forced=forced)
    asked = min(wanted, len(values))
    if forced:
        assert selection.order.size == asked
        assert len(selection.rejected) == asked - np.count_nonzero(selection.outliers)
    else:
        assert selection.outliers.all()
        assert selection.order.size + len(selection.rejected) == asked
    distance = beyond(pairs.values, selection.edges.bulk)
    np.testing.assert_array_equal(selection.distance, distance)
    assert ((distance[selection.order] > 0) == selection.outliers).all()
    # Clearly outside: by distance. Others: by the modulus about the centre.
    far = np.maximum(distance - selection.edges.room, 0)[selection.order]
    assert (np.diff(far) <= 0).all()
    inside = np.abs(pairs.values[selection.order][far == 0] - selection.edges.centre)
    assert (np.diff(inside) <= 0).all()


def test_stands_out_of_the_corrected_bulk_alone():
    pairs = eigenpairs([1.1, 0.9, -0.5, -0.8])
    corrected = np.array([0.6, 0.1, 0.0, -0.2])

    def edges(values, vectors):
        return NullEdges(NOISE, NOISE, 0.0, (-0.3, 0.3))

    selection = select_outliers(pairs, edges, corrected=corrected, wanted=None)
    assert pairs.values[selection.order].tolist() == [1.1]


def test_what_is_enough():
    def enough(values, residuals, wanted, forced=False):
        values = np.array(values)
        pairs = replace(eigenpairs(values, np.array(residuals) < 1e-3), residuals=residuals)
        selection = select_outliers(pairs, noise_only, wanted=wanted, forced=forced)
        return is_enough(pairs, selection, wanted, forced=forced)

    good, rough, bad = 1e-6, 4e-2, 0.4
    # All requested features have converged; others do not matter.
    assert enough([3.0, 1.0, -0.5, -2.0], np.array([good, bad, bad, good]), 2)
    assert enough([3.0, 1.0, -0.5, -2.0], np.array([good, bad, bad, good]), 2, forced=True)
    # Fewer features than requested: residuals nearest to the edges must be small.
    assert not enough([3.0, 1.0, -0.5, -2.0], np.array([good, bad, bad, good]), None)
    assert enough([3.0, 1.0, -0.5, -2.0], np.array([good, rough, rough, good]), None)
    assert not enough([3.0, 1.0, -0.5, -2.0], np.array([rough, rough, rough, good]), None)
    # Forced directions must have converged, also inside the bulk.
    assert not enough([3.0, 1.0, -0.5, -2.0], np.array([good, rough, good, good]), 3, forced=True)
