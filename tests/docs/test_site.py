"""Tables and searches of the documentation, from its sources.

`tests/support/site_check.py` checks the built pages.
"""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
import site_check

from solvable.frame.registry import available

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
KEYWORDS = tomllib.loads((DOCS / "keywords.toml").read_text("utf-8"))["pages"]
ROWS = tomllib.loads((DOCS / "systems" / "table.toml").read_text("utf-8"))


def test_table_of_systems_has_every_system_and_its_page():
    ours = {listing.name for listing in available() if listing.package.startswith("solvable")}
    assert set(ROWS) == ours
    pages = {path.stem for path in (DOCS / "systems").glob("*.md")} - {"index"}
    assert set(ROWS) == pages
    index = (DOCS / "systems" / "index.md").read_text("utf-8")
    assert re.findall(r"^[a-z-]+: .* <([a-z-]+)>$", index, re.MULTILINE) == list(ROWS)


def test_rows_are_whole_and_agree_with_the_readme():
    readme = (ROOT / "README.md").read_text("utf-8")
    for name, row in ROWS.items():
        assert set(row) == {"question", "predicted", "theory", "seconds"}, name
        assert row["question"].endswith("?"), name
        line = next(line for line in readme.splitlines() if line.startswith(f"| [`{name}`]"))
        assert row["question"] in line, name
        assert f"| {row['seconds']} s |" in line, name


def test_each_page_states_how_exact_its_theory_is():
    for name, row in ROWS.items():
        kind, rest = re.fullmatch(
            r"(exact|limit|heuristic|numerical)\b(.*[^.])", row["theory"]
        ).groups()
        line = f"**Theory:** [{kind}](index.md#kinds-of-theory){rest}."
        page = (DOCS / "systems" / f"{name}.md").read_text("utf-8")
        assert line in page.split("\n\n")[1:4], name


def test_keywords_name_sections_and_belong_to_one_place():
    words = [word for entries in KEYWORDS.values() for word in entries]
    assert len(words) == len(set(words))
    assert all((DOCS / f"{place.partition('#')[0]}.md").exists() for place in KEYWORDS)


@pytest.mark.parametrize("word", site_check.searches())
def test_a_page_answers_the_search(word):
    """The search needs all words of a query on one page."""
    texts = []
    for page in site_check.searches()[word]:
        path = DOCS / f"{page}.md"
        if path.exists():
            text = path.read_text("utf-8")
            shown = re.sub(
                r"^```{include} (\S+)", lambda file: (DOCS / file[1]).read_text("utf-8"), text
            )
            entries = [
                " ".join(words) for place, words in KEYWORDS.items() if place.split("#")[0] == page
            ]
            texts.append(" ".join([shown, *entries]).lower())
    assert any(all(part[:5] in text for part in word.split()) for text in texts), word


@pytest.mark.skipif(site_check.browser() is None, reason="no browser is installed")
def test_the_check_finds_what_it_looks_for(tmp_path):
    head = "<!doctype html><body style='margin:0;background:white'><article>"
    wide = "<div style='width:900px'>wide</div>"
    box = "<div style='overflow-x:auto'><div style='width:900px'>wide</div></div>"
    faint = "<p style='color:#999'>faint</p>"
    picture = "<img src='a.svg' alt='a.svg'>"
    (tmp_path / "bad.html").write_text(head + faint + wide + picture, "utf-8")
    (tmp_path / "late.html").write_text(
        head + "<div style='height:300px'></div><h1 style='margin:0'>T</h1>", "utf-8"
    )
    (tmp_path / "good.html").write_text(head + "<h1>T</h1>" + box, "utf-8")
    found, _ = site_check.inspect(tmp_path, ["bad.html", "late.html", "good.html"], [])
    bad = "\n".join(found["bad.html"])
    for words in (
        "no title",
        "scrolls sideways at 400",
        "cut at 400",
        "contrast 2.85",
        "alternative text",
    ):
        assert words in bad
    assert found["late.html"] == ["the title begins only at 300 px"]
    assert found["good.html"] == []


def test_a_browser_that_ends_is_started_again_and_then_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(site_check, "browser", lambda: shutil.which("true"))
    with pytest.raises(SystemExit, match=r"no answer in 2 attempts; left: \['a.html', 'amp'\]"):
        site_check.inspect(tmp_path, ["a.html"], ["amp"], attempts=2)


def test_figures_for_phones_have_the_data_of_the_stored_ones():
    sys.path.insert(0, str(DOCS))
    import narrow_figures

    path = DOCS / "figures" / "narrow-network.svg"
    stored = narrow_figures.read_picture(path).data
    figure = narrow_figures.figure_of(stored)
    assert [series.label for series in figure.series] == [
        part["label"] for part in stored["series"]
    ]
    assert (figure.x_label, figure.y_scale) == (stored["x_label"], stored["y_scale"])
    width = re.search(rb'width="([\d.]+)pt"', narrow_figures.narrow(path))
    assert float(width[1]) == pytest.approx(72 * narrow_figures.WIDTH)
    assert narrow_figures.figure_of({"axes": []}) is None


def test_lost_searches_are_reported():
    assert site_check.lost_searches({"quickstart": ["start", "tutorial"]})
    assert site_check.lost_searches({"onnx": ["a", "b", "c", "not-here"]})
    assert not site_check.lost_searches({"onnx": ["a", "not-here"]})


def test_a_comma_after_a_formula_is_held_once_where_the_same_text_stands_before():
    sys.path.insert(0, str(DOCS))
    from docutils import frontend, nodes, utils
    from page_tools import hold_punctuation

    page = utils.new_document("page", frontend.get_default_settings())
    parts = [
        "from ",
        nodes.literal("", "a"),
        ", ",
        nodes.math("", "x"),
        ", ",
        nodes.math("", "y"),
        ".",
    ]
    line = nodes.paragraph()
    line += [nodes.Text(part) if isinstance(part, str) else part for part in parts]
    page += line
    hold_punctuation(None, page, "page")
    shown = [part.astext() + part.get("mark", "") if isinstance(part, nodes.math) else part.astext()
             for part in line]  # fmt: skip
    assert "".join(shown) == "from a, x, y."
