"""Cost model of the routes: clear cases, limits of memory, and the order of measured times."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable import memory
from solvable.errors import InvalidParameter, MemoryLimitExceeded
from solvable.operators import HermiteFeatures, Route, choose_route
from solvable.operators.routes import basis_capacity, expected_products, possible_routes


@pytest.mark.parametrize(
    ("n", "degree", "dimension", "correction", "expected"),
    [
        # Sizes of large problems with few eigenpairs
        (410_950, 2, 120, "wick", "lanczos"),
        (157_744, 2, 400, "none", "lanczos"),
        (20_000, 1, 50, "none", "dense"),
        (3_000, 2, 20, "wick", "dense"),
        (200, 2, 200, "none", "gram"),
        (100, 3, 60, "none", "gram"),
        (300, 1, 20_000, "none", "gram"),
        # No dual form of the corrected operator.
        (200, 2, 200, "wick", "lanczos"),
        # For degree 1 the correction is zero.
        (300, 1, 20_000, "wick", "gram"),
    ],
)
def test_clear_cases(n: int, degree: int, dimension: int, correction: Any, expected: str) -> None:
    features = HermiteFeatures(degree, dimension)
    route = choose_route(n, features, 11, 64e9, correction=correction)
    assert route.name == expected
    assert route.flops <= min(other.flops for other in route.alternatives)
    assert route.name not in {other.name for other in route.alternatives}


def test_dual_form_exists_below_the_number_of_features_only() -> None:
    features = HermiteFeatures(2, 10)
    assert {route.name for route in possible_routes(54, features, 3)} == {
        "lanczos",
        "dense",
        "gram",
    }
    assert {route.name for route in possible_routes(55, features, 3)} == {"lanczos", "dense"}


def test_memory_decides_before_time() -> None:
    features = HermiteFeatures(2, 60)
    free = choose_route(30_000, features, 200, 64e9)
    assert free.name == "dense"
    tight = choose_route(30_000, features, 200, free.bytes / 2)
    assert tight.name == "lanczos"
    assert tight.bytes < free.bytes / 2


def test_refusal_says_what_would_fit() -> None:
    features = HermiteFeatures(2, 300)
    with pytest.raises(MemoryLimitExceeded, match=r"dense .*exceeds the 4 GB available") as caught:
        choose_route(100_000, features, 5, 4e9, route="dense")
    assert "The smallest route is lanczos" in str(caught.value)
    with pytest.raises(MemoryLimitExceeded, match=r"lanczos .*, dense"):
        choose_route(100_000, features, 5, 1e6)


def test_a_forced_route_is_taken_and_keeps_its_alternatives() -> None:
    features = HermiteFeatures(1, 50)
    route = choose_route(1000, features, 5, 1e9, route="lanczos")
    assert route.name == "lanczos"
    assert [other.name for other in route.alternatives] == ["dense"]
    assert str(Route("dense", 1.2e9, 3e6)) == "dense (1.2e+09 flops, 3 MB)"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 3), {}, "n_samples is 0"),
        ((10, 0), {}, "n_vectors is 0; allowed: 1 to the 10 features"),
        ((10, 11), {}, "n_vectors is 11"),
        ((10, 3), {"route": "gram"}, "got n = 10 and D = 10"),
        ((5, 3), {"route": "gram", "correction": "wick"}, "no dual form"),
        ((5, 3), {"route": "full"}, "allowed: auto, lanczos, dense, gram"),
    ],
)
def test_bad_parameters(arguments: tuple[int, int], options: dict[str, Any], message: str) -> None:
    n, k = arguments
    with pytest.raises(InvalidParameter, match=message):
        choose_route(n, HermiteFeatures(2, 4), k, 1e9, **options)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 10**7),
    st.integers(1, 3),
    st.integers(1, 60),
    st.sampled_from(["none", "wick"]),
    st.sampled_from([4, 8]),
)
def test_costs_are_positive_and_grow(n: int, q: int, d: int, correction: Any, size: int) -> None:
    features = HermiteFeatures(q, d)
    small = possible_routes(n, features, 1, correction=correction, itemsize=size)
    large = possible_routes(n + 1000, features, 1, correction=correction, itemsize=size)
    costs = {route.name: route for route in large}
    for route in small:
        assert route.flops > 0
        assert route.bytes > 0
        if route.name in costs:
            assert costs[route.name].flops >= route.flops
    assert 1 <= basis_capacity(features.n_features, 1) <= features.n_features
    assert expected_products(features.n_features, 1) <= features.n_features


def test_the_basis_holds_the_pairs_asked_for() -> None:
    assert basis_capacity(10**7, 50) == 120
    assert basis_capacity(1000, 5) == 400


def test_available_memory_is_a_sane_number() -> None:
    assert memory.available_bytes() > 1e6
    assert memory.gigabytes(2.5e9) == "2.5 GB"
    assert memory.gigabytes(3e6) == "3 MB"


@pytest.mark.parametrize(
    ("line", "folder", "names"),
    [
        ("0::/job/step", "job/step", ("memory.max", "memory.current", "inactive_file")),
        ("0::/job/step", "job", ("memory.max", "memory.current", "inactive_file")),
        ("0::/elsewhere", "", ("memory.max", "memory.current", "inactive_file")),
        (
            "4:cpu,memory:/job/step",
            "memory/job",
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ),
    ],
)
def test_a_control_group_limits_the_machine(
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    folder: str,
    names: tuple[str, str, str],
) -> None:
    (tmp_path / "cgroup").write_text(f"3:cpu:/other\n{line}\n")
    group = tmp_path / "groups" / folder
    group.mkdir(parents=True)
    limit, usage, reclaimable = names
    (group / limit).write_text("1000\n")
    (group / usage).write_text("400\n")
    monkeypatch.setattr(memory, "_PROCESS", tmp_path)
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "groups")
    assert memory.available_bytes() == 600
    # Cached files are given back when memory is needed.
    (group / "memory.stat").write_text(f"anon 300\n{reclaimable} 50\n")
    assert memory.available_bytes() == 650
    (group / limit).write_text("max\n")
    assert memory.available_bytes() > 1e6


def test_a_limit_of_the_address_space_counts() -> None:
    program = (
        "import resource\n"
        "from solvable.memory import available_bytes\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9))\n"
        "print(available_bytes())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert 1e9 < float(done.stdout) < 2e9
