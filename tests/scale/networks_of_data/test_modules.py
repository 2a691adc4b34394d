"""Real models read from modules, lists and files, and one-line errors."""

import json
import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest

from solvable import scale_network
from solvable.cli import main
from solvable.data import from_arrays
from solvable.errors import InvalidData, InvalidParameter, SolvableError
from solvable.scale import describe_layers, describe_module
from solvable.scale.networks_of_data import calculator_networks as real
from solvable.scale.networks_of_data.calculator_networks import describe_real
from solvable.scale.networks_of_data.input_spectrum import measure_inputs
from solvable.scale.networks_of_data.layer_description import near_fraction
from solvable.scale.networks_of_data.modules import read_model

CNN = ["conv 12 kernel=3x5 stride=2x1 padding=1", "tanh", "pool 2x2", "flatten", "linear 40", "relu",
       "linear 7"]  # fmt: skip


def test_sizes_and_exponents_of_a_list():
    model = describe_layers(CNN, (3, 16, 20))
    d = 3 * 16 * 20
    first, second = model.hidden
    # Heights (16 + 2 - 3) // 2 + 1 = 8 and widths 20 + 2 - 5 + 1 = 18, halved by pooling.
    assert (first.width, first.fan_in, first.positions, first.pooled) == (12, 45, 8 * 18, 4 * 9)
    assert (second.width, second.fan_in, second.positions, second.act) == (
        40,
        12 * 36,
        None,
        "relu",
    )
    assert model.outputs == 7
    assert model.numbers == {"d": d, "N1": 12, "N2": 40}
    for layer, entry in zip(model.hidden, model.mapping()["layers"], strict=True):
        assert abs(float(Fraction(entry["width"])) - math.log(layer.width) / math.log(d)) <= 0.01
    assert "patch" not in model.mapping()["layers"][1]
    assert any("overlap" in sentence for sentence in model.words())


@pytest.mark.parametrize(("value", "fraction"), [
    (0.5, "1/2"), (0.7281, "8/11"), (1.004, "1"),
    (-0.25, "-1/4"), (0.0, "0"), (0.331, "1/3"),
])  # fmt: skip
def test_simplest_fraction_near_a_number(value, fraction):
    assert near_fraction(value) == Fraction(fraction)


def test_simplest_fraction_is_the_simplest():
    rng = np.random.default_rng(4)
    for value in rng.uniform(0, 3, 200):
        near = near_fraction(value)
        assert abs(near - value) <= 0.01 + 1e-12
        smaller = [Fraction(round(value * q), q) for q in range(1, near.denominator)]
        assert all(abs(other - Fraction(value)) > 0.01 for other in smaller)


def test_a_saved_description_is_read_back(tmp_path):
    model = describe_layers(CNN, (3, 16, 20))
    assert read_model(model.save(tmp_path / "model.json")) == model
    (tmp_path / "model.toml").write_text(
        "input_shape = 60\n[[layers]]\nkind='linear'\nsize=30\n[[layers]]\nkind='elu'\n"
        "[[layers]]\nkind='linear'\nsize=1\n"
    )
    found = read_model(tmp_path / "model.toml")
    assert found.numbers == {"d": 60, "N": 30}
    assert any("elu is treated as relu" in sentence for sentence in found.words())


@pytest.mark.parametrize(("layers", "shape", "part"), [
    ([], 8, "0 layers"),
    ("linear 4", 8, "a list of layers"),
    (["linear -3", "relu", "linear 1"], 8, "size is -3"),
    (["linear 0", "relu", "linear 1"], 8, "size is 0"),
    (["linear 4", "attention", "linear 1"], 8, "kind is 'attention'"),
    (["linear 4", "linear 1"], 8, "without an activation between"),
    (["linear 4"], 8, "no hidden layer"),
    (["linear 4", "relu"], 8, "linear readout"),
    (["conv 4 kernel=9", "relu", "linear 1"], (1, 8, 8), "that fits into the inputs"),
    (["conv 4 kernel=3", "relu", "linear 1"], 64, "after a vector"),
    (["conv 4 kernel=3x3x3", "relu", "linear 1"], (1, 8, 8), "kernel is"),
    (["conv 4", "relu", "linear 1"], (1, 8, 8), "has no kernel"),
    (["linear", "relu", "linear 1"], 8, "has no size"),
    (["pool 2", "linear 4", "relu", "linear 1"], (1, 8, 8), "before any convolution"),
    ([{"kind": "linear", "size": True}], 8, "size is True"),
    ([{"kind": "linear", "size": 4, "cost": 3}], 8, "'cost'"),
    ([{"size": 4}], 8, "mapping with a kind"),
    ([None], 8, "text, or a mapping"),
    (["linear 4 # x"], 8, "is unknown"),
    (["linear 4", "relu", "linear 1"], 0, "input_shape"),
    (["linear 4", "relu", "linear 1"], (1, -8), "input_shape"),
    (["linear 4", "relu", "linear 1"], 1, "1 input"),
    ([{"kind": "linear", "size": 4, "inputs": 9}, "relu", "linear 1"], 8, "takes 9 inputs"),
])  # fmt: skip
def test_bad_lists_are_refused_in_a_line(layers, shape, part):
    with pytest.raises(InvalidData, match=part) as caught:
        describe_layers(layers, shape)
    assert "\n" not in str(caught.value)


