"""Pruned weights: what is written, what the user's function measures, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.diagnose.test_cuts import STRONG, spiked

import solvable
from solvable.diagnose import cut_matrix, diagnose_matrix
from solvable.diagnose.pruning import words
from solvable.diagnose.pruning.evaluation import Measured, effect_of, load_function, measured
from solvable.diagnose.pruning.prediction import Narrowest, narrowest_of, predicted
from solvable.diagnose.pruning.truncation import truncated
from solvable.errors import InvalidData, InvalidParameter


def signal(seed=0):
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((100, 6)))[0]
    right = np.linalg.qr(rng.standard_normal((150, 6)))[0]
    return (left * STRONG) @ right.T


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Two matrices of signals and noise, with one that has no suggested cut."""
    path = tmp_path_factory.mktemp("weights") / "w.safetensors"
    arrays = {
        "a.weight": spiked(0, (100, 150), STRONG).astype(np.float32),
        "a.bias": np.ones(100, dtype=np.float32),
        "b.weight": spiked(1, (100, 150), STRONG).astype(np.float32),
        "c.weight": np.random.default_rng(2).standard_normal((40, 60)).astype(np.float16),
    }
    save_file(arrays, path, metadata={"heads": "2"})
    return path


def distance(path):
    """Squared distance of a.weight to its signals: noise in the file is noise in the loss."""
    return np.linalg.norm(load_file(path)["a.weight"] - signal()) ** 2


def test_written_weights_are_ranked_by_the_measured_loss(file, tmp_path):
    before = file.read_bytes()
    found = solvable.diagnose_weights(file, prune=tmp_path / "out", evaluate=distance, workers=1)
    pruning = found.pruning
    assert file.read_bytes() == before
    assert {one.name for one in (tmp_path / "out").iterdir()} == {"pruned", "denoised"}
    kinds = [words.label(one) for one in pruning.variants]
    # The loss is the matrix error, so denoising is predicted to be best, and cutting b changes nothing.
    assert kinds[0] == "denoised"
    assert kinds[-1] == "b.weight alone"
    assert [one.measured for one in pruning.variants] == ["better"] * 3 + ["no change"]
    assert pruning.best.path == str(tmp_path / "out" / "denoised" / "w.safetensors")
    assert words.answer(pruning).startswith("The denoised weights are better: loss ")
    row = next(one for one in found.matrices if one.name == "a.weight")
    losses = {words.label(one): one.loss for one in pruning.variants}
    assert losses["pruned"] == pytest.approx(row.advice.matrix_error_cut**2, rel=0.15)
    assert losses["denoised"] == pytest.approx(row.advice.matrix_error_denoised**2, rel=0.15)
    new, old = load_file(tmp_path / "out" / "pruned" / "w.safetensors"), load_file(file)
    np.testing.assert_allclose(new["a.weight"], cut_matrix(old["a.weight"], row), atol=1e-6)
    for name in ("a.bias", "c.weight"):
        np.testing.assert_array_equal(new[name], old[name])


def test_factors_give_the_cut_matrix(file, tmp_path):
    found = solvable.diagnose_weights(file, prune=tmp_path / "out", factors=True, workers=1)
    new = load_file(tmp_path / "out" / "factors" / "w.safetensors")
    cut = load_file(tmp_path / "out" / "pruned" / "w.safetensors")["a.weight"]
    np.testing.assert_allclose(new["a.weight.left"] @ new["a.weight.right"], cut, atol=1e-5)
    factors = next(one for one in found.pruning.variants if one.kind == "factors")
    assert factors.entries == 2 * 6 * (100 + 150)
    assert found.pruning.entries == 2 * 100 * 150
    assert "was not measured" in words.answer(found.pruning)
    assert "entries" in words.variant_table(found.pruning).to_text()


def test_parts_of_a_fused_array_are_changed_in_their_place(tmp_path):
    parts = [spiked(k, (100, 150), strengths) for k, strengths in enumerate((STRONG, [], STRONG))]
    fused = np.vstack(parts).astype(np.float32)
    np.savez(tmp_path / "w.npz", **{"attn.qkv.weight": fused})
    found = solvable.diagnose_weights(tmp_path / "w.npz", prune=tmp_path / "out", workers=1)
    new = np.load(tmp_path / "out" / "pruned" / "w.npz")["attn.qkv.weight"]
    assert found.pruning.variants[0].matrices == (
        "attn.qkv.weight[query]",
        "attn.qkv.weight[value]",
    )
    np.testing.assert_array_equal(new[100:200], fused[100:200])
    assert [np.linalg.matrix_rank(new[k : k + 100], tol=1e-3) for k in (0, 100, 200)] == [6, 100, 6]


