"""Reading of corpora: equal in three formats, and one line for each kind of bad input."""

from __future__ import annotations

import csv
import json

import pytest

from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded
from solvable.retrieve import corpus as corpus_module
from solvable.retrieve.corpus import Corpus, Pair, deduplicated, read_corpus, split

ROW = {"id": "a", "query": "the query", "document": "the document"}


def test_formats_agree(tmp_path, corpus_file):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    content = [
        ROW | {"domain": "x", "negatives": ["one", "two"], "scores": [3, 1.5, 0]},
        ROW | {"id": "b", "domain": "y", "negatives": None, "scores": None},
    ]
    whole = read_corpus(corpus_file(content))
    assert whole.pairs[0].negatives == ("one", "two")
    assert whole.pairs[0].scores == pytest.approx((3, 1.5, 0))
    with (tmp_path / "pairs.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(content[0]))
        writer.writeheader()
        for row in content:
            lists = {
                key: json.dumps(row[key]) if row[key] else "" for key in ("negatives", "scores")
            }
            writer.writerow(row | lists)
    parquet.write_table(pa.Table.from_pylist(content), tmp_path / "pairs.parquet")
    for name in ("pairs.csv", "pairs.parquet"):
        other = read_corpus(tmp_path / name)
        assert other.pairs == whole.pairs
        assert other.fingerprint == whole.fingerprint


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([ROW | {"document": " \n"}], "row 1: the document is empty"),
        ([ROW | {"query": None}], "row 1: the query is empty"),
        ([ROW | {"query": "\x00\x1b"}], "row 1: the query is empty"),
        ([ROW, ROW], "the id 'a' occurs twice"),
        ([ROW | {"document": 3}], "document is 3; allowed: text"),
        ([ROW | {"negatives": "one"}], "negatives is not a list"),
        ([ROW | {"negatives": [" "]}], "a negative is empty"),
        ([ROW | {"scores": [1, 2]}], "2 scores for 1 documents"),
        ([ROW | {"scores": [float("inf")]}], "allowed: a list of finite numbers"),
        ([ROW | {"scores": [True]}], "allowed: a list of finite numbers"),
        ([[1]], "allowed: an object with the keys"),
        ([], "has no rows"),
    ],
)
def test_bad_rows_are_refused_in_one_line(corpus_file, rows, message):
    with pytest.raises(InvalidData, match=message.replace("(", r"\(")) as caught:
        read_corpus(corpus_file(rows))
    assert "\n" not in str(caught.value)


def test_documents_alone_are_enough_for_an_index(corpus_file):
    path = corpus_file([{"document": "one"}, {"document": "two"}])
    assert [pair.identity for pair in read_corpus(path, queries=False).pairs] == ["1", "2"]


def test_control_characters_are_removed_with_a_note(corpus_file):
    found = read_corpus(corpus_file([ROW | {"document": "red\x1b[31m <b>text</b>\x00"}]))
    assert found.pairs[0].document == "red[31m <b>text</b>"  # markup is text
    assert found.notes == ("control characters were removed from 1 row",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"x", "ends in '.txt'"),
        ("a.jsonl", b"{\n", "row 1, is not JSON"),
        ("a.jsonl", b"\xff\xfe\x00", "is not UTF-8 text"),
        ("a.csv", b"query,text\na,b\n", "has no column 'document'"),
        ("a.parquet", b"PAR1", "not a Parquet file"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidData, match=message) as caught:
        read_corpus(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused():
    with pytest.raises(InvalidData, match="is not a file; allowed: docstrings"):
        read_corpus("missing.jsonl")


def test_corpora_larger_than_memory_are_refused(corpus_file, monkeypatch):
    path = corpus_file(20)
    monkeypatch.setattr(corpus_module, "available_bytes", lambda: 1000.0)
    with pytest.raises(MemoryLimitExceeded, match="Split the corpus"):
        read_corpus(path)


def test_near_duplicates_are_removed():
    long = "x" * 150
    pairs = [
        Pair("1", "Sort the list.", "one"),
        Pair("2", "sort  the LIST", "two"),  # the same query
        Pair("3", "other", f"{long} and more"),
        Pair("4", "another", f"{long.upper()} and less"),  # the same first 150 characters
    ]
    found = deduplicated(Corpus("name", tuple(pairs)))
    assert [pair.identity for pair in found.pairs] == ["1", "3"]
    assert found.notes == ("2 near duplicates removed",)


def test_the_split_depends_on_texts_alone(corpus_file):
    whole = read_corpus(corpus_file(120))
    parts = split(whole, ["outside"], 500)
    assert {pair.domain for pair in parts.outside} == {"outside"}
    assert len(parts.inside) == 80 // 5
    assert len(parts.training) + len(parts.inside) == 80
    turned = Corpus("name", whole.pairs[::-1])
    assert split(turned, ["outside"], 500) == parts
    with pytest.raises(InvalidParameter, match="held-out is 'up'; allowed: domains of the corpus"):
        split(whole, ["up"], 500)
    with pytest.raises(InvalidData, match="allowed: at least 50"):
        split(Corpus("name", whole.pairs[:20]), [], 500)
