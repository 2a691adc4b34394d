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
from solvable.errors import InvalidData, SolvableError
from solvable.scale import describe_layers, describe_module
from solvable.scale.networks_of_data import calculator_networks as real
from solvable.scale.networks_of_data.calculator_networks import describe_real
from solvable.scale.networks_of_data.input_spectrum import measure_inputs
from solvable.scale.networks_of_data.layer_description import near_fraction
from solvable.scale.networks_of_data.modules import find_model

CNN = [{"act": "tanh", "width": 12, "patch": 45, "name": "first"}, "relu:40"]


def test_sizes_and_exponents_of_a_list():
    model = describe_layers(CNN, 960)
    first, second = model.hidden
    assert (first.name, first.width, first.patch, first.pool) == ("first", 12, 45, False)
    assert (second.name, second.width, second.patch, second.act) == ("1", 40, None, "relu")
    assert model.numbers == {"d": 960, "N1": 12, "N2": 40}
    for layer, entry in zip(model.hidden, model.mapping()["layers"], strict=True):
        assert abs(float(Fraction(entry["width"])) - math.log(layer.width) / math.log(960)) <= 0.01
    assert "patch" not in model.mapping()["layers"][1]
    assert describe_layers("tanh:12:45, relu:40".replace(" ", ""), 960).mapping() == model.mapping()


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
    model = describe_layers(CNN, 960, ["A sentence."])
    assert find_model(model.save(tmp_path / "model.json")) == model
    (tmp_path / "model.toml").write_text("inputs = 60\nlayers = ['elu:30']\n")
    found = find_model(tmp_path / "model.toml")
    assert found.numbers == {"d": 60, "N": 30}
    assert any("elu is treated as relu" in sentence for sentence in found.words())


@pytest.mark.parametrize(("layers", "inputs", "part"), [
    ([], 8, "1 to 1,000 layers"),
    ("", 8, "layer 0 is ''"),
    (3, 8, "layers is 3"),
    ("relu:-3", 8, "width '-3'"),
    ("relu:0", 8, "width 0"),
    ("attention:4", 8, "activation is 'attention'"),
    ("relu", 8, "ACTIVATION:WIDTH"),
    ("relu:4:9", 8, "patch of at most 8"),
    ([{"act": "relu", "width": True}], 8, "width True"),
    ([{"act": "relu", "width": 4, "cost": 3}], 8, "'cost'"),
    ([{"act": "relu", "width": 4, "pool": 1}], 8, "pool 1"),
    ([None], 8, "layer 0 is 'None'"),
    ("relu:4", 0, "inputs is 0"),
    ("relu:4", 1, "inputs is 1"),
    ("relu:4", (1, 8), "inputs is"),
])  # fmt: skip
def test_bad_lists_are_refused_in_a_line(layers, inputs, part):
    with pytest.raises(InvalidData, match=part) as caught:
        describe_layers(layers, inputs)
    assert "\n" not in str(caught.value)


