"""Docstrings of installed packages: files are parsed and not imported; tokens of texts."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from solvable.data.docstring_corpus import docstrings, tokens_of
from solvable.errors import InvalidData, InvalidParameter

SOURCE = '''"""Module of tests.

Its second paragraph.
"""
raise RuntimeError("this module must not run")

class Outer:
    """A class."""

    def method(self):
        """A method
        of two lines.

        Body.
        """
        def inner():
            """An inner function."""

if True:
    async def waits():
        """An asynchronous function."""

def _hidden():
    """A private function."""

def copy():
    """A class."""
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "parsed_package"
    (root / "tests").mkdir(parents=True)
    (root / "b").mkdir()
    (root / "__init__.py").write_text(SOURCE)
    (root / "b" / "part.py").write_text('def f():\n    """Part f."""\n')
    (root / "a.py").write_text('"""Module a."""\n')
    (root / "broken.py").write_text("def f(:\n")
    (root / "tests" / "test_a.py").write_text('"""Not read."""\n')
    monkeypatch.syspath_prepend(tmp_path)
    return "parsed_package"


def test_records_in_order_without_execution_or_copies(package):
    records = docstrings([package])
    assert [(r.module.removeprefix(package), r.name, r.kind) for r in records] == [
        ("", package, "module"),
        ("", "Outer", "class"),
        ("", "Outer.method", "function"),
        ("", "Outer.method.inner", "function"),
        ("", "waits", "function"),
        ("", "_hidden", "function"),
        (".a", f"{package}.a", "module"),
        (".b.part", "f", "function"),
    ]
    assert package not in sys.modules
    assert records[0].first_line == "Module of tests."
    assert records[0].body == "Its second paragraph."
    assert records[2].first_line == "A method of two lines."
    assert records[2].body == "Body."
    assert records[1].body == ""


def test_choice_of_records(package):
    assert "_hidden" not in [record.name for record in docstrings([package], private=False)]
    assert [r.name for r in docstrings([package], shortest=29)] == [package, "Outer.method"]


def test_installed_packages_are_not_imported():
    code = (
        "import sys; from solvable.data.docstring_corpus import docstrings; "
        "found = docstrings(['sklearn'], shortest=300); assert len(found) > 500; "
        "assert 'sklearn' not in sys.modules; print(found[0].module)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("sklearn")


def test_texts_are_those_of_the_running_package():
    import numpy.ma.core as module

    records = {(r.module, r.name): r for r in docstrings(["numpy"])}
    record = records["numpy.ma.core", "MaskedArray.anom"]
    assert record.text == __import__("inspect").getdoc(module.MaskedArray.anom)


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        *((name, "allowed") for name in ("numpy.linalg", "../numpy", [3], [None], None, 3)),
        ("no_such_package", "is not installed.*pip install no_such_package"),
        (["sys"], "is built into Python"),
        (["__main__"], "is built into Python"),
    ],
)
def test_packages_that_cannot_be_read(packages, words):
    with pytest.raises(InvalidParameter, match=words):
        docstrings(packages)


def test_one_name_is_one_package(package):
    assert docstrings(package) == docstrings([package])


def test_a_module_of_one_file_is_refused(tmp_path, monkeypatch):
    Path(tmp_path / "single_file.py").write_text('"""Text."""')
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidParameter, match="or is a single file"):
        docstrings(["single_file"])


def test_characters():
    tokens, names = tokens_of(["To\n  be", "OR not"], 4)
    # o occurs three times, t and the blank twice; the blank sorts first
    assert names == ["o", " ", "t", "other"]
    assert tokens.tolist() == [2, 0, 1, 3, 3, -1, 0, 3, 1, 3, 0, 2]


def test_words():
    tokens, names = tokens_of(["The cat's cat", "the 2 dogs_cat"], 3, unit="word")
    assert names == ["cat", "the", "other"]
    assert tokens.tolist() == [1, 0, 2, 0, -1, 1, 2, 0]


@pytest.mark.parametrize("texts", ["abba", None, 3, [None], [1, 2], [b"ab"], b"ab"])
def test_texts_that_are_no_strings(texts):
    with pytest.raises(InvalidData, match=r"allowed: (a sequence of )?strings"):
        tokens_of(texts, 3)


def test_another_unit():
    with pytest.raises(InvalidParameter, match="unit is 'sentence'; allowed: character, word"):
        tokens_of(["ab"], 3, unit="sentence")


def test_a_vocabulary_larger_than_the_text():
    with pytest.raises(InvalidData, match="2 different tokens; allowed: at least"):
        tokens_of(["ab"], 4)
    with pytest.raises(InvalidData, match="1 different token; allowed"):
        tokens_of(["a"], 4)
    assert np.unique(tokens_of(["ab"], 3)[0]).tolist() == [0, 1]
