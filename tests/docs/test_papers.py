"""Tables behind the pages of papers: their keys, wording, claims and commands (docs/papers)."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import plain_english
import pytest

from solvable.cli import main
from solvable.cli.app import build_app
from solvable.cli.settings import read_settings
from solvable.frame.registry import available, load
from solvable.study import Study, dry_run
from solvable.verbs import study_of

ROOT = Path(__file__).parents[2]


def load_tools():
    """Import the Sphinx extension, which lies outside the package."""
    spec = importlib.util.spec_from_file_location("paper_tools", ROOT / "docs" / "paper_tools.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


tools = load_tools()
PAPERS = tools.read_papers()
ITEMS = [
    pytest.param(paper, item, id=f"{paper.name}-{number}")
    for paper in PAPERS
    for number, item in enumerate(paper.items, 1)
]
COMMANDS = sorted({item.command for paper in PAPERS for item in paper.items if item.command})
NEEDS = ("solvable retrieve", "solvable diagnose")
"""Commands that need files of a user, or an extra, and are therefore only parsed."""


def parse(command: str):
    """Parse a command as the command line does; return its name and its values."""
    program, *words = shlex.split(command)
    assert program == "solvable"
    function, bound, unused, *_ = build_app().parse_args(
        words, exit_on_error=False, print_error=False
    )
    assert not unused
    bound.apply_defaults()
    return function.__name__, bound.arguments


def study_behind(command: str) -> Study | None:
    """Build the study of a `run` or `theory` command, which checks preset, names and values."""
    name, values = parse(command)
    if name not in ("run", "theory"):
        return None
    system = load(values["system"])
    settings = read_settings(system, values["set_"])
    preset, seeds = values.get("preset", "none"), values.get("seeds")
    study = study_of(system, preset, settings, seeds, values.get("seed", 0), dashes="--")
    if name == "run":
        study.check_limits()
    return study


def test_there_are_papers():
    assert len(PAPERS) >= 15


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_a_table_is_on_the_page_of_a_known_system(paper):
    page = (ROOT / "docs" / f"{paper.page}.md").read_text("utf-8")
    assert re.search(rf"```{{paper}} {re.escape(paper.name)}\n(?:Symbols: .*\n)?```\n", page)
    assert re.fullmatch(r"[a-z-]+-\d{4}\.\d{5}", paper.name)
    assert paper.arxiv.startswith(paper.name[-10:])
    assert set(paper.systems) <= {listing.name for listing in available()}
    assert len({item.title for item in paper.items}) == len(paper.items) > 0


def test_each_paper_is_shown_once():
    pages = (ROOT / "docs" / "systems").glob("*.md")
    shown = [name for page in pages for name in re.findall(r"```{paper} (.*)", page.read_text())]
    assert sorted(shown) == sorted(paper.name for paper in PAPERS)


@pytest.mark.parametrize(("paper", "item"), ITEMS)
def test_an_item_is_plain_and_complete(paper, item, tmp_path):
    assert item.title
    assert not item.title.endswith(".")
    for text in (item.agrees, item.missing):
        assert text == text.strip()
        assert not text or text.endswith(".")
    assert item.command or item.missing, "say what is missing where there is no command"
    assert item.command or not item.claim
    page = tmp_path / "item.md"
    page.write_text(f"{item.title}\n{item.agrees}\n{item.missing}\n", "utf-8")
    assert list(plain_english.findings(page)) == []


@pytest.mark.parametrize(("paper", "item"), ITEMS)
def test_claims_are_those_of_the_system_of_the_command(paper, item):
    if item.claims:
        known = {claim.name for claim in load(paper.system_of(item)).claims}
        assert set(item.claims) <= known


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_accepted(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    study_behind(command)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command, monkeypatch, tmp_path, capsys):
    """Rehearse studies, which measures a few replicates; run commands that print theory."""
    if command.startswith(NEEDS):
        pytest.skip("needs files of a user, or an extra")
    if command.startswith("solvable run"):
        rehearsed = dry_run(study_behind(command), tmp_path / "run", workers=1)
        assert not rehearsed.error
        return
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    assert main(shlex.split(command)[1:]) == 0
    assert len(capsys.readouterr().out) > 100


def test_pages_and_summary_show_every_item():
    summary = tools.summary_text(PAPERS)
    assert summary.startswith(f"{len(PAPERS)} papers, {len(ITEMS)} statements and figures: ")
    for paper in PAPERS:
        assert f"<../{paper.page}>`" in summary
        assert f"https://arxiv.org/abs/{paper.name[-10:]}" in tools.head_text(paper)
        for item in paper.items:
            text = tools.item_text(paper, item)
            assert f"\n\n{item.command}\n```" in text or not item.command
            assert all(f"[`{name}`](../systems/" in text for name in item.claims)
            assert item.agrees in text
            assert item.missing in text


def test_runs_of_whole_presets_are_those_of_the_systems_of_papers():
    shown = {row["system"]: row for paper in PAPERS for row in tools.preset_rows(paper)}
    with_preset = {
        name for paper in PAPERS for name in paper.systems if "paper" in load(name).presets
    }
    assert set(shown) <= with_preset
    assert len(shown) >= 10
    for name, row in shown.items():
        failing = [text for text in row["failing"].split("; ") if text]
        assert int(row["hold"]) + len(failing) + int(row["untested"]) == len(load(name).claims)
        text = tools.preset_text(row)
        assert f"\n\nsolvable run {name} --preset paper --seed {row['seed']}\n```" in text
        assert all(f"- Fails: {fails}" in text for fails in failing)


def test_a_run_with_an_older_version_says_so():
    row = next(row for paper in PAPERS for row in tools.preset_rows(paper))
    now = str(load(row["system"]).version)
    assert "version" not in tools.preset_text(row | {"version": now})
    assert f"(version 0 of the system; now {now})" in tools.preset_text(row | {"version": "0"})


def test_wrong_tables_are_refused(tmp_path):
    table = tmp_path / "paper-2605.14567.toml"
    head = 'title = "T"\narxiv = "2605.14567"\nsystems = []\n'
    table.write_text(head + '[[item]]\ntitle = "A"\ncomand = ""\n', "utf-8")
    with pytest.raises(ValueError, match="item 1 has the keys"):
        tools.read_paper(table)
    table.write_text(head + 'year = "2026"\n', "utf-8")
    with pytest.raises(ValueError, match="allowed: title, arxiv, systems"):
        tools.read_paper(table)


def test_states_and_counts_of_items():
    whole = tools.Item("A", "solvable list", "", "", "")
    partly = whole._replace(missing="The figure.")
    absent = partly._replace(command="")
    assert [item.status for item in (whole, partly, absent)] == list(tools.STATUSES)
    assert tools.counts([whole, whole, partly]) == "2 by one command, 1 in part, 0 missing"