def test_no_file_is_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was opened",))

    for name in ("model.pt", "model.pkl", "model.json", "model.toml", "model.safetensors"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(InvalidData) as caught:
            find_model(tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(InvalidData, match="No such file"):
        find_model(tmp_path / "none.json")


@pytest.mark.parametrize("content", [
    {"format": "solvable-model"}, {"inputs": 8}, {"inputs": 8, "layers": {"a": 1}},
    {"inputs": 8, "layers": ["relu:4"], "run": "rm"}, {"inputs": 8, "layers": ["relu:4"], "notes": 3},
    {"format": "solvable-model", "inputs": [[8]], "layers": ["relu:4"]},
    {"inputs": 8, "layers": [["relu", 4]]},
])  # fmt: skip
def test_files_that_describe_no_model(tmp_path, content):
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(InvalidData) as caught:
        find_model(tmp_path / "model.json")
    assert "\n" not in str(caught.value)


def test_deeply_nested_files_end(tmp_path):
    (tmp_path / "model.json").write_text("[" * 100_000)
    with pytest.raises(InvalidData, match="nested too deeply"):
        find_model(tmp_path / "model.json")


@pytest.mark.torch
class TestTorch:
    @pytest.fixture
    def nn(self):
        return pytest.importorskip("torch").nn

    def test_shapes_are_those_of_a_forward_pass(self, nn):
        import torch

        layers = [nn.Conv2d(2, 6, (3, 2), stride=(2, 1)), nn.BatchNorm2d(6),
                  nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 5, 2), nn.GELU(),
                  nn.AdaptiveAvgPool2d((2, 1)), nn.Flatten(), nn.Dropout(), nn.Linear(10, 9),
                  nn.Tanh(), nn.Linear(9, 3)]  # fmt: skip
        model = describe_module(nn.Sequential(nn.Sequential(*layers[:6]), *layers[6:]), (2, 13, 12))
        # One output depends on as many inputs as its gradient is not zero for.
        parts = nn.Sequential(
            *(layer for layer in layers if isinstance(layer, nn.Conv2d | nn.MaxPool2d))
        )
        for layer in parts:
            if not isinstance(layer, nn.MaxPool2d):
                layer.weight.data.fill_(1.0)
        reach = []
        for count in (1, 3):
            x = torch.ones(1, 2, 13, 12, requires_grad=True)
            sums = nn.Sequential(*parts[:count]) if count == 1 else parts
            sums = nn.Sequential(
                *(nn.AvgPool2d(2) if isinstance(p, nn.MaxPool2d) else p for p in sums)
            )
            y = sums(x)
            y[0, 0, y.shape[2] // 2, y.shape[3] // 2].backward()
            reach.append(int((x.grad != 0).sum()))
        assert [h.patch for h in model.hidden] == [*reach, None]
        assert [h.pool for h in model.hidden] == [False, False, False]
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
        assert find_model(model.save(tmp_path / "net.json")) == model

    def test_means_over_positions_and_padding_by_a_word(self, nn):
        net = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding="same"), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(4, 1),
        )  # fmt: skip
        (layer,) = describe_module(net, (1, 6, 6)).hidden
        assert (layer.patch, layer.pool) == (9, True)

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
        (lambda nn: nn.Sequential(), 8, "no hidden layer"),
        (lambda nn: nn.Conv2d(2, 4, 3, groups=2), (2, 8, 8), "groups"),
        (lambda nn: nn.Sequential(nn.MaxPool2d(2), nn.Flatten()), (2, 8, 8), "before any convolution"),
        (lambda nn: nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU()), (2, 8, 8), "no linear readout"),
        (lambda nn: nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 1)), 8, "without an activation between"),
        (lambda nn: nn.Linear(8, 4), (1, -8), "input_shape"),
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
        model = describe_layers("erf:256", 64)
        mine = scale_network(model, target="he3")
        theirs = scale_network(layers="erf:4/3", target="he3")
        assert mine.exponent == theirs.exponent
        assert mine.network.layers == theirs.network.layers
        conv = describe_layers("erf:512:16", 64)
        found = scale_network(conv, target="he3")
        assert found.exponent == scale_network(layers="erf:3/2:2/3", target="he3").exponent

    def test_a_stronger_direction_needs_fewer_samples(self):
        # The energy is sqrt(N / lambda_0) with N = d², so that half of lambda_0's exponent enters.
        rng = np.random.default_rng(0)
        model = describe_layers("erf:2500", 50)
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
        model = describe_layers("tanh:64", 64)
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
        path = describe_layers("erf:90", 70).save(tmp_path / "model.json")
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
        conv = describe_layers("relu:16:9", 784).save(tmp_path / "conv.json")
        assert main(["scale", str(conv), "--target", "he2", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["numbers"]["sizes"]["S"] == 9

    def test_filters_on_data_have_no_prefactor(self, tmp_path, capsys):
        path = describe_layers("erf:16:9", 64).save(tmp_path / "conv.json")
        assert main(["scale", str(path), "--data", "digits"]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert "none is derived for filters on data" in printed
        assert "c * " in printed
        assert main(["scale", str(path), "--json"]) == 0  # without data it is derived
        assert json.loads(capsys.readouterr().out)["overview"]["targets"][0]["samples"] > 0

    def test_measured_inputs_cost_what_white_ones_of_their_dimension_do(self, tmp_path, capsys):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(3000, 40)) * np.r_[2.0, np.ones(39)]
        np.savez(tmp_path / "data.npz", X=X, y=X[:, 0] + 0.1 * rng.normal(size=3000))
        path = describe_layers("erf:60", 40).save(tmp_path / "model.json")
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
        (["model.pt", "--target", "he3"], "do not hold the forward pass"),
        (["model.json", "--target", "he2"], "he2|He2"),
    ])  # fmt: skip
    def test_bad_questions(self, tmp_path, monkeypatch, capsys, words, part):
        monkeypatch.chdir(tmp_path)
        describe_layers("tanh:64", 64).save("model.json")
        describe_layers("tanh:64", 9).save("small.json")
        assert main(["scale", *words]) != 0
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert re.search(part, line)
