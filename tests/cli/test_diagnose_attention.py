"""`solvable diagnose` on attention, in processes of its own, run like a user."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

H, D = 16, 64


def model():
    """One untrained layer of two heads, and one whose head 1 has a learned direction."""
    rng = np.random.default_rng(0)
    arrays = {
        f"layer.{layer}.attention.{name}.weight": rng.standard_normal((2 * H, D))
        for layer in (0, 1)
        for name in ("query", "key")
    }
    inside = rng.standard_normal(H) / H**0.5
    for name in ("query", "key"):
        direction = rng.standard_normal(D) / D**0.5
        arrays[f"layer.1.attention.{name}.weight"][H:] += 18.0 * np.outer(inside, direction)
    arrays["layer.0.attention.value.weight"] = rng.standard_normal((2 * H, D))
    return {name: array.astype(np.float32) for name, array in arrays.items()}


@pytest.fixture(scope="module")
def shown(terminal_in, tmp_path_factory):
    """A program in a directory with the diagnosis of a small model."""
    program = terminal_in(tmp_path_factory.mktemp("attention"), "diagnose", columns=None)
    save_file(model(), program.cwd / "w.safetensors")
    (program.cwd / "config.json").write_text(json.dumps({"num_attention_heads": 2}))
    program.answer = program("w.safetensors", "--output", "out")
    assert program.answer.returncode == 0, program.answer.stderr
    program.result = json.loads((program.cwd / "out" / "result.json").read_text())
    return program


def test_heads_are_separated(shown):
    answer = shown.answer.stdout
    for part in (
        "What did the attention heads learn?",
        "layer.1.attention head 1",
        "random-like (layer.0.attention head 0, layer.0.attention head 1 and layer.1.attention head 0)",
        "no learned direction is visible",
    ):
        assert part in answer.replace("\n", " ")
    rows = {row["name"]: row for row in shown.result["heads"]}
    assert len(rows) == 4
    changed = rows["layer.1.attention head 1"]
    assert (changed["phase"], changed["learned"]) == ("product+spikes", 1)
    assert changed["rank"] == changed["width"] == H
    # The page shows the heads and needs no network.
    page = (shown.cwd / "out" / "report.html").read_text()
    assert "What did the attention heads learn?" in page
    assert "layer.1.attention head 1: product+spikes" in page
    assert "http" not in page.split("<main>")[1].replace("http://www.w3.org", "")


def test_json_has_the_heads_and_another_number_is_another_request(shown, call, monkeypatch):
    monkeypatch.chdir(shown.cwd)
    names = ("layer.1.attention.query.weight", "layer.1.attention.key.weight")
    words = ("w.safetensors", "--pair", *names, "--heads", 2, "--json", "--quiet")
    status, printed, error = call("diagnose", *words)
    assert (status, error) == (0, "")
    found = json.loads(printed)
    assert [row["learned"] for row in found["heads"]] == [0, 1]
    assert "--heads 2 --pair layer.1.attention.query.weight" in found["command"]
    assert found["fingerprint"] != shown.result["fingerprint"]
    again = {row["name"]: row for row in shown.result["heads"]}
    assert found["heads"] == [again[row["name"]] for row in found["heads"]]


def test_unknown_heads_are_asked_for(tmp_path, call):
    save_file(model(), tmp_path / "w.safetensors")
    status, printed, _ = call("diagnose", tmp_path / "w.safetensors")
    assert status == 0
    assert "2 pairs of query and key were found by their names" in printed
    assert "pass --heads" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pair", "here", "there"), "there is no array 'here'"),
        (("--pair", "one"), "--pair"),
        (("--heads", 0), "--heads is 0; allowed: whole numbers from 1"),
        (("--heads", "many"), "allowed: whole numbers"),
        (("--heads", 5), "5 heads do not divide the 32 outputs of layer.0.attention.query.weight"),
        (
            ("--heads", 2, "--pair", "layer.0.attention.query.weight", "small"),
            "do not multiply: they are 32 x 64 and 7 x 5",
        ),
        (
            ("--heads", 2, "--pair", "layer.0.attention.query.weight", "bias"),
            "bias has the shape (7,)",
        ),
    ],
)
def test_bad_input_is_one_line(tmp_path, call, words, message):
    arrays = model() | {
        "small": np.ones((7, 5), dtype=np.float32),
        "bias": np.ones(7, dtype=np.float32),
    }
    save_file(arrays, tmp_path / "w.safetensors")
    status, printed, error = call("diagnose", tmp_path / "w.safetensors", *words)
    assert (status, printed) == (2, "")
    assert error.startswith("solvable: ")
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "solvable-runs").exists()


def test_heads_without_attention_say_so(tmp_path, call):
    np.save(tmp_path / "w.npy", np.random.default_rng(0).standard_normal((60, 90)))
    status, _, error = call("diagnose", tmp_path / "w.npy", "--heads", 4)
    assert status == 2
    assert "no names in w.npy mark a query and a key; name two arrays with --pair" in error