def test_a_function_that_fails_on_some_weights_is_one_line(file, tmp_path):
    def loss(path):
        if "denoised" in path:
            raise RuntimeError("first\nsecond")
        return np.float32("nan") if "pruned" in path else 1.0

    found = solvable.diagnose_weights(file, prune=tmp_path / "out", evaluate=loss, workers=1)
    faults = {words.label(one): one.fault for one in found.pruning.variants}
    assert faults["denoised"] == "the function raised RuntimeError: first"
    assert faults["pruned"] == "the loss is NaN"
    assert words.answer(found.pruning) == "The loss of no written weights could be measured."
    assert not [one for one in (tmp_path / "out").iterdir() if one.name.startswith(".")]


def test_without_a_suggestion_nothing_is_written(tmp_path):
    np.savez(tmp_path / "w.npz", w=np.random.default_rng(0).standard_normal((40, 60)))
    found = solvable.diagnose_weights(tmp_path / "w.npz", prune=tmp_path / "out", workers=1)
    assert found.pruning.notes == ("No cut is suggested, so no weights were written.",)
    assert words.answer(found.pruning) == found.pruning.notes[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("0.3", "returned '0.3'"),
        (None, "returned None"),
        (True, "returned True"),
        (np.ones((2, 2)), "one number"),
        (np.ones(1), "for each held-out row"),
        ([1.0, "low"], "for each held-out row"),
        (np.array([True, False]), "for each held-out row"),
        ([1.0, float("nan")], "the loss is NaN"),
        (float("inf"), "the loss is inf"),
    ],
)
def test_only_one_number_is_a_loss(tmp_path, value, fault):
    found = measured(lambda path: value, tmp_path)
    assert found.loss is None
    assert fault in found.fault
    for number in (2, 2.0, np.float32(2), np.array(2)):
        assert measured(lambda path, number=number: number, tmp_path).loss == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("after", "effect"),
    [
        ([1.2, 2.3, 3.1, 4.2], "worse"),  # 0.2 ± 0.04
        ([0.8, 1.7, 2.9, 3.8], "better"),
        ([1.5, 1.8, 3.3, 4.0], "not clear"),  # 0.15 ± 0.16
        ([1.0, 2.0, 3.0, 4.0001], "no change"),
    ],
)
def test_a_change_of_the_losses_of_rows_has_a_paired_error(tmp_path, after, effect):
    before = measured(lambda path: np.array([1.0, 2.0, 3.0, 4.0]), tmp_path)
    assert before.loss == pytest.approx(2.5)
    differences = np.array(after) - [1.0, 2.0, 3.0, 4.0]
    change, error, found = effect_of(before, measured(lambda path: after, tmp_path), 1e-4)
    assert found == effect
    assert change == pytest.approx(differences.mean())
    assert error == pytest.approx(differences.std(ddof=1) / 2)
    # One number alone has no error, and so every change beyond the tolerance has a sign.
    one = Measured(2.5, "", 0.0)
    assert effect_of(one, Measured(2.65, "", 0.0), 1e-4)[1:] == (None, "worse")


def test_a_change_within_its_error_is_not_called_better(file, tmp_path):
    original = load_file(file)

    def losses(path):
        changed = np.abs(load_file(path)["a.weight"] - original["a.weight"]).sum() > 0
        return np.array([1.0, 1.0, 1.0]) + changed * np.array([-0.4, -0.1, 0.3])

    found = solvable.diagnose_weights(file, prune=tmp_path / "out", evaluate=losses, workers=1)
    pruning = found.pruning
    effects = {words.label(one): one.measured for one in pruning.variants}
    assert effects["pruned"] == effects["denoised"] == effects["a.weight alone"] == "not clear"
    assert effects["b.weight alone"] == "no change"
    assert pruning.best is None
    assert words.answer(pruning).startswith("No written weights are clearly better; the ")
    assert "less than two standard errors" in words.answer(pruning)
    assert "-0.0667 ± 0.2" in words.variant_table(pruning).to_text()
    assert any(text.startswith("not clear: ") for text in words.sentences(pruning))
    assert any("right for 0 of 1 measured row." in text for text in words.sentences(pruning))


def test_bad_options_are_refused_before_anything_is_written(file, tmp_path):
    (tmp_path / "f.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    for text, fault in (
        ("f.py", "allowed: FILE.py:FUNCTION"),
        (f"{tmp_path}/gone.py:f", "which is not a file"),
        (f"{tmp_path}/f.py:loss", "has no function 'loss'"),
        (f"{tmp_path}/broken.py:f", "cannot be executed"),
    ):
        with pytest.raises(InvalidParameter, match=fault):
            load_function(text)
    with pytest.raises(InvalidParameter, match="which holds files"):
        solvable.diagnose_weights(file, prune=tmp_path)
    with pytest.raises(InvalidParameter, match="given without prune"):
        solvable.diagnose_weights(file, factors=True)
    with pytest.raises(InvalidData, match="returned 'low'"):
        solvable.diagnose_weights(file, prune=tmp_path / "out", evaluate=lambda path: "low")
    assert not (tmp_path / "out").exists()


