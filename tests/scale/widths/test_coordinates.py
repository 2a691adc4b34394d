"""Coordinate check: slopes of modules as they are built and with the factors; the command."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import everyday_modules as everyday  # noqa: E402

from solvable.cli import main  # noqa: E402
from solvable.errors import InvalidData, InvalidParameter, NotConverged  # noqa: E402
from solvable.scale import CoordinateCheck, coordinate_check, width_rules  # noqa: E402
from solvable.scale.widths.rules import groups_of  # noqa: E402

pytestmark = pytest.mark.torch
nn = torch.nn

WIDTHS = (128, 256, 512)
MODULE = """
from torch import nn

def make(width):
    return nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, 5))

def fixed(width):
    return nn.Linear(4, 3)
"""


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", [
    "swiglu", "lstm", "mlp with layer norm", "embedding classifier", "plain linear",
    pytest.param("transformer block", marks=pytest.mark.slow),
    pytest.param("convnet", marks=pytest.mark.slow),
    pytest.param("residual block", marks=pytest.mark.slow),
    pytest.param("mixture of experts", marks=pytest.mark.slow),
])  # fmt: skip
def test_factors_make_modules_flat_that_are_not(name):
    make = everyday.EVERYDAY[name]
    built = coordinate_check(make, WIDTHS, corrected=False, seed=492)
    assert built.verdict == "fails"
    assert built.worst[2] > 0.5
    corrected = coordinate_check(make, WIDTHS, seed=492)
    _, _, slope, half = corrected.worst
    # flat within 0.1 and the error of the slope of one of about ten layers
    assert corrected.verdict != "fails"
    assert abs(slope) < 0.1 + half


@pytest.mark.parametrize("kind", ["ntk", "mean-field"])
def test_numbers_in_front_of_weights(kind):
    def make(width):
        return everyday.Multiplied(width, kind), torch.randn(4, 20)

    assert coordinate_check(make, WIDTHS, seed=493).verdict != "fails"


def test_sgd():
    assert (
        coordinate_check(everyday.mlp, WIDTHS, corrected=False, optimiser="sgd").verdict == "fails"
    )
    assert coordinate_check(everyday.mlp, WIDTHS, optimiser="sgd").verdict != "fails"


def test_slopes_of_a_linear_readout_in_closed_form():
    # One step of Adam with rate r on y = w x, inputs all one: each entry moves by r, so that the outputs
    # move by r times the width, and with a rate of 1 / width by a constant.
    class Ones(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.readout = nn.Linear(width, 1, bias=False)

        def forward(self, x):
            return self.readout(torch.ones(len(x), self.readout.in_features))

    def make(width):
        return Ones(width), torch.randn(4, 1)

    built = coordinate_check(make, (64, 128, 256), corrected=False, optimiser="adam")
    assert built.slopes(built.changes, 1)[0] == pytest.approx([1.0], abs=1e-3)
    np.testing.assert_allclose(built.changes[0, :, 1, -1], 0.003 * 64, rtol=1e-3)
    flat = coordinate_check(make, (64, 128, 256), optimiser="adam")
    assert flat.slopes(flat.changes, 1)[0] == pytest.approx([0.0], abs=1e-3)


def test_the_same_seed_gives_the_same_numbers_and_leaves_the_global_stream():
    torch.manual_seed(7)
    expected = torch.randn(3)
    torch.manual_seed(7)
    first = coordinate_check(everyday.mlp, (16, 32), seeds=2)
    assert torch.equal(torch.randn(3), expected)
    again = coordinate_check(everyday.mlp, (16, 32), seeds=2)
    np.testing.assert_array_equal(first.changes, again.changes)
    other = coordinate_check(everyday.mlp, (16, 32), seeds=2, seed=1)
    assert not np.allclose(first.changes[:, :, 1:], other.changes[:, :, 1:])


class Still(nn.Module):
    """A layer on zeros, of which nothing reaches the outputs."""

    def __init__(self, width):
        super().__init__()
        self.enter = nn.Linear(4, width, bias=False)

    def forward(self, x):
        return self.enter(0 * x)


def test_bad_requests():
    with pytest.raises(InvalidParameter, match="at least two"):
        coordinate_check(everyday.mlp, (64,))
    with pytest.raises(InvalidParameter, match="seeds is 1"):
        coordinate_check(everyday.mlp, (8, 16), seeds=1)
    with pytest.raises(InvalidParameter, match="optimiser is 'lion'"):
        coordinate_check(everyday.mlp, (8, 16), corrected=False, optimiser="lion")
    with pytest.raises(InvalidData, match="no layer changes"):
        coordinate_check(Still, (8, 16), corrected=False, seeds=2)
    with pytest.raises(InvalidData, match="raised ZeroDivisionError"):
        coordinate_check(lambda width: 1 / 0, (8, 16))
    with pytest.raises(NotConverged, match="lower the learning rate"):
        coordinate_check(everyday.mlp, (8, 16), corrected=False, learning_rate=1e30)


class TestCommand:
    """`solvable scale module.py:make`."""

    @pytest.fixture
    def module(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "wide.py").write_text(MODULE)
        (tmp_path / "json.py").write_text(MODULE)  # an installed module of this name is not taken
        (tmp_path / "ends.py").write_text("import sys\nsys.exit(3)\n")
        return "wide.py:make"

    def test_factors(self, module, capsys):
        assert main(["scale", module, "--width", "64", "256", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["parametrisation"], found["width_ratio"]) == ("standard", 4)
        rows = {row["name"]: row for row in found["parameters"]}
        assert rows["2.weight"]["role"] == "output"
        assert rows["2.weight"]["learning_rate"] == pytest.approx(1 / 4)
        assert main(["scale", module, "--width", "64", "256"]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith("Factors that carry a learning rate from one width to another")
        assert "From width 64 to 256 with AdamW" in printed
        assert "optimiser_groups(module, base" in printed
        assert "P ~ d^" in printed

    def test_check_and_its_files(self, module, tmp_path, capsys):
        out = tmp_path / "out"
        words = ["scale", module, "--width", "64", "128", "256", "--check", "--output", str(out)]
        assert main(words) == 0
        printed = capsys.readouterr().out
        assert "as it is built: the check fails" in printed
        found = json.loads((out / "result.json").read_text())
        assert [check["corrected"] for check in found["checks"]] == [False, True]
        assert (out / "coordinates-corrected.svg").read_text().startswith("<?xml")
        other = tmp_path / "other"
        other.mkdir()
        (other / "mine.txt").write_text("kept")
        assert main([*words[:3], "64", "128", *words[6:-1], str(other)]) == 0
        assert (other / "mine.txt").read_text() == "kept"
        assert main([*words[:-1], str(other)]) != 0
        assert "would be overwritten" in capsys.readouterr().err

    @pytest.mark.parametrize(("words", "part"), [
        (["wide.py:nothing"], "cannot be imported"),
        (["wide.py:make", "--width", "64"], "at least two different widths"),
        (["wide.py:make", "--optimiser", "lion"], "optimiser is 'lion'"),
        (["wide.py:make", "--input", "7"], "raised RuntimeError"),
        (["--layers", "erf:1", "--target", "he3", "--check"], "need a torch module"),
        (["wide.py:make", "--target", "he3"], "--target and module.py:make are both given"),
        (["wide.py:fixed"], "no parameter differs"), (["ends.py:make"], "SystemExit"),
        (["json.py:make", "--width", "8", "16", "--seeds", "1", "--check"], "seeds is 1"),
    ], ids=lambda value: "" if isinstance(value, list) else value)  # fmt: skip
    def test_bad_requests(self, module, capsys, words, part):
        assert main(["scale", *words]) != 0
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert part in line


@pytest.mark.parametrize("rows", [1, 4, 16])
def test_change_of_one_step_of_adam(rows):
    # Normal inputs, labels that are signs: the step is rate / width times the sign of the sum over rows.
    width, repeats = 4096, 200
    stream = torch.Generator().manual_seed(494 + rows)
    x = torch.randn(repeats, rows, width, generator=stream)
    signs = torch.randint(2, (repeats, rows, 1), generator=stream) * 2.0 - 1
    step = torch.sign((signs * x).sum(1)) / width
    change = (signs[..., 0] * torch.einsum("rbn,rn->rb", x, step))[:, 0]
    error = float(change.std()) / repeats**0.5
    assert float(change.mean()) == pytest.approx((2 / (np.pi * rows)) ** 0.5, abs=4 * error)
    # the rest has the size width^(-1/2)
    assert float(change.std()) < 1.5 * width**-0.5


class Deep(nn.Module):
    """Residual network of blocks with one layer each, and a number in front of each branch."""

    def __init__(self, depth, branches=1.0):
        super().__init__()
        self.enter, self.readout, self.branches = nn.Linear(10, 64), nn.Linear(64, 1), branches
        self.blocks = nn.ModuleList(nn.Linear(64, 64) for _ in range(depth))

    def forward(self, x):
        h = self.enter(x)
        for block in self.blocks:
            h = h + self.branches * block(torch.relu(h))
        return self.readout(h)


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_depth(optimiser):
    kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[optimiser]

    def changes(depth, corrected):
        found = []
        for seed in range(6):
            torch.manual_seed(498 + seed)
            module, base = Deep(depth), Deep(4)
            groups = list(module.parameters())
            rate = 1e-3 if optimiser == "adam" else 1e-2
            if corrected:
                rules = width_rules(module, base, optimiser=optimiser)
                module.branches = rules.branches
                groups = groups_of(rules, module, rate, 0.0)
            x, y = torch.randn(4, 10), torch.randn(4, 1)
            steps, before = kind(groups, lr=rate), module(x).detach()
            for _ in range(2):
                steps.zero_grad()
                ((module(x) - y) ** 2).mean().backward()
                steps.step()
            found.append(float((module(x) - before).square().mean().sqrt().detach()))
        return np.mean(np.log2(found))

    depths = (4, 8, 16, 32, 64)
    slopes = {
        kept: np.polyfit(np.log2(depths), [changes(depth, kept) for depth in depths], 1)[0]
        for kept in (False, True)
    }
    assert not slopes[False] < 1  # or it overflows
    assert abs(slopes[True]) < 0.15


def test_one_layer_that_fails_for_certain_decides():
    sizes = np.ones((2, 4, 5, 2))
    rng = np.random.default_rng(499)
    changes = np.ones((2, 4, 5, 2))
    changes[1, :, :, 0] = 2**0.3 * (1 + 0.001 * rng.normal(size=(4, 5)))
    changes[1, :, :, 1] = np.exp(rng.normal(size=(4, 5)))
    check = CoordinateCheck((64, 128), ("sure", "noisy"), sizes, changes, True, (True, True))
    assert check.verdict == "fails"
    assert check.worst[0] == "sure"
    # a noisy layer alone leaves it open
    changes[1, :, :, 0] = 1.0 + 0.001 * rng.normal(size=(4, 5))
    check = CoordinateCheck((64, 128), ("sure", "noisy"), sizes, changes, True, (True, True))
    assert check.verdict == "undecided"


@pytest.mark.parametrize("kind", ["dict", "tuple", "loss", "backward"])
def test_outputs_of_other_kinds(kind):
    class Net(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.enter, self.readout = nn.Linear(4, width), nn.Linear(width, 2)

        def forward(self, x):
            h = torch.exp(self.enter(x))
            y = self.readout(h)
            if kind == "backward":
                h.add_(1)  # exp needs its outputs
            return {"dict": {"name": "net", "y": y}, "tuple": (None, y), "loss": y.mean()}.get(
                kind, y
            )

    if kind in ("dict", "tuple"):
        assert len(coordinate_check(Net, (8, 16), seeds=2).layers) >= 2
    else:
        with pytest.raises(InvalidData, match="allowed"):
            coordinate_check(Net, (8, 16), seeds=2)


def test_numbers_of_forward_that_the_check_cannot_apply_are_named():
    class Tied(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(width, 6) / 6**0.5)

        def forward(self, x):
            return torch.relu(x @ self.weight.T) @ self.weight

    check = coordinate_check(lambda width: (Tied(width), torch.randn(4, 6)), (32, 64), seeds=2)
    assert check.missing == ("the number of the outputs of weight",)
    assert "Not applied" in check.sentence
    assert coordinate_check(everyday.Language, (32, 64), seeds=2).missing == ()
