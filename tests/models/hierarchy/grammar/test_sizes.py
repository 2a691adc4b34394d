"""Sizes of grammars: what is refused, and what is not predicted for too few tuples."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.grammar import language, theory
from solvable.models.hierarchy.grammar.sizes import GrammarSizes

SIZES = {"vocabulary": 16, "rules": 4, "branching": 2, "depth": 3, "classes": 8}

BAD = {
    "vocabulary": [0, 1, 10**400, 10**5000, None, "a", 2.5, True],
    "rules": [0, -1, 17, 10**400, None, "a", 2.5],
    "branching": [0, 1, 10**400, 10**5000, None, "a"],
    "depth": [0, 10**9, 10**5000, 2.5, None, "a"],
    "classes": [1, -1, None, "a", 1.5, 10**400],
    "ensemble": ["odd", None, ["first"]],
}


@pytest.mark.parametrize("name", BAD)
def test_values_out_of_range_are_refused_in_one_line(name):
    for value in BAD[name]:
        with pytest.raises(InvalidParameter, match="allowed") as raised:
            GrammarSizes(**(SIZES | {name: value}))
        assert "\n" not in str(raised.value)
        assert len(str(raised.value)) < 600


@pytest.mark.parametrize(
    "extreme", [{"rules": 1}, {"rules": 16}, {"depth": 1}, {"vocabulary": 2, "rules": 2}]
)
@pytest.mark.parametrize("ensemble", ["first", "uniform"])
def test_ends_of_the_ranges_have_numbers(extreme, ensemble):
    sizes = SIZES | {"classes": 0, "ensemble": ensemble} | extreme
    assert np.isfinite(theory.squared_signal(**sizes)).all()
    assert np.isfinite(language.compatible_losses(**sizes)).all()
    for samples in (1, 1e12):
        assert np.isfinite(theory.squared_noise(samples, **sizes)).all()
        assert np.isfinite(theory.synonymic_sensitivity(samples, **sizes)).all()


def test_fewer_tuples_than_symbols_leave_entries_open():
    # 4 tuples below the label for 33 symbols: most symbols never occur.
    sizes = {"vocabulary": 33, "rules": 2, "branching": 2, "depth": 20, "classes": 2}
    sizes |= {"ensemble": "uniform"}
    for values in (theory.squared_signal(**sizes), theory.squared_noise(1e5, **sizes)):
        assert np.isnan(values).tolist() == [False] + [True] * 19
    assert np.isnan(language.compatible_losses(**sizes)).tolist() == [True] * 20 + [False]
    assert np.isnan(language.correlation_plateau(**sizes)).all()
    assert np.isfinite(theory.synonymic_sensitivity(1e5, **sizes)).all()
    assert np.isfinite(language.compatible_tokens(**sizes)).all()
