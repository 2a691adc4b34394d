"""Layers with roles of their own: shared keys and values, normalised weights, bilinear layers."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from solvable.errors import InvalidData  # noqa: E402
from solvable.scale import coordinate_check, rescale_start, width_rules  # noqa: E402

pytestmark = pytest.mark.torch
nn, F = torch.nn, torch.nn.functional

HEAD, GROUPS = 16, 2  # entries of a head, and heads of keys and values


class Grouped(nn.Module):
    """Attention with a growing number of query heads, and two heads of keys and values."""

    def __init__(self, width, fused=True):
        super().__init__()
        self.tokens, self.norm = nn.Embedding(50, width), nn.LayerNorm(width)
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, GROUPS * HEAD, bias=False) for _ in range(2))
        self.readout, self.fused = nn.Linear(width, 10), fused

    def forward(self, tokens):
        x = self.tokens(tokens)
        h, heads = self.norm(x), x.shape[-1] // HEAD
        q, k, v = (
            layer(h).view(*h.shape[:2], -1, HEAD).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        k, v = (held.repeat_interleave(heads // GROUPS, 1) for held in (k, v))
        if self.fused:
            read = F.scaled_dot_product_attention(q, k, v)
        else:
            read = (q @ k.transpose(-1, -2) / HEAD**0.5).softmax(-1) @ v
        return self.readout((x + self.o(read.transpose(1, 2).reshape(x.shape))).mean(1))


def grouped(width, fused=True):
    return Grouped(width, fused), torch.randint(50, (4, 8))


def normalised(width):
    layers = [nn.Linear(20, width), nn.Linear(width, width), nn.Linear(width, 10)]
    first, second, third = (nn.utils.parametrizations.weight_norm(layer) for layer in layers)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), third)


class Bilinear(nn.Module):
    """A product of two layers by a bilinear one."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(20, width), nn.Linear(20, width // 4)
        self.both, self.readout = nn.Bilinear(width, width // 4, width), nn.Linear(width, 10)

    def forward(self, x):
        return self.readout(F.relu(self.both(F.relu(self.first(x)), torch.tanh(self.second(x)))))


def rows_of(make, optimiser="adamw", widths=(512, 128)):
    torch.manual_seed(5)
    pairs = [held if isinstance(held, tuple) else (held, None) for held in map(make, widths)]
    (module, inputs), (base, base_inputs) = pairs
    rules = width_rules(module, base, optimiser=optimiser, inputs=inputs, base_inputs=base_inputs)
    return {row.name: row for row in rules.parameters}


@pytest.mark.parametrize("fused", [True, False])
def test_keys_and_values_of_fixed_size_are_shared(fused):
    rows = rows_of(lambda width: grouped(width, fused))
    roles = {name: row.parameter.role for name, row in rows.items()}
    assert [roles[f"{name}.weight"] for name in "qkvo"] == ["hidden", "shared", "shared", "hidden"]
    assert roles["readout.weight"] == "output"
    # torch's initial scale is the wanted one
    assert (rows["k.weight"].start, rows["k.weight"].rate) == pytest.approx((1, 1 / 4))
    # gradients of a growing number of heads add up with random signs
    assert rows_of(grouped, "sgd")["v.weight"].rate == pytest.approx(1 / 2)


@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
@pytest.mark.parametrize("make", [grouped, normalised], ids=["grouped", "normalised"])
def test_factors_make_them_flat(make, optimiser):
    check = coordinate_check(make, (128, 256, 512), optimiser=optimiser, seed=495)
    _, _, slope, half = check.worst
    assert check.verdict != "fails"
    assert abs(slope) < 0.1 + half
    built = coordinate_check(make, (128, 256, 512), corrected=False, optimiser=optimiser, seed=495)
    assert abs(built.worst[2]) > abs(slope)


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
def test_factors_make_bilinear_layers_flat(optimiser):
    check = coordinate_check(Bilinear, (64, 128, 256), optimiser=optimiser, seed=495)
    assert check.verdict != "fails"
    assert abs(check.worst[2]) < 0.1 + check.worst[3]


def test_a_bilinear_layer_sums_over_both_inputs():
    row = rows_of(Bilinear, widths=(128, 64))["both.weight"]
    assert (row.parameter.role, row.parameter.fan_in) == ("hidden", 4)
    # torch draws entries of size n^(-1/2), and 1/n keeps sums over n² terms at order one
    assert (row.start, row.rate) == pytest.approx((0.5**0.5, 1 / 4))


def test_lengths_and_directions_of_normalised_weights():
    rows = rows_of(normalised)
    name = "{}.parametrizations.weight.original{}".format
    starts = [rows[name(place, 0)].start for place in (0, 2, 4)]
    assert starts == pytest.approx([1, 1, 1 / 2])
    assert [rows[name(place, 1)].start for place in (0, 2, 4)] == [1, 1, 1]
    # entries of g v / |v| move by 1, 1/n and 1/n, where g / |v| is 1, 1 and n^(-1/2)
    rates = [rows[name(place, 1)].rate for place in (0, 2, 4)]
    assert rates == pytest.approx([1, 1 / 4, 1 / 2])
    assert rows[name(4, 0)].rate == pytest.approx(1 / 2)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_both_kinds_of_weight_norm_start_as_weights_without_it():
    def old(width):
        net = normalised(width)
        for layer in net[::2]:
            nn.utils.parametrize.remove_parametrizations(layer, "weight")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                nn.utils.weight_norm(layer)
        return net

    new_rows, old_rows = (
        [(row.start, row.rate, row.parameter.shape) for row in rows_of(make).values()]
        for make in (normalised, old)
    )
    assert sorted(new_rows) == sorted(old_rows)
    torch.manual_seed(5)
    module, base = normalised(512), normalised(128)
    before = module[4].weight.detach().clone()
    rescale_start(module, width_rules(module, base))
    np.testing.assert_allclose(module[4].weight.detach(), before / 2, rtol=1e-5)


def test_other_axes_of_weight_norm_are_refused():
    def make(width):
        layer = nn.utils.parametrizations.weight_norm(nn.Linear(width, 4), dim=1)
        return nn.Sequential(nn.Linear(3, width), layer)

    with pytest.raises(InvalidData, match="dim=0"):
        width_rules(make(16), make(8))


class Named(nn.Module):
    """Takes its input by name alone."""

    def __init__(self, width):
        super().__init__()
        self.hidden, self.readout = nn.Linear(6, width), nn.Linear(width, 3)

    def forward(self, *, features, scale=1.0):
        return self.readout(F.relu(self.hidden(features)))


def test_inputs_by_name():
    rows = rows_of(lambda width: (Named(width), {"features": torch.randn(4, 6)}))
    assert [row.parameter.role for row in rows.values()] == ["input", "vector", "output", "fixed"]
    check = coordinate_check(
        lambda width: (Named(width), {"features": torch.randn(4, 6)}), (32, 64), seeds=2
    )
    assert check.layers == ("hidden", "readout")
    with pytest.raises(InvalidData, match=r"\(module, \{name: input\}\)") as caught:
        width_rules(Named(16), Named(8))
    assert "\n" not in str(caught.value)
