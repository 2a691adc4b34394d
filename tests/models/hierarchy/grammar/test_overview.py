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


def test_fewer_rules_than_symbols_leave_no_negative_numbers():
    # 4 tuples below the label for 33 symbols: most symbols never occur.
    result = random_hierarchy_theory(
        vocabulary=33, rules=2, branching=2, depth=20, classes=2, samples=1e5, ensemble="uniform"
    )
    for name in ("noise", "next_token_losses"):
        assert (getattr(result, name) >= 0).all(), name


def test_impossible_grammars_are_refused():
    with pytest.raises(InvalidParameter, match="rules of at most 16"):
        random_hierarchy_theory(samples=300, **(SIZES | {"rules": 17}))
    with pytest.raises(InvalidParameter, match="at least 1"):
        random_hierarchy_theory(samples=0, **SIZES)