def test_no_file_is_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was opened",))

    for name in ("model.pt", "model.pkl", "model.json", "model.toml", "model.safetensors"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(InvalidData) as caught:
            read_model(tmp_path / name, act="relu")
        assert "\n" not in str(caught.value)
    with pytest.raises(InvalidData, match="No such file"):
        read_model(tmp_path / "none.json")


@pytest.mark.parametrize("content", [
    [], 3, {}, {"layers": []}, {"input_shape": 8}, {"input_shape": 8, "layers": {"a": 1}},
    {"input_shape": 8, "layers": ["linear 4", "relu", "linear 1"], "run": "rm"},
    {"input_shape": 8, "layers": ["linear 4", "relu", "linear 1"], "notes": 3},
    {"input_shape": [[8]], "layers": ["linear 4", "relu", "linear 1"]},
    {"input_shape": 8, "layers": [["linear", 4]]},
])  # fmt: skip
def test_files_that_describe_no_model(tmp_path, content):
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(InvalidData) as caught:
        read_model(tmp_path / "model.json")
    assert "\n" not in str(caught.value)


def test_deeply_nested_files_end(tmp_path):
    (tmp_path / "model.json").write_text("[" * 100_000)
    with pytest.raises(InvalidData, match="nested too deeply"):
        read_model(tmp_path / "model.json")


def test_shapes_of_stored_weights(tmp_path):
    save = pytest.importorskip("safetensors.numpy").save_file
    sizes = [50, 40, 30, 1]
    # The names of twelve layers would sort as text, with 10 before 2.
    names = ["net.2", "net.4", "net.10"]
    weights = {
        f"{name}.weight": np.zeros((after, before), dtype=np.float32)
        for name, before, after in zip(names, sizes, sizes[1:], strict=False)
    }
    save(weights | {"net.2.bias": np.zeros(40, dtype=np.float32)}, tmp_path / "w.safetensors")
    model = read_model(tmp_path / "w.safetensors", act="tanh")
    assert model.numbers == {"d": 50, "N1": 40, "N2": 30}
    assert [layer.act for layer in model.hidden] == ["tanh", "tanh"]
    with pytest.raises(InvalidParameter, match="holds no activations"):
        read_model(tmp_path / "w.safetensors")
    with pytest.raises(InvalidParameter, match="'swash'"):
        read_model(tmp_path / "w.safetensors", act="swash")
    save(weights | {"net.3.weight": np.zeros((7, 9), dtype=np.float32)}, tmp_path / "x.safetensors")
    with pytest.raises(InvalidData, match="takes 9 inputs"):
        read_model(tmp_path / "x.safetensors", act="tanh")
    save({"conv.weight": np.zeros((4, 1, 3, 3), dtype=np.float32)}, tmp_path / "c.safetensors")
    with pytest.raises(InvalidData, match="stride and padding"):
        read_model(tmp_path / "c.safetensors", act="tanh")


@pytest.mark.torch
class TestTorch:
    @pytest.fixture
    def nn(self):
        return pytest.importorskip("torch").nn

    def test_shapes_are_those_of_a_forward_pass(self, nn):
        import torch

        layers = [nn.Conv2d(2, 6, (3, 2), stride=(2, 1), padding=(1, 0)), nn.BatchNorm2d(6),
                  nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 5, 2), nn.GELU(),
                  nn.AdaptiveAvgPool2d((2, 1)), nn.Flatten(), nn.Dropout(), nn.Linear(10, 9),
                  nn.Tanh(), nn.Linear(9, 3)]  # fmt: skip
        model = describe_module(nn.Sequential(nn.Sequential(*layers[:6]), *layers[6:]), (2, 11, 12))
        x = torch.zeros(1, 2, 11, 12)
        seen = []
        for layer in layers:
            x = layer.eval()(x)
            seen.append(tuple(x.shape[1:]))
        assert [h.positions for h in model.hidden] == [
            math.prod(seen[0][1:]), math.prod(seen[4][1:]), None]  # fmt: skip
        assert [h.pooled for h in model.hidden] == [
            math.prod(seen[3][1:]), math.prod(seen[6][1:]), None]  # fmt: skip
        assert [h.fan_in for h in model.hidden] == [12, 24, 10]
        assert [h.name for h in model.hidden] == ["0.0", "0.4", "4"]
        words = " ".join(model.words())
        assert "normalisation is ignored" in words
        assert "3 outputs" in words

    def test_a_module_of_ones_own(self, nn, tmp_path):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.c, self.b, self.a = nn.Linear(50, 1), nn.Linear(100, 50), nn.Linear(64, 100)

            def forward(self, x):
                x = nn.functional.gelu(self.a(x))
                return self.c(self.b(x).tanh() / 2)

        # The order is that of the forward pass; activations are functions.
        model = describe_module(Net(), 64)
        assert model.numbers == {"d": 64, "N1": 100, "N2": 50}
        assert [layer.act for layer in model.hidden] == ["gelu", "tanh"]
        assert read_model(model.save(tmp_path / "net.json")) == model

    def test_means_over_positions_and_padding_by_a_word(self, nn):
        net = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding="same"), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(4, 1),
        )  # fmt: skip
        (layer,) = describe_module(net, (1, 6, 6)).hidden
        assert (layer.positions, layer.pooled) == (36, 1)

    def test_one_activation_used_twice(self, nn):
        act = nn.Tanh()
        model = describe_module(
            nn.Sequential(nn.Linear(9, 8), act, nn.Linear(8, 7), act, nn.Linear(7, 1))
        )
        assert [layer.width for layer in model.hidden] == [8, 7]

    @pytest.mark.parametrize(("make", "shape", "part"), [
        (lambda nn: nn.LSTM(8, 4), (8, 8), "LSTM has recurrence"),
        (lambda nn: nn.TransformerEncoderLayer(8, 2), (8, 8), "self_attn has attention"),
        (lambda nn: nn.Sequential(nn.Linear(8, 4), nn.Sequential(nn.Softmax(1))), 8, "1.0 has a softmax"),
        (lambda nn: nn.Sequential(nn.Linear(8, 4), nn.ReLU()), (3, 8), "acts on each position"),
        (lambda nn: nn.Sequential(), 8, "list has 0 layers"),
        (lambda nn: nn.Conv2d(2, 4, 3, groups=2), (2, 8, 8), "groups"),
        (lambda nn: nn.Sequential(nn.Conv2d(2, 4, 3), nn.MaxPool2d(4, ceil_mode=True)), (2, 8, 8),
         "ceil_mode"),
        (lambda nn: nn.Linear(7, 4), 8, "raised RuntimeError"),
    ])  # fmt: skip
    def test_what_cannot_be_read_is_named(self, nn, make, shape, part):
        with pytest.raises(InvalidData, match=part) as caught:
            describe_module(make(nn), shape)
        assert "\n" not in str(caught.value)

    def test_circles_and_unknown_inputs(self, nn):
        circle = nn.Sequential(nn.Linear(4, 4))
        circle.add_module("again", circle)
        with pytest.raises(InvalidData, match="RecursionError"):
            describe_module(circle, 4)
        with pytest.raises(InvalidData, match="input_shape"):
            describe_module(nn.Sequential(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Linear(4, 1)))
        with pytest.raises(SolvableError, match="Module"):
            describe_module("net")


