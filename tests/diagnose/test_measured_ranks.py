"""Ranks that keep a loss: bisection against a scan of all ranks, and the user's own function."""

from __future__ import annotations

import json

import numpy as np
import pytest

from solvable.data.weights.opening import open_weights
from solvable.diagnose.measured_ranks import evaluations_of, measure_ranks
from solvable.errors import InvalidData, InvalidParameter


def network(seed=0):
    """Two layers whose hidden matrix has five directions that the outputs need, and noise."""
    rng = np.random.default_rng(seed)
    u, v = (np.linalg.qr(rng.standard_normal((side, 5)))[0] for side in (40, 30))
    noise = 0.01 * rng.standard_normal((40, 30))
    return {
        "first": (u * [6.0, 5.0, 4.0, 3.0, 2.0]) @ v.T + noise,
        "bias": rng.standard_normal(40),
        "second": rng.standard_normal((3, 40)) / 40**0.5,
        "idle": rng.standard_normal((20, 50)),
    }


def loss_of(truth, rows=False):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((300, 30))

    def outputs(arrays):
        return np.tanh(x @ arrays["first"].T + arrays["bias"]) @ arrays["second"].T

    y = outputs(truth) + 0.3 * rng.standard_normal((300, 3))

    def loss(arrays):
        losses = ((outputs(arrays) - y) ** 2).sum(axis=1)
        return losses if rows else float(losses.mean())

    return loss


@pytest.mark.parametrize("rows", [False, True])
def test_ranks_are_those_of_a_scan_over_all_ranks(rows):
    arrays = network()
    loss = loss_of(arrays, rows)
    found = measure_ranks(arrays, loss)
    base = float(np.mean(loss(arrays)))
    assert found.loss == pytest.approx(base)
    by_name = {row.name: row for row in found.rows}
    assert list(by_name) == ["first", "second", "idle"]
    left, values, right = np.linalg.svd(arrays["first"], full_matrices=False)
    scan = [
        float(np.mean(loss(arrays | {"first": (left[:, :k] * values[:k]) @ right[:k]})))
        for k in range(31)
    ]
    kept = [value <= 1.01 * base for value in scan]
    assert by_name["first"].rank == kept.index(True) == 5
    assert by_name["first"].full == 30
    assert by_name["first"].loss == pytest.approx(scan[5])
    assert by_name["second"].rank == 3
    assert by_name["idle"].rank == 0
    assert found.evaluations <= evaluations_of(open_weights(arrays).arrays)
    assert found.together <= 1.02 * base
    # 5 (40 + 30) + 3 · 40 numbers of 40 · 30 + 3 · 40 + 20 · 50: factors of a whole matrix do not pay.
    assert found.kept == pytest.approx((350 + 120) / (1200 + 120 + 1000))


def test_a_loss_that_is_no_loss_is_refused():
    arrays = network()
    with pytest.raises(InvalidData, match="the loss is -1; allowed: finite numbers above 0"):
        measure_ranks(arrays, lambda given: -1.0)
    with pytest.raises(InvalidData, match="the loss raised KeyError"):
        measure_ranks(arrays, lambda given: given["no such array"])
    with pytest.raises(InvalidData, match="holds no matrix"):
        measure_ranks({"b": np.ones(3)}, lambda given: 1.0)
    with pytest.raises(InvalidData, match="w has entries that are not finite"):
        measure_ranks({"w": np.full((3, 4), np.nan)}, lambda given: 1.0)
    with pytest.raises(InvalidParameter, match="tolerance is 2"):
        measure_ranks(arrays, lambda given: 1.0, tolerance=2.0)


def test_the_command_measures_with_a_file_of_the_user(tmp_path, monkeypatch):
    from solvable.cli import main

    monkeypatch.chdir(tmp_path)
    truth = network()
    np.savez("w.npz", **truth)
    text = "import numpy as np\ntruth = dict(np.load('w.npz'))\n"
    text += "def loss(arrays):\n    print('seen')\n"
    text += "    return 1 + 9 * np.abs(arrays['first'] - truth['first']).max()\n"
    (tmp_path / "own.py").write_text(text)
    words = ["diagnose", "w.npz", "--evaluate", "own.py:loss", "--quick", "--output", "out"]
    assert main([*words, "--workers", "1"]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    ranks = {row["name"]: row["rank"] for row in result["needed_ranks"]["rows"]}
    assert ranks["second"] == ranks["idle"] == 0
    assert ranks["first"] >= 5
    assert "--evaluate own.py:loss" in result["command"]
    assert "needed_rank" in (tmp_path / "out" / "rows.csv").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("own.py", "allowed: module:name or module.py:name"),
        ("none.py:loss", "No such file"),
        ("own.py:gain", "has no attribute 'gain'"),
        ("own.py:number", "is no function"),
        ("broken.py:loss", "SyntaxError"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_refused_in_one_line(
    tmp_path, monkeypatch, capsys, text, message
):
    from solvable.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("number = 1\ndef loss(arrays):\n    return 1.0\n")
    (tmp_path / "broken.py").write_text("def loss(:\n")
    np.savez("w.npz", **network())
    assert main(["diagnose", "w.npz", "--evaluate", text, "--quick", "--workers", "1"]) == 2
    assert message in capsys.readouterr().err
