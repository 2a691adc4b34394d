"""`solvable learn` and `solvable predict`, in separate processes and in this one."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

ROWS = 90


def table(rows=ROWS, seed=0, classes=("no", "yes"), *, target=True):
    """Small table: one column determines the class, one is text, one constant; some cells are empty."""
    rng = np.random.default_rng(seed)
    size, weight = rng.standard_normal((2, rows))
    labels = np.where(size + 0.3 * rng.standard_normal(rows) > 0, classes[1], classes[0])
    colours = rng.choice(["red", "blue"], rows)
    lines = ["size,weight,unit,colour" + (",risk" if target else "")]
    for i in range(rows):
        shown = "" if i % 17 == 3 else f"{weight[i]:.6f}"
        cells = [f"{size[i]:.6f}", shown, "7", colours[i], *([labels[i]] if target else [])]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def learned(terminal_in, tmp_path_factory):
    """Program in a directory where `learn` was run on the small table."""
    program = terminal_in(tmp_path_factory.mktemp("learned"))
    (program.cwd / "patients.csv").write_text(table())
    words = (
        "learn",
        "patients.csv",
        "--target",
        "risk",
        "--folds",
        2,
        "--output",
        "out",
        "--workers",
        1,
    )
    program.answer = program(*words)
    assert program.answer.returncode == 0, program.answer.stderr
    program.result = json.loads((program.cwd / "out" / "result.json").read_text())
    return program


@pytest.fixture
def there(learned, call, monkeypatch):
    """Call the program in this process, to save its start, in the directory of `learned`."""
    monkeypatch.chdir(learned.cwd)
    return call


def test_the_three_answers_are_told(learned):
    told = learned.answer.stdout
    for part in (
        "90 rows, 4 columns, 2 classes of 'risk'",
        "dropped column 'unit': constant",
        "6 of 90 values missing",
        "Which features carry signal?",
        "How good are the models on unseen rows?",
        "What error is expected with more rows?",
        "learned features",
        "ridge on the columns",
        "Gaussian kernel, tuned",
        "infinitely wide network",
        "random features, 2000",
        "out/report.html",
    ):
        assert part in told
    assert told.startswith("Use ")
    # The protocol and the differences between methods are details.
    assert "2-fold cross-validation" not in told
    assert "difference, points" not in told
    # A pipe receives no progress and no colours.
    assert "\x1b" not in told + learned.answer.stderr
    assert len(learned.answer.stderr.splitlines()) == 1


def test_the_directory_holds_what_was_promised(learned):
    out = learned.cwd / "out"
    names = {one.name for one in out.iterdir()}
    assert names == {
        "report.html",
        "result.json",
        "model.safetensors",
        "predictions.csv",
        "directions.csv",
        "figures",
    }
    assert {one.name for one in (out / "figures").iterdir()} >= {
        "learn-strengths.svg",
        "learn-strengths.pdf",
    }
    rows = list(csv.DictReader(io.StringIO((out / "predictions.csv").read_text())))
    assert len(rows) == ROWS
    wrong = np.mean([one["target"] != one["predicted"] for one in rows])
    (chosen,) = [one for one in learned.result["methods"] if one["recommended"]]
    assert wrong == pytest.approx(chosen["error"])
    assert sorted({one["fold"] for one in rows}) == list("12")


def test_the_result_says_everything(learned):
    result = learned.result
    assert result["command"] == "solvable learn patients.csv --target risk --folds 2"
    assert result["class_labels"] == ["no", "yes"]
    keys = [one["key"] for one in result["methods"]]
    assert keys == [
        "learned-features",
        "nngp",
        "lazy-features",
        "rbf",
        "metric-kernel",
        "trees",
        "multi-index",
        "ridge",
        "blend",
        "constant",
    ]
    for one in result["methods"]:
        assert one["lower"] <= one["error"] <= one["upper"]
        assert one["test_rows"] == ROWS
    signal_of_target = result["found"][0]["signals"]
    assert [one["label"] for one in signal_of_target] == ["risk"]
    assert result["found"][0]["directions"] >= 1


def test_the_same_again_may_be_written_over_and_another_may_not(learned, there):
    words = ("learn", "patients.csv", "--target", "risk", "--output", "out", "--folds", 2, "--json")
    before = (learned.cwd / "out" / "result.json").read_bytes()
    # A different request is refused before any fit.
    status, _, error = there(*words, "--seed", 1)
    assert status == 2
    assert "out: holds report.html, result.json" in error
    assert (learned.cwd / "out" / "result.json").read_bytes() == before
    status, printed, _ = there(*words, "--workers", 1)
    assert status == 0
    told = json.loads(printed)
    assert told["files"]["report"] == "out/report.html"
    assert _without_times(told) == _without_times(learned.result)


@pytest.mark.slow
def test_two_workers_give_the_same_numbers_as_one(learned):
    words = ("learn", "patients.csv", "--target", "risk", "--folds", 2, "--workers", 2)
    answer = learned(*words, "--output", "two", "--json")
    assert answer.returncode == 0, answer.stderr
    assert _without_times(json.loads(answer.stdout)) == _without_times(learned.result)


def _without_times(result):
    content = {
        name: value
        for name, value in result.items()
        if name not in ("seconds", "files", "format", "command", "methods")
    }
    methods = [{**one, "seconds": 0} for one in result["methods"]]
    return content | {"methods": methods}


def test_predictions_for_new_rows(learned, there):
    (learned.cwd / "new.csv").write_text(table(30, seed=1, target=False))
    answer = learned("predict", "out/model.safetensors", "new.csv")
    assert answer.returncode == 0, answer.stderr
    rows = list(csv.DictReader(io.StringIO(answer.stdout)))
    assert [one["row"] for one in rows] == [str(i + 1) for i in range(30)]
    assert {one["predicted"] for one in rows} == {"no", "yes"}
    _, printed, _ = there("predict", "out", "new.csv", "--json")
    told = json.loads(printed)
    assert told["predictions"] == [one["predicted"] for one in rows]
    assert told["error"] is None
    _, printed, _ = there("predict", "out", "new.csv", "--output", "predicted.csv")
    assert "30 predictions of 'risk' are in predicted.csv" in printed
    assert (learned.cwd / "predicted.csv").read_text() == answer.stdout
    status, _, error = there("predict", "out", "new.csv", "--output", "predicted.csv")
    assert status == 2
    assert "exists" in error


def test_a_table_of_texts_alone_is_learned_and_predicted(call, few, tmp_path):
    rng = np.random.default_rng(0)
    first, second, third = rng.choice(["f", "t"], (3, 90))
    won = np.where(first == second, "won", "lost").tolist()
    won[7] = "draw"
    cells = [",".join(row) for row in zip(first, second, third, won, strict=True)]
    (tmp_path / "chess.csv").write_text("\n".join(["one,two,three,result", *cells]) + "\n")
    options = ("--target", "result", "--folds", 2, "--output", "out", "--workers", 1)
    status, printed, said = call("learn", "chess.csv", *options)
    assert status == 0, said
    assert "column 'one': text, replaced by 2 columns of 0 and 1" in printed
    assert "set aside 1 row of class 'draw', the only one of its class" in printed
    assert "'draw'" in html.unescape((tmp_path / "out" / "report.html").read_text())
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["n_samples"] == 89
    shares = {part["column"]: part["share"] for part in result["found"][0]["columns"]}
    assert set(shares) == {"one", "two", "three"}
    assert min(shares["one"], shares["two"]) > shares["three"]
    (tmp_path / "new.csv").write_text("three,two,one\nf,f,t\nt,t,t\nf,f,f\n")
    _, printed, _ = call("predict", "out", "new.csv")
    assert printed.split() == ["row,predicted", "1,lost", "2,won", "3,won"]


def test_the_error_on_new_rows_is_told(learned, there):
    (learned.cwd / "later.csv").write_text(table(400, seed=2))
    _, printed, _ = there("predict", "out", "later.csv", "--json")
    told = json.loads(printed)
    _, truth = zip(
        *((line.split(",")[0], line.split(",")[-1]) for line in table(400, seed=2).split()[1:]),
        strict=True,
    )
    wrong = np.mean([a != b for a, b in zip(told["predictions"], truth, strict=True)])
    assert told["error"]["wrong"] == pytest.approx(wrong)
    # The label has noise of 0.3 standard deviations, so about 9 % of the rows cannot be predicted; the
    # measured error has a standard error of 2 % over 400 rows.
    assert wrong < 0.2
    assert told["error"]["training_rows"] is False
    _, printed, _ = there("predict", "out", "patients.csv", "--json")
    assert json.loads(printed)["error"]["training_rows"] is True


def test_classes_not_seen_in_training_are_told(learned, there):
    (learned.cwd / "other.csv").write_text(table(40, seed=3, classes=("no", "perhaps")))
    status, _, error = there("predict", "out", "other.csv")
    assert status == 0
    assert "'perhaps'" in error
    assert "not seen in training" in error
    assert "of the predictions for" in error


@pytest.mark.parametrize("damage", ["cut", "changed", "missing", "text"])
def test_a_damaged_model_is_one_line(learned, call, damage):
    whole = (learned.cwd / "out" / "model.safetensors").read_bytes()
    content = {
        "cut": whole[: len(whole) // 2],
        "changed": whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:],
        "text": b"not a model",
    }
    if damage in content:
        Path("model.safetensors").write_bytes(content[damage])
    status, printed, error = call("predict", "model.safetensors", "wine")
    assert status == 2
    assert printed == ""
    assert len(error.splitlines()) == 1
    assert "model.safetensors" in error


def test_other_columns_are_one_line(learned, call):
    status, _, error = call("predict", learned.cwd / "out", "wine")
    assert status == 2
    assert "'size'" in error
    assert len(error.splitlines()) == 1


def rows(*cells, times=15):
    return "a,b,y\n" + "\n".join(cells * times) + "\n"


BAD = [
    # Arguments of `learn`, the content of table.csv, and parts of the error line
    (["nowhere.csv"], None, ["nowhere.csv"]),
    (["digitz"], None, ["'digitz'", "digits"]),
    (["table.csv"], rows("1,2,0", "2,1,1"), []),
    (["table.csv", "--target", "z"], rows("1,2,0", "2,1,1"), ["'z'"]),
    (["table.csv", "--target", "y"], rows("1,2,0", "2,1,0"), ["'y'", "all 30 rows"]),
    (["table.csv", "--target", "y"], rows("1,2,0", "2,1,1", times=3), ["6 rows", "at least 20"]),
    (["table.csv", "--target", "y"], rows("1,1,0", "1,1,1"), ["constant"]),
    (["table.csv", "--target", "y"], rows("x,p,0", "x,p,1"), ["'a': constant"]),
    (["table.csv", "--target", "y"], rows("1,2,0", "inf,1,1"), ["infinite"]),
    (["table.csv", "--target", "y", "--task", "regression"], rows("1,2,u", "2,1,v"), ["'u'"]),
    (["table.csv", "--target", "y", "--task", "guess"], rows("1,2,0", "2,1,1"), ["guess"]),
    (["wine", "--folds", "1"], None, ["--folds is 1", "2 to 20"]),
    (["wine", "--layers", "0"], None, ["--layers is 0", "1 to 5"]),
    (["wine", "--rows", "5"], None, ["--rows is 5", "from 20"]),
    (["wine", "--seed", "-1"], None, ["--seed is -1", "from 0"]),
    (["wine", "--workers", "0"], None, ["workers is 0"]),
    (["wine", "--target", "price"], None, ["price"]),
    (["wine", "--output", "table.csv"], "mine", ["table.csv", "directory"]),
    ([], None, ["learn needs DATA"]),
]


@pytest.mark.parametrize(("words", "content", "said"), BAD, ids=[" ".join(one[0]) for one in BAD])
def test_bad_input_is_one_line_and_exits_with_2(call, tmp_path, words, content, said):
    if content is not None:
        (tmp_path / "table.csv").write_text(content)
    if words == ["table.csv"]:
        # A column called y is the default target.
        content = content.replace("y", "what", 1)
        (tmp_path / "table.csv").write_text(content)
        said = ["target"]
    status, printed, error = call("learn", *words)
    assert status == 2
    assert printed == ""
    assert error.startswith("solvable: ")
    assert len(error.splitlines()) == 1
    for part in said:
        assert part in error


def test_files_of_another_are_not_overwritten(call, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.html").write_text("mine")
    status, _, error = call("learn", "wine", "--output", "out")
    assert status == 2
    assert "report.html" in error
    assert (tmp_path / "out" / "report.html").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to the superuser")
def test_a_directory_that_cannot_be_written(call, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    status, _, error = call("learn", "wine", "--output", "closed/out")
    assert status == 2
    assert "cannot be written" in error


def test_a_name_under_a_file_cannot_be_a_directory(call, tmp_path):
    (tmp_path / "file").write_text("mine")
    status, _, error = call("learn", "wine", "--output", "file/out")
    assert status == 2
    assert "cannot be written" in error
    assert len(error.splitlines()) == 1


def test_images_of_mixed_size_are_refused(call, tmp_path):
    folder = tmp_path / "images"
    for name, side in (("a", 4), ("b", 5)):
        (folder / name).mkdir(parents=True)
        for i in range(12):
            np.save(folder / name / f"{i}.npy", np.full((side, side), i))
    status, _, error = call("learn", folder)
    assert status == 2
    assert len(error.splitlines()) == 1


def test_ctrl_c_ends_quickly_and_leaves_nothing_half_written(terminal_in, tmp_path):
    program = terminal_in(tmp_path)
    process = program.start("learn", "digits", "--folds", 3, "--output", "out", "--workers", 2)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("digits: 1797 rows")
    time.sleep(2.0)
    os.kill(process.pid, signal.SIGINT)
    start = time.monotonic()
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert time.monotonic() - start < 30
    assert "interrupted" in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()


def test_no_data_and_help(call):
    status, printed, _ = call("learn", "--help")
    assert status == 0
    assert "solvable learn patients.csv --target risk" in printed
    assert "--layers" in printed


def test_probabilities_are_one_column_per_class(there):
    status, printed, told = there("predict", "out", "patients.csv", "--probabilities")
    assert status == 0, told
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert list(rows[0]) == ["row", "predicted", "probability of no", "probability of yes"]
    shares = np.array(
        [[float(row[f"probability of {label}"]) for label in ("no", "yes")] for row in rows]
    )
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-8)
    # The class with the larger probability is the predicted one, but for rows near the boundary.
    agree = [
        (row["predicted"] == "yes") == (pair[1] > 0.5)
        for row, pair in zip(rows, shares, strict=True)
    ]
    assert np.mean(agree) > 0.9
    status, printed, _ = there("predict", "out", "patients.csv", "--probabilities", "--json")
    assert json.loads(printed)["classes"] == ["no", "yes"]
    np.testing.assert_allclose(json.loads(printed)["probabilities"], shares, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--test", "unlabelled.csv"], "no value of the target 'risk'"),
        (["--test", "narrow.csv"], "columns of the model are not in the data"),
        (["--metric", "mae"], "metric is mae, but the target 'risk' holds classes"),
    ],
)
def test_tests_and_metrics_are_checked_before_any_fit(learned, there, options, message):
    (learned.cwd / "unlabelled.csv").write_text(table(target=False))
    (learned.cwd / "narrow.csv").write_text("size,risk\n1,no\n2,yes\n")
    status, _, error = there("learn", "patients.csv", "--target", "risk", *options)
    assert status == 2
    assert message in error
    assert len(error.strip().splitlines()) == 1
