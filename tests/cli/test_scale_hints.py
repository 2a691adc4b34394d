"""Every next step that the output of ``solvable scale`` names works for the same network."""

from __future__ import annotations

import re

import pytest

from solvable.cli import main
from solvable.scale import describe_layers

RELU = "relu:512,relu:512,relu:512"
MODELS = {
    "mlp": (RELU, 784),
    "one": ("relu:512", 784),
    "erf": ("erf:64,erf:64", 64),
    "narrow": ("tanh:7", 61),
    "gelu": ("gelu:300,gelu:200", 100),
    "conv": ("tanh:8:16", 64),
    "deep": (["sigmoid:90"] * 5, 30),
}
NETWORKS = [
    *(["MODEL", name] for name in MODELS),
    ["MODEL", "mlp", "--target", "he2", "--numbers", "kappa=0.5"],
    ["--layers", "erf:1", "--target", "he3"],
    ["--layers", "erf:1,erf:1", "--target", "he3"],
    ["--layers", "relu:1,relu:1", "--target", "he3"],
    ["--layers", "relu:1,relu:1,relu:1", "--target", "he3"],
    ["--layers", "erf:n,erf:m", "--target", "he3"],
    ["--layers", "erf:1-n:1/2", "--target", "he3"],
    ["--layers", "erf:0,erf:1", "--target", "he1"],
    ["--layers", "erf:1:1/50", "--target", "he3"],
    ["--layers", "erf:4:0", "--target", "he3", "--readout", "mean-field"],
    ["--layers", "erf:100,erf:100", "--target", "he1"],
]


HINT = re.compile(
    r"(--[a-z][a-z-]*)((?: [A-Za-z0-9_]+=[A-Za-z0-9./=,_]*[A-Za-z0-9]| (?:he|parity)[0-9])*)"
)


def call(words, capsys):
    status = main(["scale", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize("network", NETWORKS, ids=" ".join)
def test_every_hint_is_followed_and_none_is_refused(network, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, (layers, inputs) in MODELS.items():
        describe_layers(layers, inputs).save(f"{name}.json")
    words = [f"{network[1]}.json", *network[2:]] if network[0] == "MODEL" else network
    status, printed, error = call(words, capsys)
    assert (status, error) == (0, "")
    for name, values in dict.fromkeys(HINT.findall(" ".join(printed.split()))):
        assert name in ("--numbers", "--at", "--json", "--target"), name
        kept = words[: words.index(name)] if name in words else words
        status, _, error = call([*kept, name, *values.split()], capsys)
        assert (status, error) == (0, ""), (name, values)


def test_the_everyday_network_needs_no_second_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    describe_layers(RELU, 784).save("mlp.json")
    status, printed, _ = call(["mlp.json"], capsys)
    text = " ".join(printed.split())
    assert status == 0
    assert "see --numbers" not in text
    assert "lower bounds for alignment" in text
    assert not re.search(r"d\^\(?-?[0-9]{2,}/", text)


def test_the_dimension_is_that_of_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    describe_layers(RELU, 784).save("mlp.json")
    for sizes in (["kappa=0.5"], ["d=784", "kappa=0.5"]):
        status, printed, _ = call(["mlp.json", "--target", "he3", "--numbers", *sizes], capsys)
        assert status == 0
        assert "at d = 784" in printed
    status, _, error = call(["mlp.json", "--target", "he3", "--numbers", "N1=64"], capsys)
    assert status == 2
    assert "no prefactors are derived for 3 hidden layers" in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mlp.json", "--data", "digits"], "64 columns and the model takes 784 inputs"),
        (["mlp.json", "--numbers"], "--numbers has no size"),
        (["mlp.json", "--phase"], "--phase names no symbol"),
        (["mlp.json", "--phase", "s"], "symbol is 's'; allowed: n1, n2, n3"),
        (["--layers", "erf:1", "--target", "he-3"], "the target is 'he-3'"),
        (["--layers", "erf:1", "--target", "he_3"], "the target is 'he_3'"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    describe_layers(RELU, 784).save("mlp.json")
    (tmp_path / "net.toml").write_text("target = 'he3'\nlayers = [{ width = 1, act = 'erf' }]\n")
    status, printed, error = call(words, capsys)
    assert (status, printed) == (2, "")
    assert len(error.splitlines()) == 1
    assert said in error


def test_columns_that_do_not_vary_are_inputs_too(tmp_path, monkeypatch, capsys):
    import numpy as np

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 5))
    X[:, 4] = 7.0  # dropped by the reader, because it is constant
    rows = "\n".join(",".join(f"{x:.4f}" for x in (*row, row[0])) for row in X)
    (tmp_path / "table.csv").write_text(f"a,b,c,d,e,y\n{rows}\n")
    for inputs, status in ((4, 0), (5, 0), (6, 2), (3, 2)):
        describe_layers("tanh:9", inputs).save("m.json")
        found, _, error = call(["m.json", "--data", "table.csv", "--column", "y"], capsys)
        assert found == status, error
