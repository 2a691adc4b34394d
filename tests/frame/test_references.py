"""References: systems list keys of a BibTeX file, or the text of an entry."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

import solvable.models
from solvable.errors import InvalidParameter
from solvable.frame.references import Reference, read_entries, resolved
from solvable.frame.registry import available, load


def module(monkeypatch, tmp_path, text):
    """Return a module whose folder has a BibTeX file."""
    (tmp_path / "references.bib").write_text(text, encoding="utf-8")
    own = ModuleType("own")
    own.__file__ = str(tmp_path / "own.py")
    monkeypatch.setitem(sys.modules, "own", own)


def test_keys_are_looked_up_beside_the_system(monkeypatch, tmp_path):
    module(monkeypatch, tmp_path, "@book{one,\n  title = {A {B}}\n}\n\n@misc{two, year = {1}}\n")
    own = Reference("three", "@misc{three}")
    found = resolved(["two", own, "one"], "own")
    assert [reference.key for reference in found] == ["two", "three", "one"]
    assert found[0].bibtex == "@misc{two, year = {1}}"
    assert found[2].bibtex == "@book{one,\n  title = {A {B}}\n}"


def test_an_unknown_key_is_refused_with_those_that_there_are(monkeypatch, tmp_path):
    module(monkeypatch, tmp_path, "@misc{one}\n@misc{two,}\n")
    with pytest.raises(InvalidParameter, match="reference is 'tow'; allowed: two"):
        resolved(["tow"], "own")


def test_each_entry_of_the_file_is_cited_and_has_its_own_key():
    file = Path(solvable.models.__path__[0]) / "references.bib"
    entries = read_entries(file)
    cited = {reference.key for one in available() for reference in load(one.name).references}
    assert set(entries) <= cited
    assert file.read_text("utf-8").count("\n@") + 1 == len(entries)
