"""Losses over two variables: published runs, planted surfaces, coverage, tables of runs, the command."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.cli import main
from solvable.errors import InvalidData, InvalidParameter
from solvable.forecast import Runs, Surface, fit_surface, forecast_surface, read_runs

# sizes and losses of 245 runs that arXiv:2404.10102 read from Figure 4 of arXiv:2203.15556
CHINCHILLA = Path(__file__).with_name("chinchilla_runs.csv")
GRID = np.array([[x, y] for x in (8, 16, 32, 64, 128) for y in (50, 200, 800, 3200, 12800)], float)


def planted(family="sum", noise=0.0, seed=0, replicates=1):
    surface = Surface(family, 0.05, 3.0 if family == "sum" else 1.0, 20.0, 0.7, 0.45)
    sizes = np.repeat(GRID, replicates, axis=0)
    rng = np.random.default_rng([495, seed])
    losses = surface.losses(sizes) * np.exp(noise * rng.normal(size=len(sizes)))
    return surface, Runs(("width", "rows"), sizes, losses)


@pytest.fixture(scope="module")
def published():
    runs = read_runs(CHINCHILLA, ["params", "tokens"])
    kept = runs.losses < np.sort(runs.losses)[-5]  # as arXiv:2404.10102 does
    return Runs(runs.names, runs.sizes[kept], runs.losses[kept])


class TestPublishedRuns:
    """The corrected fit of Besiroglu et al. 2024."""

    def test_estimates(self, published):
        found = fit_surface(published)
        assert len(published.losses) == 240
        # published: E 1.817 (0.026), A 482 (125), B 2085 (1293), alpha 0.348 (0.015), beta 0.366 (0.021)
        assert found.floor == pytest.approx(1.817, abs=0.003)
        assert (found.alpha, found.beta) == pytest.approx((0.348, 0.366), abs=0.002)
        assert (found.first, found.second) == pytest.approx((482, 2085), rel=0.05)

    @pytest.mark.slow
    def test_intervals_and_the_split(self, published):
        found = forecast_surface(published, budget=5.76e23, cost=6, confidence=0.95)
        # published 95 % intervals; the exponent of the split is 0.513 (0.020)
        published_ends = {"E": (1.769, 1.871), "alpha": (0.317, 0.373), "beta": (0.331, 0.415)}
        for name, ends in published_ends.items():
            held, width = found.parameters[name], ends[1] - ends[0]
            # percentiles of 200 resamples have errors of about a tenth of the width
            assert (held.lower, held.upper) == pytest.approx(ends, abs=0.2 * width)
        held = found.parameters["split exponent"]
        assert held.value == pytest.approx(0.513, abs=0.003)
        assert (held.upper - held.lower) / 3.92 == pytest.approx(0.020, rel=0.25)
        # about twenty tokens for each parameter at the budget of Chinchilla
        params, tokens = (size.value for size in found.split.sizes)
        assert tokens / params == pytest.approx(18, rel=0.1)


@pytest.mark.parametrize("family", ["sum", "joint"])
def test_planted_surfaces_are_found(family):
    surface, runs = planted(family)
    found = fit_surface(runs, family)
    np.testing.assert_allclose(found.losses(runs.sizes), runs.losses, rtol=1e-4)
    assert (found.alpha, found.beta) == pytest.approx((surface.alpha, surface.beta), rel=0.02)


@pytest.mark.parametrize("family", ["sum", "joint"])
def test_the_best_split_is_the_least_on_a_fine_grid(family):
    surface, _ = planted(family)
    for product in (1e4, 1e6, 1e9):
        x = np.geomspace(1, product, 20_001)
        losses = surface.losses(np.stack([x, product / x], axis=1))
        best = surface.best_split(product)
        assert best[0] * best[1] == pytest.approx(product)
        assert best[0] == pytest.approx(x[losses.argmin()], rel=2e-3)


@settings(max_examples=15, deadline=None)
@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.floats(0.01, 100))
def test_units_change_nothing(first, second, unit):
    _, runs = planted(noise=0.02)
    scaled = Runs(runs.names, runs.sizes * [first, second], runs.losses * unit)
    ours, theirs = fit_surface(runs), fit_surface(scaled)
    np.testing.assert_allclose(
        theirs.losses(scaled.sizes), unit * ours.losses(runs.sizes), rtol=2e-3
    )


def test_an_outlier_moves_little():
    _, runs = planted(noise=0.01)
    losses = runs.losses.copy()
    losses[12] *= 3
    moved = fit_surface(Runs(runs.names, runs.sizes, losses))
    # least squares would move alpha by more than ten times this
    assert moved.alpha == pytest.approx(fit_surface(runs).alpha, abs=0.03)


@pytest.mark.slow
def test_intervals_cover_new_runs_and_exponents():
    inside, exponents, count = 0, 0, 40
    at = [(256, 51200), (512, 3200), (32, 100_000)]
    for seed in range(count):
        surface, runs = planted(noise=0.05, seed=seed, replicates=2)
        found = forecast_surface(runs, at=at, resamples=60)
        noise = np.exp(0.05 * np.random.default_rng([496, seed]).normal(size=3))
        truth = surface.losses(np.array(at, float)) * noise
        inside += sum(
            row.lower <= loss <= row.upper
            for row, loss in zip(found.predictions, truth, strict=True)
        )
        held = found.parameters["split exponent"]
        exponents += held.lower <= surface.beta / (surface.alpha + surface.beta) <= held.upper
    # 90 % intervals; three binomial standard errors, runs of one surface taken as one
    assert inside / (3 * count) > 0.9 - 3 * (0.9 * 0.1 / count) ** 0.5
    assert exponents / count > 0.9 - 3 * (0.9 * 0.1 / count) ** 0.5


def test_the_form_that_predicts_held_out_runs_is_taken():
    for family in ("sum", "joint"):
        _, runs = planted(family, noise=0.001)
        assert forecast_surface(runs, resamples=50).surface.family == family


def test_equal_seeds_give_equal_forecasts():
    _, runs = planted(noise=0.03)
    first, again = (
        forecast_surface(runs, at=[(200, 9000)], resamples=50, seed=3) for _ in range(2)
    )
    assert first.to_dict() == again.to_dict()


@pytest.mark.parametrize(("sizes", "part"), [
    (GRID[GRID[:, 0] < 20], "width has 2 different sizes"),
    (np.array([[x, 10 * x] for x in range(1, 13)], float), "vary together"),
    (GRID[[0, 6, 12, 3, 16]], "5 different pairs"),
], ids=["one", "line", "few"])  # fmt: skip
def test_runs_that_span_no_surface_are_refused(sizes, part):
    surface, _ = planted()
    with pytest.raises(InvalidData, match=part):
        forecast_surface(Runs(("width", "rows"), sizes, surface.losses(sizes)))


@pytest.mark.parametrize("kind", ["rising", "equal", "random"])
def test_losses_that_do_not_fall_are_refused(kind):
    _, runs = planted()
    rng = np.random.default_rng(497)
    losses = {"rising": 1 / runs.losses, "equal": np.full(len(runs.losses), 0.3),
              "random": np.exp(rng.normal(size=len(runs.losses)))}[kind]  # fmt: skip
    with pytest.raises(InvalidData, match="do not fall"):
        forecast_surface(Runs(runs.names, runs.sizes, losses), resamples=50)


def test_a_variable_without_effect_has_no_split():
    sizes = GRID
    losses = 0.1 + 3 * sizes[:, 0] ** -0.5
    with pytest.raises(InvalidParameter, match="hardly depends on one of the variables"):
        forecast_surface(Runs(("width", "rows"), sizes, losses), budget=1e6, resamples=50)


def test_far_sizes_are_refused():
    _, runs = planted()
    with pytest.raises(InvalidParameter, match="rows is 1e\\+06, more than 30 times"):
        forecast_surface(runs, at=[(100, 1e6)], resamples=50)
    with pytest.raises(InvalidParameter, match="more than 30 times"):
        forecast_surface(runs, budget=1e15, resamples=50)


@pytest.mark.parametrize("values", [[[1, 2]], [[0, 2, 3]], [[np.nan, 1, 1]], [[1, 1, -1]]])
def test_bad_numbers(values):
    table = np.array(values, dtype=float)
    with pytest.raises(InvalidData, match="allowed"):
        Runs(("a", "b"), table[:, :2], table[:, 2:].reshape(-1))


class TestTables:
    """Exports of trackers, and rubbish."""

    def test_exports(self, tmp_path):
        path = tmp_path / "runs.csv"
        path.write_text(
            "\ufeffName,State,params.width,params.rows,metrics.val_loss,metrics.acc\n"
            'a,finished,8,"1,000",0.5,0.1\nb,crashed,8,2000,0.4,0.1\nc,finished,16,1000,,0.1\n'
            "d,finished,16,2000,NaN,0.2\ne,finished,32,1000,0.3,0.2\n"
        )
        runs = read_runs(path, ["width", "rows"])
        np.testing.assert_array_equal(runs.sizes, [[8, 1000], [32, 1000]])
        np.testing.assert_allclose(runs.losses, [0.5, 0.3])
        assert runs.notes == (
            "Losses: column 'metrics.val_loss'.",
            "Left out: 1 run that did not finish.",
            "Left out: 2 rows without three numbers above 0.",
        )
        scores = read_runs(path, ["width", "rows"], "acc").losses
        np.testing.assert_allclose(scores, [0.1, 0.1, 0.2, 0.2])

    @pytest.mark.parametrize(("text", "expected"), [
        ("a,b,train_loss,loss,val_loss\n1,2,9,8,7\n", 7), ("a;b;loss\n1;2;50.5%\n", 50.5),
        ("a\tb\tloss\n1\t2\t3\n", 3),
    ], ids=["held-out", "percent", "tabs"])  # fmt: skip
    def test_columns_and_separators(self, tmp_path, text, expected):
        (tmp_path / "runs.csv").write_text(text)
        assert read_runs(tmp_path / "runs.csv", ["a", "b"]).losses == pytest.approx([expected])

    @pytest.mark.parametrize(("text", "variables", "part"), [
        ("a,b,loss\n1,2,3\n", ["a"], "two columns"), ("a,b,loss\n1,2,3\n", ["a", "a"], "two columns"),
        ("a,b,loss\n1,2,3\n", ["a", "c"], "no column 'c'"), ("a,b\n1,2\n", ["a", "b"], "no column"),
        ("a,b,loss\nx,2,3\n", ["a", "b"], "no row"), ("", ["a", "b"], "no column"),
        ("x.a,y.a,b,loss\n1,2,3,4\n", ["a", "b"], "2 columns are called"),
        ("a,b,loss\n1,2,3\n", ["a", "loss"], "is a variable and the loss"),
    ])  # fmt: skip
    def test_rubbish_is_one_line(self, tmp_path, text, variables, part):
        (tmp_path / "runs.csv").write_text(text)
        with pytest.raises((InvalidData, InvalidParameter), match=part) as caught:
            read_runs(tmp_path / "runs.csv", variables)
        assert "\n" not in str(caught.value)

    def test_binary_and_missing_files(self, tmp_path):
        (tmp_path / "runs.csv").write_bytes(b"\xff\xfe\x00\x01")
        for name in ("runs.csv", "none.csv"):
            with pytest.raises(InvalidData):
                read_runs(tmp_path / name, ["a", "b"])


class TestCommand:
    """`solvable forecast runs.csv --variables ...`."""

    @pytest.fixture
    def runs(self, tmp_path):
        _, held = planted(noise=0.02)
        rows = "\n".join(
            f"{x:g},{y:g},{loss:.6g}" for (x, y), loss in zip(held.sizes, held.losses, strict=True)
        )
        (tmp_path / "runs.csv").write_text(f"width,rows,loss\n{rows}\n")
        return str(tmp_path / "runs.csv")

    def test_text_json_and_files(self, runs, tmp_path, capsys):
        words = [
            "forecast",
            runs,
            "--variables",
            "width",
            "rows",
            "--budget",
            "1e7",
            "--at",
            "200",
            "9000",
        ]
        assert main([*words, "--output", str(tmp_path / "out")]) == 0
        printed = capsys.readouterr().out
        assert "best split" in printed
        assert "loss = E + A width^-alpha + B rows^-beta" in printed
        stored = json.loads((tmp_path / "out" / "forecast.json").read_text())
        assert (tmp_path / "out" / "surface.svg").exists()
        assert main([*words, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["parameters"] == stored["parameters"]
        first, second = (size["value"] for size in found["split"]["sizes"])
        assert first * second == pytest.approx(1e7)

    @pytest.mark.parametrize(("words", "part"), [
        (["--variables", "width", "rows", "--at", "1", "2", "3"], "pairs"),
        (["--variables", "width", "rows", "--factor", "2"], "--factor is for a learning curve"),
        (["--budget", "1e7"], "with --variables"), (["--variables", "width"], "two columns"),
    ], ids=["pairs", "factor", "budget", "one"])  # fmt: skip
    def test_bad_requests(self, runs, capsys, words, part):
        assert main(["forecast", runs, *words]) != 0
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert part in line
