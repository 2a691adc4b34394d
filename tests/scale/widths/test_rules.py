"""Roles and factors of parameters, against growing axes, `mup`'s rules and multiplied weights."""

import copy
import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import everyday_modules as everyday  # noqa: E402

from solvable.errors import InvalidData, InvalidParameter  # noqa: E402
from solvable.scale import optimiser_groups, rescale_start, width_rules  # noqa: E402
from solvable.scale.forward_pass import example_inputs, read_forward  # noqa: E402

pytestmark = pytest.mark.torch
nn, F = torch.nn, torch.nn.functional

BASE, LARGE = 32, 128
RATIO = LARGE / BASE


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(490)


def rules_of(make, optimiser="adamw", **inputs):
    return width_rules(make(LARGE), make(BASE), optimiser=optimiser, **inputs)


def axes_that_grow(make):
    """Number of growing axes of each parameter, from shapes alone."""
    pairs = zip(make(LARGE).named_parameters(), make(BASE).parameters(), strict=True)
    return {
        name: sum(a != b for a, b in zip(ours.shape, theirs.shape, strict=True))
        for (name, ours), theirs in pairs
    }


@pytest.mark.parametrize("name", everyday.EVERYDAY)
def test_everyday_modules_are_read_without_help(name):
    make = everyday.EVERYDAY[name]
    rules = rules_of(make)
    grown = axes_that_grow(make)
    assert [row.name for row in rules.parameters] == [*grown]
    for row in rules.parameters:
        # two growing axes: hidden; one: input, output or vector; none: fixed
        allowed = {2: ["hidden"], 1: ["input", "output", "vector"], 0: ["fixed"]}
        assert row.parameter.role in allowed[grown[row.name]], row.name
        # `mup` divides the rate of Adam by the width ratio for two growing axes and leaves it for
        # one; its readouts have a number 1 / ratio in front, which divides it here.
        expected = 1 / RATIO if row.parameter.role in ("hidden", "output") else 1
        assert row.rate == pytest.approx(expected)
        assert row.rate * row.decay == pytest.approx(1)


