"""Documents of folders: sections with their lines, and one line for each kind of bad input."""

from __future__ import annotations

import pytest

from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded
from solvable.retrieve import corpus as corpus_module
from solvable.retrieve.documents import open_documents

MARKDOWN = """\
preface

# Page

first words

```sh
# a comment, no heading
```

## Part #

second words
"""

RST = """\
Page
====

first words

Part
----

second words

a table
---
"""

PYTHON = """\
'''About the module.'''

@decorated
def one():
    return 1


class Two:
    pass
"""


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def rows(folder):
    return [(one.identity, one.title, one.text) for one in open_documents(folder).pairs]


def test_sections_of_markdown_and_restructured_text(tmp_path):
    assert rows(write(tmp_path, a_md=MARKDOWN, b_rst=RST)) == [
        ("a.md:1", "Page", "preface"),
        ("a.md:3", "Page", "first words ```sh # a comment, no heading ```"),
        ("a.md:11", "Page: Part", "second words"),
        ("b.rst:1", "Page", "first words"),
        # A bar that is shorter than the line above it is no title.
        ("b.rst:6", "Page: Part", "second words a table ---"),
    ]


def test_functions_and_classes_of_python_are_documents(tmp_path):
    assert [one[:2] for one in rows(write(tmp_path, a_py=PYTHON, b_py="def broken("))] == [
        ("a.py:1", "a"),
        ("a.py:3", "a: one"),
        ("a.py:8", "a: Two"),
        ("b.py:1", "b"),
    ]


def test_hidden_and_other_files_are_left_out(tmp_path):
    write(tmp_path, sub__a_txt="text", _git__b_txt="text", c_csv="text")
    assert [one[0] for one in rows(tmp_path)] == ["sub/a.txt:1"]


def test_files_without_text_are_skipped_and_counted(tmp_path):
    folder = write(
        tmp_path, a_md=b"\xff\xfe", b_md=b"zero\0byte", c_md="", d_md="# title", e_md="x"
    )
    found = open_documents(folder)
    assert [one.text for one in found.pairs] == ["x"]
    assert found.notes == (
        "2 files skipped, cannot be read as UTF-8 text: a.md, b.md",
        "2 files skipped, without text: c.md, d.md",
    )
    (folder / "e.md").unlink()
    with pytest.raises(InvalidData, match="has no text: 2 files skipped") as caught:
        open_documents(folder)
    assert "\n" not in str(caught.value)


def test_folders_without_texts_are_refused(tmp_path):
    with pytest.raises(
        InvalidParameter, match=r"has no file that ends in \.md, \.txt, \.py, \.rst"
    ):
        open_documents(tmp_path)


def test_folders_larger_than_memory_are_refused(tmp_path, monkeypatch):
    write(tmp_path, a_md="text " * 100)
    monkeypatch.setattr(corpus_module, "available_bytes", lambda: 1000.0)
    with pytest.raises(MemoryLimitExceeded, match="Split the corpus"):
        open_documents(tmp_path)


def test_control_characters_are_removed(tmp_path):
    ((_, title, text),) = rows(write(tmp_path, a_md="# red\x1b[31m\n\nbad\x1b]0;title\x07"))
    assert "\x1b" not in title + text
