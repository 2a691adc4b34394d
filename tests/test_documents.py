"""Files of users: text that would take too much memory is refused before it is parsed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from solvable.documents import LARGEST, LONGEST_LINE, parse_json, parse_toml, read_document
from solvable.errors import InvalidData


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".".join(["a"] * 45_000) + " = 1", "90,003 characters; allowed: 64,000 at most"),
        (".".join(["a"] * 1_900) + " = 1", "more than 32 parts"),
        (" . ".join(['"a b"'] * 40) + " = 1", "more than 32 parts"),
        ("[" + ".".join(["a"] * 40) + "]", "more than 32 parts"),
        ("x = { " + ".".join(["'a'"] * 40) + " = 1 }", "more than 32 parts"),
        ("a = '" + LONGEST_LINE * "b" + "'", "line 1, has 4,006 characters"),
        ("a = 1\n" * LARGEST, "at most in TOML"),
        ("a = " + "[" * 3_000, "nested too deeply"),
        ("a = [", "is not valid TOML"),
    ],
)
def test_toml_that_is_too_long_or_wrong_is_refused_in_one_line(text, said):
    with pytest.raises(InvalidData, match=said) as raised:
        parse_toml(text, "net.toml")
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_what_people_write_is_read():
    text = "title = '" + "1.2." * 20 + "'\n[layers.first.second]\na.b.c = 1\n"
    assert parse_toml(text, "net.toml")["layers"]["first"]["second"]["a"]["b"]["c"] == 1
    long = "# " + LONGEST_LINE * "x"
    assert parse_toml(long, "study.toml", longest_line=10**6) == {}


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "9" * 5_000, "1" * 2_000_000])
def test_bad_json_is_refused_in_one_line(text):
    with pytest.raises(InvalidData) as raised:
        parse_json(text, "net.json")
    assert len(str(raised.value)) < 300


def test_files_are_read_by_their_ending(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfwidth = 3\r\n")
    (tmp_path / "a.JSON").write_text(json.dumps({"width": 3}))
    for name in ("a.toml", "a.JSON"):
        assert read_document(tmp_path / name) == {"width": 3}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.yaml", b"", "ends in '.yaml'; allowed"),
        ("a.toml", b"\xff\xfe", "is not valid TOML"),
        ("a.toml", b"#" * 64_001, "more than 64,000 bytes"),
        ("a.json", b" " * 1_000_001, "more than 1,000,000 bytes"),
        ("none.toml", None, "No such file"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidData, match=said):
        read_document(tmp_path / name)


def test_a_dotted_key_takes_no_memory(tmp_path):
    pytest.importorskip("resource")
    # Without limits the first file takes over 6 GB; the second takes the most memory within them.
    (tmp_path / "attack.toml").write_text(".".join(["a"] * 45_000) + " = 1")
    deep = [".".join([f"a{i}", *["a"] * 30]) + " = 1" for i in range(900)]
    (tmp_path / "worst.toml").write_text("\n".join(deep))
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from solvable.documents import read_document\n"
        "from solvable.errors import InvalidData\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n"
        "    read_document(Path(sys.argv[1]))\n"
        "except InvalidData:\n"
        "    pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    for name in ("attack.toml", "worst.toml"):
        run = subprocess.run(
            [sys.executable, "-c", program, tmp_path / name],
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(run.stdout) < 50_000, name  # kilobytes
