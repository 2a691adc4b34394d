"""Each claim is tested by the quick preset, or its advice names a preset that tests it."""

from __future__ import annotations

import pytest

from solvable.cli.app import main
from solvable.cli.verdicts import remedy
from solvable.frame.claims import presets_named
from solvable.frame.registry import available, load
from solvable.study import load as load_study

SHIPPED = [listing.name for listing in available() if listing.package.startswith("solvable")]

MORE_SEEDS = {
    "curse-of-detail": {"error-falls-with-alignment": 14},
    "emergence-in-sgd": {"law-of-starts": 17},
    "neural-lofi-images": {"first-directions-stand-out": 12},
    "random-hierarchy": {"noise": 4},
    "sequential-recovery": {"loss-inside-span": 31},
}
"""Claims that the quick preset tests with more replicates than it has, and about how many."""


def advice(name):
    """Return the advice of each claim of a system."""
    return {claim.name: getattr(claim, "missing", "") for claim in load(name).claims}


def verdicts(name, options, path):
    """Return the verdicts of a run by claim."""
    main(["run", name, *options.split(), "--output", str(path), "--workers", "1", "--quiet"])
    return {verdict.claim: verdict for verdict in load_study(path).verdicts}


WITH_SETTINGS = [
    (name, f"--preset {presets[0]}{settings}", claim)
    for name in SHIPPED
    for claim, text in advice(name).items()
    for presets, settings in presets_named(" ".join(text.split()))
    if settings
]


def test_claims_with_more_seeds_exist():
    for name, claims in MORE_SEEDS.items():
        assert claims.keys() <= advice(name).keys()
        assert all(seeds > load(name).presets["quick"].replicates for seeds in claims.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_what_the_quick_preset_does_not_test_names_another_one(name, tmp_path):
    system = load(name)
    found = verdicts(name, "--preset quick", tmp_path)
    without = [
        claim
        for claim, verdict in found.items()
        if verdict.status == "not testable"
        and claim not in MORE_SEEDS.get(name, {})
        and not remedy(verdict.reason, system, "quick").startswith("--preset")
        and not remedy(advice(name)[claim], system, "quick").startswith("--preset")
    ]
    assert without == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options", "claim"), WITH_SETTINGS)
def test_a_preset_with_named_settings_tests_its_claim(name, options, claim, tmp_path):
    assert verdicts(name, options, tmp_path)[claim].status == "holds"
