"""All predictions of a grammar in one result."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.grammar import language, theory
from solvable.models.hierarchy.grammar.overview import random_hierarchy_theory

SIZES = {"vocabulary": 16, "rules": 4, "branching": 2, "depth": 3, "classes": 8}


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
def test_result_contains_the_functions_of_its_parts(ensemble):
    sizes = SIZES | {"ensemble": ensemble}
    result = random_hierarchy_theory(samples=300, zipf=0.5, **sizes)
    assert result.p_star == pytest.approx(8 * 64)
    parts = {
        "level_thresholds": theory.level_thresholds(**sizes),
        "signal": theory.squared_signal(**sizes),
        "noise": theory.squared_noise(300, zipf=0.5, **sizes),
        "synonymic_sensitivity": theory.synonymic_sensitivity(300, zipf=0.5, **sizes),
        "correlation_plateau": language.correlation_plateau(**sizes),
        "data_thresholds": language.data_thresholds(**sizes),
        "compatible_tokens": language.compatible_tokens(**sizes),
        "next_token_losses": language.compatible_losses(**sizes),
    }
    for name, expected in parts.items():
        assert np.array_equal(getattr(result, name), expected), name
    critical = language.critical_noise(vocabulary=16, rules=4, branching=2, ensemble=ensemble)
    assert result.critical_noise == pytest.approx(critical.epsilon)
    assert result.phase == critical.phase


@pytest.mark.parametrize(
    "extreme", [{"rules": 1}, {"rules": 16}, {"depth": 1}, {"vocabulary": 2, "rules": 2}]
)
@pytest.mark.parametrize("ensemble", ["first", "uniform"])
def test_ends_of_the_ranges_have_numbers(extreme, ensemble):
    sizes = SIZES | {"classes": 0, "ensemble": ensemble} | extreme
    for samples in (1, 1e12):
        result = random_hierarchy_theory(samples=samples, **sizes)
        for name in ("signal", "noise", "synonymic_sensitivity", "next_token_losses"):
            assert np.isfinite(getattr(result, name)).all(), name


def test_fewer_tuples_than_symbols_leave_entries_open():
    # 4 tuples below the label for 33 symbols: most symbols never occur.
    result = random_hierarchy_theory(
        vocabulary=33, rules=2, branching=2, depth=20, classes=2, samples=1e5, ensemble="uniform"
    )
    for name in ("signal", "noise"):
        assert np.isnan(getattr(result, name)).tolist() == [False] + [True] * 19, name
    assert np.isnan(result.next_token_losses).tolist() == [True] * 20 + [False]
    assert np.isnan(result.correlation_plateau).all()
    assert np.isfinite(result.synonymic_sensitivity).all()
    assert np.isfinite(result.compatible_tokens).all()


BAD = {
    "vocabulary": [0, 1, 10**400, 10**5000, None, "a", 2.5, True],
    "rules": [0, -1, 10**400, None, "a", 2.5],
    "branching": [0, 1, 10**400, 10**5000, None, "a"],
    "depth": [0, 10**9, 10**5000, 2.5, None, "a"],
    "classes": [1, -1, None, "a", 1.5, 10**400],
    "ensemble": ["odd", None, ["first"]],
    "samples": [0, 0.5, [1, 2], "a", None, np.nan, np.inf, 10**400, True],
    "zipf": [-1, 6, np.nan, "a", None, [1.0], 10**400],
}


@pytest.mark.parametrize("name", BAD)
def test_values_out_of_range_are_refused_in_one_line(name):
    for value in BAD[name]:
        with pytest.raises(InvalidParameter, match="allowed") as raised:
            random_hierarchy_theory(**({"samples": 300} | SIZES | {name: value}))
        assert "\n" not in str(raised.value)
        assert len(str(raised.value)) < 600


def test_impossible_grammars_are_refused():
    with pytest.raises(InvalidParameter, match="rules of at most 16"):
        random_hierarchy_theory(samples=300, **(SIZES | {"rules": 17}))
    with pytest.raises(InvalidParameter, match="from 1 to"):
        random_hierarchy_theory(samples=0, **SIZES)