class TestCalculator:
    """Sizes in numbers and measured inputs, in Python and on the command line."""

    def test_a_model_is_its_network_in_exponents(self):
        model = describe_layers(["linear 256", "erf", "linear 1"], 64)
        mine = scale_network(model, target="he3")
        theirs = scale_network(layers="erf:4/3", target="he3")
        assert mine.exponent == theirs.exponent
        assert mine.network.layers == theirs.network.layers
        conv = describe_layers(
            ["conv 512 kernel=4 stride=4", "erf", "flatten", "linear 1"], (1, 8, 8)
        )
        found = scale_network(conv, target="he3")
        assert found.exponent == scale_network(layers="erf:3/2:2/3", target="he3").exponent

    def test_a_stronger_direction_needs_fewer_samples(self):
        # The energy is sqrt(N / lambda_0) with N = d², so that half of lambda_0's exponent enters.
        rng = np.random.default_rng(0)
        model = describe_layers(["linear 2500", "erf", "linear 1"], 50)
        exponents = []
        for variance in (1.0, 7.0):
            X = rng.normal(size=(4000, 50))
            X[:, 0] *= variance**0.5
            data = measure_inputs(from_arrays(X, X[:, 0]))
            assert data.strength(3) == pytest.approx(variance / (49 + variance), rel=0.1)
            found = scale_network(model, target="he3", data=data)
            assert found.exponent == 1 - data.linear_exponent(50, 3) / 2
            exponents.append(found.exponent)
        assert exponents[1] < exponents[0]

    def test_the_command(self, tmp_path, capsys):
        model = describe_layers(["linear 64", "tanh", "linear 10"], 64)
        path = model.save(tmp_path / "model.json")
        assert main(["scale", str(path), "--data", "digits", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["model"]["numbers"] == {"d": 64, "N": 64}
        assert found["data"]["degree"] == 1
        assert Fraction(found["exponent"]) == -Fraction(found["data"]["linear_exponent"])
        assert main(["scale", str(path), "--target", "he3"]) == 0
        printed = capsys.readouterr().out
        assert "64 neurons, d^1." in printed
        assert "rounded" not in printed

    def test_numbers_of_a_model_are_its_own(self, tmp_path, capsys):
        path = describe_layers(["linear 90", "erf", "linear 1"], 70).save(tmp_path / "model.json")
        assert (
            main(["scale", str(path), "--target", "he3", "--numbers", "kappa=0.3", "--json"]) == 0
        )
        mine = json.loads(capsys.readouterr().out)["numbers"]
        words = ["d=70", "N=90", "kappa=0.3"]
        assert (
            main(["scale", "--layers", "erf:1", "--target", "he3", "--numbers", *words, "--json"])
            == 0
        )
        theirs = json.loads(capsys.readouterr().out)["numbers"]
        assert mine["patterns"] == theirs["patterns"]
        # Overlapping patches are counted as a (possibly fractional) number of patches without overlap.
        conv = describe_layers(
            ["conv 16 kernel=3 padding=1", "relu", "pool 2", "flatten", "linear 1"], (1, 28, 28)
        ).save(tmp_path / "conv.json")
        assert main(["scale", str(conv), "--target", "he2", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["numbers"]["sizes"]["S"] == 9

    def test_measured_inputs_cost_what_white_ones_of_their_dimension_do(self, tmp_path, capsys):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(3000, 40)) * np.r_[2.0, np.ones(39)]
        np.savez(tmp_path / "data.npz", X=X, y=X[:, 0] + 0.1 * rng.normal(size=3000))
        path = describe_layers(["linear 60", "erf", "linear 1"], 40).save(tmp_path / "model.json")
        words = [
            "scale",
            str(path),
            "--data",
            str(tmp_path / "data.npz"),
            "--target",
            "he3",
            "--json",
        ]
        assert main(words) == 0
        found = json.loads(capsys.readouterr().out)
        # The share 4 / (4 + 39) of the variance corresponds to white inputs of 10.75 dimensions.
        assert found["numbers"]["sizes"]["d"] == 11

    def test_large_data_are_read_part_by_part(self, tmp_path, monkeypatch):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(600, 4))
        rows = np.column_stack([X, X[:, 0] + 2 * X[:, 1]])
        path = tmp_path / "data.csv"
        np.savetxt(path, rows, delimiter=",", header="a,b,c,d,risk", comments="")
        whole = describe_real(None, layers="erf:1", data=path, column="risk")[1].inputs
        monkeypatch.setattr(real, "LARGE", 1000)
        parts = describe_real(None, layers="erf:1", data=path, column="risk")[1].inputs
        assert parts.strength(1) == pytest.approx(whole.strength(1))
        assert [feature.label for feature in parts.features] == ["risk"]

    @pytest.mark.parametrize(("words", "part"), [
        (["model.json", "--target", "he3", "--layers", "erf:1"], "both given"),
        (["model.json", "--target", "he3", "--column", "age"], "without data"),
        (["model.json", "--data", "nosuch"], "nosuch"),
        (["small.json", "--data", "wine"], "13 columns and the model takes 9 inputs"),
        (["model.pt", "--target", "he3"], "are not read"),
        (["model.json", "--target", "he2"], "he2|He2"),
    ])  # fmt: skip
    def test_bad_questions(self, tmp_path, monkeypatch, capsys, words, part):
        monkeypatch.chdir(tmp_path)
        describe_layers(["linear 64", "tanh", "linear 1"], 64).save("model.json")
        describe_layers(["linear 64", "tanh", "linear 1"], 9).save("small.json")
        assert main(["scale", *words]) != 0
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert re.search(part, line)