def test_the_predicted_effect():
    row = diagnose_matrix(spiked(0, (100, 150), STRONG))
    parts = truncated(spiked(0, (100, 150), STRONG), row)
    assert predicted([parts])[0] == "worse"
    assert predicted([])[0] == ""
    parts = replace(parts, bulk_norm=0.009 * parts.norm)
    assert predicted([parts])[0] == "no change"
    assert predicted([parts], refitted=True)[0] == "worse"


@pytest.mark.parametrize(("signal", "sign"), [(0.0, -1), (0.02, -1), (0.2, 1)])
def test_a_removed_coefficient_raises_the_training_loss_but_not_always_the_loss_on_new_data(
    signal, sign
):
    # The mean changes of docs/diagnose.md, for ridge regression on fixed rows, against simulated labels.
    n, ridge, rng = 400, 0.1, np.random.default_rng(0)
    h, w = np.linspace(0.2, 1.0, 8), np.full(8, signal)
    X = np.linalg.qr(rng.standard_normal((n, 8)))[0] * np.sqrt(n * h)
    y = X @ w + rng.standard_normal((400, n))
    trained = y @ X / n / (h + ridge)
    s, variance = h / (h + ridge), 1 / (h * n)
    on_new = (h * (w**2 - (trained - w) ** 2)).sum(axis=1) / 2
    on_training = ((y**2).mean(axis=1) - ((y - trained @ X.T) ** 2).mean(axis=1)) / 2
    for changes, terms in (
        (on_new, h * s * ((2 - s) * w**2 - s * variance)),
        (on_training, h * s * (2 - s) * (w**2 + variance)),
    ):
        error = changes.std(ddof=1) / len(changes) ** 0.5
        assert changes.mean() == pytest.approx(terms.sum() / 2, abs=4 * error)
    assert np.sign(on_new.mean()) == sign
    assert (on_training > 0).all()


def test_no_sign_is_predicted_of_more_directions_than_the_network_passes():
    row = diagnose_matrix(spiked(0, (100, 150), STRONG))
    parts = truncated(spiked(0, (100, 150), STRONG), row)  # six directions
    assert predicted([parts], Narrowest("head", 5))[0] == "worse"
    effect, because = predicted([parts], Narrowest("head", 4))
    assert effect == ""
    assert "keeps 6 directions, but head passes only 4" in because
    small = replace(parts, bulk_norm=0.009 * parts.norm)
    assert predicted([small], Narrowest("head", 4))[0] == "no change"


def test_the_narrowest_matrix_is_no_embedding_filter_or_vector():
    shapes = {"tok_emb.weight": (9, 64), "conv.weight": (16, 1, 3, 3), "bias": (8,)}
    rows = [replace(_blank(), name=name, shape=shape) for name, shape in shapes.items()]
    assert narrowest_of(rows) is None
    rows += [
        replace(_blank(), name="fc", shape=(64, 32)),
        replace(_blank(), name="head", shape=(10, 64)),
    ]
    assert narrowest_of(rows) == ("head", 10)


def _blank():
    return diagnose_matrix(np.ones((2, 2)))


def test_the_copy_of_the_best_cut_alone_is_kept(file, tmp_path):
    original = load_file(file)

    def loss(path):
        """Only b should change."""
        now = load_file(path)
        kept = np.linalg.norm(now["a.weight"] - original["a.weight"])
        return kept - np.linalg.norm(now["b.weight"] - original["b.weight"])

    found = solvable.diagnose_weights(file, prune=tmp_path / "out", evaluate=loss, workers=1)
    best = found.pruning.best
    assert (best.kind, best.matrices) == ("alone", ("b.weight",))
    assert loss(best.path) == pytest.approx(best.loss)
    assert {one.name for one in (tmp_path / "out").iterdir()} == {"alone", "denoised", "pruned"}
    assert words.answer(found.pruning).startswith("The cut of b.weight alone is better: loss ")


def test_a_process_of_its_own(file, tmp_path):
    (tmp_path / "loss.py").write_text(
        "import numpy as np\nfrom safetensors.numpy import load_file\n\n\n"
        "def loss(path):\n    print('noise')\n"
        "    return np.abs(load_file(path)['a.weight']).sum()\n"
    )
    command = [sys.executable, "-m", "solvable", "diagnose", str(file), "--workers", "1"]
    options = ["--prune", "out", "--factors", "--evaluate", "loss.py:loss", "--output", "report"]
    done = subprocess.run(
        [*command, *options, "--json"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)["pruning"]
    kinds = [one["kind"] for one in shown["variants"]]
    assert sorted(kinds) == ["alone", "alone", "denoised", "factors", "pruned"]
    factors = next(one for one in shown["variants"] if one["kind"] == "factors")
    assert factors["fault"].startswith("the function raised KeyError")
    page = (tmp_path / "report" / "report.html").read_text()
    assert "What did the suggested cuts do to the loss?" in page
