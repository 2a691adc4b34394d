"""Change since initial weights: weight decay, small matrices, and the factors that are written."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import solvable
from solvable.arrays import random_stream
from solvable.cli import main
from solvable.diagnose import diagnose_matrix
from solvable.diagnose.change import change_between

SHAPE = (60, 150)


def start_and_update(rank, size=0.5, shape=SHAPE, seed=0):
    rng = random_stream(seed, "change")
    start = rng.standard_normal(shape) / shape[1] ** 0.5
    update = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    return start, update * size * np.linalg.norm(start) / np.linalg.norm(update)


@pytest.mark.parametrize("decay", [1.0, 0.7, 0.3])
@pytest.mark.parametrize("laws", [True, False])
def test_weight_decay_does_not_hide_the_rank_of_an_update(decay, laws):
    start, update = start_and_update(3)
    found = diagnose_matrix(decay * start + update, initial=start, laws=laws).initial
    assert found.rank == 3
    assert found.difference.directions == 3
    # Without decay the change is not compared with a multiple: 1 is exact.
    assert found.multiple == pytest.approx(decay, abs=0.02 if decay < 1 else 1e-12)
    norm = np.linalg.norm((decay - 1) * start + update) / np.linalg.norm(start)
    assert found.relative_change == pytest.approx(norm)
    assert ("times the start" in found.text) == (decay < 1)


def test_a_matrix_that_only_shrank_has_no_new_direction():
    start, _ = start_and_update(1)
    change, multiple, relative = change_between(0.6 * start, start)
    assert (multiple, relative) == pytest.approx((0.6, 0.4))
    np.testing.assert_allclose(change, -0.4 * start)
    assert not diagnose_matrix(0.6 * start, initial=start, laws=False).initial.difference.directions


def test_small_zero_and_equal_matrices_have_a_change():
    start, update = start_and_update(1, 3.0, (6, 80))
    found = diagnose_matrix(start + update, initial=start).initial
    assert (found.rank, found.difference.directions) == (1, 1)
    assert found.relative_change == pytest.approx(3.0)
    same = diagnose_matrix(start, initial=start).initial
    assert (same.relative_change, same.rank) == (0.0, None)
    grown = diagnose_matrix(start, initial=0 * start).initial
    assert grown.relative_change is None
    assert grown.rank == 6


def test_factors_of_the_change_restore_the_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before, after = {}, {}
    for name, rank in {"model.0.weight": 2, "model.1.weight": 5}.items():
        start, update = start_and_update(rank, seed=rank)
        before[name], after[name] = start.astype(np.float32), (start + update).astype(np.float32)
    rng = random_stream(1, "others")
    for name, shape in {"model.2.weight": (40, 50), "model.3.kernel": (4, 50)}.items():
        before[name] = np.zeros(shape, np.float32)
        after[name] = rng.standard_normal(shape, dtype=np.float32)
    before["model.0.bias"] = after["model.0.bias"] = np.ones(60, np.float32)
    save_file(before, "before.safetensors")
    save_file(after, "after.safetensors")
    words = ["diagnose", "after.safetensors", "--quick", "--adapter", "--output", "out"]
    assert main(words) == 2
    assert main([*words, "--initial", "before.safetensors", "--workers", "1"]) == 0
    factors = load_file("out/adapter/adapter_model.safetensors")
    settings = json.loads((tmp_path / "out/adapter/adapter_config.json").read_text())
    assert settings["target_modules"] == ["model.0", "model.1"]
    for name, rank in {"model.0": 2, "model.1": 5}.items():
        first, second = (factors[f"base_model.model.{name}.lora_{part}.weight"] for part in "AB")
        assert first.shape[0] == second.shape[1] == rank
        # alpha / rank is 1, so that the product is the change itself.
        assert settings["alpha_pattern"][name] == settings["rank_pattern"][name] == rank
        exact = after[f"{name}.weight"] - before[f"{name}.weight"]
        assert np.linalg.norm(second @ first - exact) <= 0.05**0.5 * np.linalg.norm(exact)
    notes = " ".join(json.loads((tmp_path / "out/result.json").read_text())["notes"])
    assert "rank 2 to 5" in notes
    assert "because factors would be as large: model.2.weight" in notes
    assert "only matrices named .weight can be: model.3.kernel" in notes
    # Our own reader finds the same adapter.
    rows = solvable.diagnose_weights("out/adapter", quick=True).matrices
    assert [row.shape for row in rows] == [SHAPE, SHAPE]