@pytest.mark.parametrize("role", [
    ("u-net block", "up.weight", "hidden"), ("u-net block", "readout.weight", "output"),
    ("mixture of experts", "route.weight", "output"), ("mixture of experts", "inner", "hidden"),
    ("lstm", "cell.weight_ih_l0", "input"), ("lstm", "cell.weight_hh_l0", "hidden"),
    ("lstm", "cell.bias_hh_l0", "vector"), ("embedding classifier", "tokens.weight", "input"),
], ids=" ".join)  # fmt: skip
def test_roles_by_hand(role):
    module, name, expected = role
    held = {row.name: row.parameter.role for row in rules_of(everyday.EVERYDAY[module]).parameters}
    assert held[name] == expected


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_factors_are_those_of_mup(optimiser):
    mup = pytest.importorskip("mup")

    class Net(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.second = nn.Linear(20, width), nn.Linear(width, 2 * width)
            self.readout = mup.MuReadout(2 * width, 5)

        def forward(self, x):
            return self.readout(F.relu(self.second(F.relu(self.first(x)))))

    base, delta, module = Net(BASE), Net(2 * BASE), Net(LARGE)
    mup.set_base_shapes(module, base, delta=delta)
    mup.set_base_shapes(base, None)
    kind = {"sgd": mup.MuSGD, "adam": mup.MuAdam, "adamw": mup.MuAdamW}[optimiser]
    names = {id(value): name for name, value in module.named_parameters()}
    theirs = {
        names[id(value)]: (group["lr"] / 0.1, group["weight_decay"] / 0.01)
        for group in kind(module.parameters(), lr=0.1, weight_decay=0.01).param_groups
        for value in group["params"]
    }
    rules = width_rules(module, base, optimiser=optimiser)
    assert rules.parametrisation == "maximal-update"
    for row in rules.parameters:
        assert (row.rate, row.decay) == pytest.approx(theirs[row.name]), row.name
    # its initial scales are those wanted here, so that none of its weights changes
    starts = {row.name: row.start for row in rules.parameters}
    assert all(starts[f"{layer}.weight"] == 1 for layer in ("first", "second", "readout"))


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("kind", ["ntk", "mean-field"])
def test_numbers_in_front_of_weights_change_nothing_in_function_space(kind, optimiser):
    # The same network without numbers: entries are scaled once, and rates must be scaled so that one
    # step changes the outputs equally. Adam's step is sign(g) times its rate.
    def plain(width):
        held = everyday.Multiplied(width, kind)
        net = nn.Sequential(nn.Linear(20, width, bias=False), nn.ReLU(),
                            nn.Linear(width, width, bias=False), nn.ReLU(),
                            nn.Linear(width, 5, bias=False))  # fmt: skip
        with torch.no_grad():
            for layer, weight, scale in zip(
                (net[0], net[2], net[4]), held.parameters(), (20**-0.5, width**-0.5, held.scale),
                strict=True,
            ):  # fmt: skip
                layer.weight.copy_(scale * weight)
        return net

    rows = width_rules(
        everyday.Multiplied(LARGE, kind), everyday.Multiplied(BASE, kind), optimiser=optimiser,
        inputs=torch.randn(2, 20), base_inputs=torch.randn(2, 20),
    ).parameters  # fmt: skip
    others = width_rules(plain(LARGE), plain(BASE), optimiser=optimiser).parameters
    power = 1 if optimiser == "adam" else 2
    for row, other in zip(rows, others, strict=True):
        theta = row.parameter.multiplier
        assert theta == pytest.approx({"first": 1, "second": RATIO**-0.5}.get(
            row.name, {"ntk": RATIO**-0.5, "mean-field": 1 / RATIO}[kind]))  # fmt: skip
        assert row.rate * theta**power == pytest.approx(other.rate)
        # standard deviation of the weight with its number, after both treatments
        ours = row.start * theta * row.parameter.start
        assert ours == pytest.approx(other.start * other.parameter.start, rel=0.1)


@pytest.mark.parametrize(("make", "name"), [
    (everyday.mlp, "standard"),
    (lambda width: everyday.Multiplied(width, "ntk"), "NTK"),
    (lambda width: everyday.Multiplied(width, "mean-field"), "mean-field"),
], ids=["plain", "ntk", "mean-field"])  # fmt: skip
def test_parametrisations_have_their_names(make, name):
    inputs = {"inputs": torch.randn(2, 20), "base_inputs": torch.randn(2, 20)}
    assert rules_of(make, **inputs).parametrisation == name


def test_start_is_that_of_the_wanted_powers():
    def spread(layer, width):
        return layer.weight.std().item() * math.sqrt(width)

    module, base = everyday.mlp(LARGE), everyday.mlp(BASE)
    before = copy.deepcopy(module)
    rules = width_rules(module, base)
    rescale_start(module, rules)
    assert torch.equal(module[0].weight, before[0].weight)
    assert spread(module[2], LARGE) == pytest.approx(spread(base[2], BASE), rel=0.05)
    # readout: 1 / width, so that width^(1/2) times its spread falls as width^(-1/2)
    assert spread(module[4], LARGE) == pytest.approx(spread(base[4], BASE) / RATIO**0.5, rel=0.1)


class TestAttention:
    """Numbers on the scores belong to no weight; heads that grow need another number."""

    @pytest.mark.parametrize("before", [False, True], ids=["scores", "queries"])
    @pytest.mark.parametrize(("power", "queries"), [(0.5, RATIO**-0.5), (1.0, 1.0)])
    def test_written_out(self, before, power, queries):
        rules = rules_of(
            lambda width: everyday.Attention(width, power, before),
            inputs=torch.randn(2, 5, 6), base_inputs=torch.randn(2, 5, 6),
        )  # fmt: skip
        assert rules.queries == pytest.approx(queries)
        assert [row.parameter.role for row in rules.parameters] == ["input"] * 3 + ["output"]
        assert all(row.parameter.multiplier == 1 for row in rules.parameters)

    def test_of_torch(self):
        assert rules_of(everyday.Language).queries == pytest.approx(RATIO**-0.5)
        assert rules_of(everyday.block).queries == 1

    def test_shared_weights(self):
        row = next(row for row in rules_of(everyday.Language).parameters if row.output != 1)
        assert (row.name, row.parameter.role) == ("tokens.weight", "tied")
        assert (row.start, row.rate, row.output) == pytest.approx((1, 1, 1 / RATIO))


def test_groups_hold_each_parameter_once_with_its_rate():
    module, base = everyday.Language(LARGE), everyday.Language(BASE)
    groups = optimiser_groups(module, base, learning_rate=0.01, weight_decay=0.1)
    held = [id(value) for group in groups for value in group["params"]]
    assert sorted(held) == sorted(id(value) for value in module.parameters())
    rates = {id(value): group["lr"] for group in groups for value in group["params"]}
    assert rates[id(module.blocks[0].linear1.weight)] == pytest.approx(0.01 / RATIO)
    assert rates[id(module.tokens.weight)] == pytest.approx(0.01)
    for group in groups:
        assert group["lr"] * group["weight_decay"] == pytest.approx(0.001)
    torch.optim.AdamW(groups)


def test_at_the_base_width_nothing_changes():
    for name, make in everyday.EVERYDAY.items():
        for row in width_rules(make(BASE), make(BASE)).parameters:
            assert (row.start, row.rate, row.decay) == pytest.approx((1, 1, 1)), (name, row.name)


def test_reading_leaves_no_trace():
    module = everyday.convnet(BASE).train()
    before = copy.deepcopy(module.state_dict())
    read_forward(module, [example_inputs(module)])
    assert all(part.training for part in module.modules())
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def test_control_flow_and_weights_in_the_order_of_their_use():
    class Loop(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.readout, self.step = nn.Linear(width, 2), nn.Linear(width, width)
            self.enter = nn.Linear(4, width)

        def forward(self, x):
            h = self.enter(x)
            for _ in range(3):
                h = torch.tanh(self.step(h)) if h.shape[0] > 1 else h
            return self.readout(h)

    operations, _ = read_forward(Loop(8), [torch.randn(2, 4)])
    assert [o.module for o in operations if o.function == "linear"] == [
        "enter", "step", "step", "step", "readout"]  # fmt: skip
    assert {row.name: row.parameter.role for row in rules_of(
        Loop, inputs=torch.randn(2, 4), base_inputs=torch.randn(2, 4)).parameters
    }["step.weight"] == "hidden"  # fmt: skip


@pytest.mark.parametrize(("make", "part"), [
    (lambda width: nn.Linear(4, width) if width == LARGE else nn.Linear(4, width, bias=False),
     "other parameters"),
    (lambda width: nn.Sequential(nn.Linear(4, width), nn.Identity() if width == BASE else nn.ReLU()),
     "operations"),
    (lambda width: nn.Bilinear(4, width, width), "no layer that shows"),
    (lambda width: "net", "is a str"),
], ids=["parameters", "operations", "inputs", "text"])  # fmt: skip
def test_bad_modules_are_one_line(make, part):
    with pytest.raises(InvalidData, match=part) as caught:
        rules_of(make)
    assert "\n" not in str(caught.value)


def test_unused_and_unknown_weights_are_named():
    class Odd(nn.Module):
        def __init__(self, width, used):
            super().__init__()
            self.enter, self.used = nn.Linear(4, width), used
            self.odd = nn.Parameter(torch.randn(width, 3))

        def forward(self, x):
            h = self.enter(x)
            return torch.cdist(h, self.odd.T) if self.used else h

    with pytest.raises(InvalidData, match="odd is not used"):
        rules_of(lambda width: Odd(width, False))
    with pytest.raises(InvalidData, match="odd is used by cdist"):
        rules_of(lambda width: Odd(width, True))
    with pytest.raises(InvalidParameter, match="optimiser is 'lion'"):
        rules_of(everyday.mlp, "lion")
    for bad in ({"learning_rate": 0}, {"learning_rate": 1, "weight_decay": -1}):
        with pytest.raises(InvalidParameter, match="allowed"):
            optimiser_groups(everyday.mlp(8), everyday.mlp(8), **bad)


def test_readout_vectors_and_weights_that_are_used_again():
    class Readout(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.enter, self.step = nn.Linear(4, width), nn.Parameter(torch.randn(width, width))
            self.gain, self.readout = (
                nn.Parameter(torch.ones(width)),
                nn.Parameter(torch.randn(width)),
            )

        def forward(self, x):
            h = self.enter(x)
            for _ in range(3):
                h = h + torch.relu(h @ self.step.T / self.step.shape[0] ** 0.5)
            return (self.gain * h) @ self.readout

    rows = {row.name: row.parameter for row in rules_of(Readout).parameters}
    assert rows["readout"].role == "output"
    assert rows["gain"].role == "vector"
    # three uses with the number width^(-1/2) each, not its third power
    assert rows["step"].multiplier == pytest.approx(RATIO**-0.5)


def test_random_chains_have_the_roles_of_their_places():
    rng = np.random.default_rng(491)
    for _ in range(10):
        depth, inner = int(rng.integers(1, 5)), [int(size) for size in rng.integers(1, 4, 5)]

        def make(width, depth=depth, inner=inner):
            sizes = [7, *(size * width for size in inner[:depth]), 3]
            layers = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
            return nn.Sequential(*(part for layer in layers for part in (layer, nn.Tanh())))

        roles = [r.parameter.role for r in rules_of(make).parameters if "weight" in r.name]
        assert roles == ["input", *["hidden"] * (depth - 1), "output"]


def _scores(q, k):
    return q @ k.transpose(-2, -1)


SPELLINGS = {
    # scores written in other ways, and the number that the queries need for heads that grow fourfold
    "number first": (lambda s, q, k, v: torch.softmax(_scores(q * s.scale, k), -1) @ v, 0.5),
    "both": (lambda s, q, k, v: torch.softmax(_scores(q * s.scale**0.5, k * s.scale**0.5), -1) @ v, 0.5),
    "buffer": (lambda s, q, k, v: torch.softmax(_scores(q, k) * s.held, -1) @ v, 0.5),
    "tensor": (
        lambda s, q, k, v: torch.softmax(
            _scores(q, k) / torch.sqrt(torch.tensor(float(q.shape[-1]))), -1) @ v, 0.5),
    "bias": (lambda s, q, k, v: torch.softmax(_scores(q, k) * s.scale + s.bias, -1) @ v, 0.5),
    "temperature": (lambda s, q, k, v: torch.softmax(_scores(q, k) * s.scale * s.learned, -1) @ v, 0.5),
    "soft cap": (
        lambda s, q, k, v: torch.softmax(50 * torch.tanh(_scores(q, k) * s.scale / 50), -1) @ v, 0.5),
    "sigmoid": (lambda s, q, k, v: torch.sigmoid(_scores(q, k) * s.scale) @ v, 0.5),
    "unscaled": (lambda s, q, k, v: torch.softmax(_scores(q, k), -1) @ v, 0.25),
    "inverse size": (lambda s, q, k, v: torch.softmax(_scores(q, k) / q.shape[-1], -1) @ v, 1.0),
    "einsum": (
        lambda s, q, k, v: torch.einsum(
            "...qk,...kd->...qd",
            torch.softmax(torch.einsum("...qd,...kd->...qk", q, k) * s.scale, -1), v), 0.5),
    "cosine": (
        lambda s, q, k, v: torch.softmax(
            _scores(F.normalize(q, dim=-1), F.normalize(k, dim=-1)), -1) @ v, 1.0),
}  # fmt: skip


class Written(nn.Module):
    """Attention with four heads and a given way of writing its scores."""

    def __init__(self, width, write):
        super().__init__()
        self.enter, self.qkv = nn.Linear(5, width), nn.Linear(width, 3 * width)
        self.readout, self.write = nn.Linear(width, 2), write
        self.scale = (width // 4) ** -0.5
        self.register_buffer("held", torch.tensor(self.scale))
        self.learned, self.bias = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(4, 9, 9))

    def forward(self, x):
        rows, tokens, _ = x.shape
        parts = self.qkv(self.enter(x)).reshape(rows, tokens, 3, 4, -1).permute(2, 0, 3, 1, 4)
        mixed = self.write(self, *parts.unbind(0))
        return self.readout(mixed.transpose(1, 2).reshape(rows, tokens, -1))


@pytest.mark.parametrize("name", SPELLINGS)
def test_attention_in_other_words(name):
    write, queries = SPELLINGS[name]

    class Net(Written):
        def __init__(self, width):
            super().__init__(width, write)

    rules = rules_of(Net, inputs=torch.randn(2, 9, 5), base_inputs=torch.randn(2, 9, 5))
    assert rules.queries == pytest.approx(queries)
    assert all(row.parameter.multiplier == 1 for row in rules.parameters if "weight" in row.name)


class Summed(nn.Module):
    """A product or a length that no layer computes, over the width."""

    def __init__(self, width, kind):
        super().__init__()
        self.one, self.two, self.kind = nn.Linear(4, width), nn.Linear(4, width), kind

    def forward(self, x):
        one, two = self.one(x), self.two(x)
        return {
            "sum": lambda: (one * two).sum(-1), "towers": lambda: one @ two.T,
            "length": lambda: F.normalize(one, dim=-1), "distance": lambda: torch.cdist(one, two),
            "mean square": lambda: one * torch.rsqrt((one**2).mean(-1, keepdim=True) + 1e-6) + two,
        }[self.kind]()  # fmt: skip


@pytest.mark.parametrize(("kind", "count"), [
    ("sum", 1), ("towers", 1), ("length", 1), ("distance", 1), ("mean square", 0),
])  # fmt: skip
def test_sums_that_no_layer_does_are_named(kind, count):
    rules = rules_of(lambda width: Summed(width, kind))
    assert len(rules.cautions) == count


def test_a_number_that_is_a_tensor_belongs_to_its_weight():
    class Scaled(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.enter, self.readout = nn.Linear(4, width), nn.Linear(width, 1)
            self.register_buffer("number", torch.tensor(width**-0.5))

        def forward(self, x):
            return self.readout(torch.relu(self.enter(x)) * self.number)

    rows = {row.name: row.parameter.multiplier for row in rules_of(Scaled).parameters}
    assert rows["readout.weight"] == pytest.approx(RATIO**-0.5)
    assert rows["enter.weight"] == rows["readout.bias"] == 1


def test_learned_inputs_are_vectors():
    class Latents(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.latents = nn.Parameter(torch.randn(6, width))
            self.enter, self.attend = (
                nn.Linear(4, width),
                nn.MultiheadAttention(width, 4, batch_first=True),
            )

        def forward(self, x):
            h = self.enter(x)
            return self.attend(query=self.latents.expand(len(x), -1, -1), key=h, value=h)[0]

    rules = rules_of(Latents, inputs=torch.randn(2, 5, 4), base_inputs=torch.randn(2, 5, 4))
    assert {row.name: row.parameter.role for row in rules.parameters}["latents"] == "vector"


@pytest.mark.parametrize("widths", [(64, 128), (128, 192), (512, 576)])
def test_initial_scales_do_not_depend_on_the_draw(widths):
    # first bias: one input scale at any width; second bias: as 1 / sqrt(width), which is undone
    ratio = widths[1] / widths[0]
    wrong = 0
    for seed in range(40):
        torch.manual_seed(seed)
        rows = width_rules(everyday.mlp(widths[1]), everyday.mlp(widths[0])).parameters
        starts = {row.name: row.start for row in rows}
        expected = {"0.bias": 1.0, "2.bias": ratio**0.5, "2.weight": 1.0, "4.weight": ratio**-0.5}
        wrong += any(abs(starts[name] / value - 1) > 1e-6 for name, value in expected.items())
    # three standard errors: 0.3 % for each of three uncertain parameters, of 40 draws
    assert wrong <= 3
