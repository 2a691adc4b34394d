"""The report of learning: sentences, figures, and the page in a browser."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.devtools import BROWSER, loaded

from solvable.answers.page import write_page
from solvable.answers.sections import terminal_parts
from solvable.learn import feature_words, words
from solvable.learn.answer import ALL_METHODS, DIRECTION, answer, figures
from solvable.learn.figures import draw_pictures, write_pictures
from solvable.learn.results import (
    CurvePoint,
    Direction,
    Expected,
    LayerFound,
    Learned,
    MethodScore,
    Outlook,
    SignalOfClass,
)
from solvable.learn.tables import columns_as_csv, interval_places
from solvable.plots.matplotlib_backend import draw_matplotlib
from solvable.plots.plotly_backend import draw_plotly
from solvable.plots.tables import Cell, Table
from solvable.plots.words import percent, percents
from solvable.study.html import is_report

HOSTILE = "<b>y</b></script><script>document.title='taken'</script>"


def scores():
    learned = MethodScore(
        "learned-features", "learned features", "two layers", 0.02, 0.01, 0.04, 300, 240, 3.0,
        beats_constant=True, recommended=True, phrase="learned features",
    )  # fmt: skip
    shared = {"test_rows": 300, "training_rows": 240, "seconds": 1.0}
    ridge = MethodScore(
        "ridge", "ridge on the columns", "a linear model", 0.07, 0.05, 0.1, **shared,
        difference=0.05, difference_lower=0.03, difference_upper=0.08, verdict="worse",
    )  # fmt: skip
    rbf = MethodScore(
        "rbf", "Gaussian kernel, tuned", "a kernel", 0.023, 0.01, 0.05, **shared,
        tied=True, phrase="a Gaussian kernel",
        difference=0.003, difference_lower=-0.01, difference_upper=0.02, verdict="no difference",
    )  # fmt: skip
    nngp = MethodScore(
        "nngp", "infinitely wide network", "a kernel", None, None, None, 0, 240, 0.0,
        remark="the kernel is too large",
    )  # fmt: skip
    constant = MethodScore(
        "constant", "the most frequent class", "always predicts it", 0.6, 0.54, 0.65, **shared,
        difference=0.58, difference_lower=0.5, difference_upper=0.62, verdict="worse",
    )  # fmt: skip
    return (learned, ridge, rbf, nngp, constant)


def result(**changes):
    strongest = (
        Direction(1, -0.5, 5.0, 12.0, 2.0, 20.0),
        Direction(2, 0.2, 1.4, 153.0, 9.0, 40.0),
    )
    signal = SignalOfClass("risk", (1, 2, 3, 4), (5.0, 1.4, 1.2, 0.9), 3, 12.0)
    curve = tuple(
        CurvePoint(n, (0.3 * n**-0.4, 0.32 * n**-0.4), (2, 3)) for n in (30, 60, 120, 240)
    )
    expected = (
        Expected(1.0, 300, 0.03, 0.02, 0.04),
        Expected(2.0, 600, 0.022, 0.012, 0.035),
        Expected(4.0, 1200, 0.017, 0.006, 0.03),
    )
    band = tuple((n, 0.3 * n**-0.4, 0.2 * n**-0.4, 0.4 * n**-0.4) for n in (30.0, 300.0, 1200.0))
    content = {
        "name": "patients.csv",
        "n_samples": 300,
        "n_columns": 7,
        "kind": "binary",
        "class_labels": ("no", "yes"),
        "target": "risk",
        "target_deviation": None,
        "image_shape": None,
        "treatments": ("dropped column 'unit': constant",),
        "network": "2 layers.",
        "protocol": "5-fold cross-validation.",
        "folds": 5,
        "seed": 0,
        "layers": 1,
        "methods": scores(),
        "found": (LayerFound(1, 3, (2, 3), 3, 1.1, strongest, (signal,)),),
        "outlook": Outlook(curve, expected, band, 0.9, "The data do not decide.", ("A note.",)),
        "versions": {"solvable": "0.1.0"},
    }
    return Learned(**(content | changes))


def images(**changes):
    rng = np.random.default_rng(0)
    signals = tuple(
        SignalOfClass(str(digit), (1, 2, 3), (6.0, 2.0, 1.0), 2, 8.0) for digit in range(10)
    )
    return result(
        name="digits",
        kind="classification",
        class_labels=tuple("0123456789"),
        image_shape=(8, 8),
        found=(LayerFound(1, 20, (18, 21), 20, 1.1, (), signals),),
        pictures=rng.standard_normal((12, 8, 8)),
        **changes,
    )


def test_words_of_a_classification():
    found = result()
    assert words.subject(found) == "300 rows, 7 columns, 2 classes of 'risk'"
    assert (
        "2.0 % of the predictions of the learned features are wrong (95 % interval: 1.0 to 4.0 %)"
        in words.headline(found)
    )
    better, same = words.comparison_sentences(found)
    assert better == (
        "The learned features have a smaller error than: ridge on the columns; the most frequent "
        "class."
    )
    assert same == "Not clearly different from the learned features: Gaussian kernel, tuned."
    assert words.difference_text(found.methods[1]) == "+5.0 (3.0 to 8.0)"
    assert words.difference_text(found.methods[0]) == ""
    sentence = feature_words.signal_sentence(found.found[0], found)
    assert (
        "3 directions carry signal about 'risk' in 300 rows (2 to 3 in the training rows of a fold)"
        in sentence
    )
    assert "from about 3.0 % to 2.2 % (90 % interval: 1.2 to 3.5 %)" in words.outlook_sentence(
        found
    )


def test_the_first_sentence_names_the_model_and_says_why():
    found = result()
    assert words.recommendation(found) == (
        "Use learned features: 2.0 % of their predictions are wrong on held-out rows; the next best, a "
        "Gaussian kernel, is not clearly worse (2.3 %)."
    )
    tied, stored = words.reason_sentences(found)
    assert tied == "Not clearly worse on these 300 rows: Gaussian kernel, tuned (2.3 %)."
    assert words.rule(found).startswith("The method with the best score on held-out rows")
    assert stored == "The stored model (learned features) is fitted to all 300 rows."
    assert feature_words.owner_sentence(found) == ""
    learned, ridge, rbf, _, constant = scores()
    learned = replace(learned, recommended=False, tied=True)
    other = result(methods=(learned, ridge, replace(rbf, error=0.019, recommended=True), constant))
    assert words.recommendation(other) == (
        "Use a Gaussian kernel: 1.9 % of its predictions are wrong on held-out rows; learned features "
        "are no better here (2.0 %)."
    )
    assert "the Gaussian kernel does not use them" in feature_words.owner_sentence(other)
    equal = result(methods=(learned, ridge, replace(rbf, error=0.02, recommended=True), constant))
    assert words.recommendation(equal).endswith(
        "; learned features are equally good, but less simple."
    )
    trees = replace(rbf, phrase="boosted trees", error=0.01, recommended=True)
    worse = result(methods=(replace(learned, tied=False), trees, constant))
    assert words.recommendation(worse) == (
        "Use boosted trees: 1.0 % of their predictions are wrong on held-out rows; learned features are "
        "worse here (2.0 %)."
    )
    number = replace(worse, kind="regression", class_labels=(), target_deviation=1.0)
    assert "boosted trees: they leave 1.0 % of the variance unexplained on held-out rows; " in (
        words.recommendation(number)
    )
    none = result(methods=(replace(learned, tied=False), replace(constant, recommended=True)))
    assert words.recommendation(none) == (
        "Use none of these models: none is clearly better than predicting the most frequent class."
    )
    assert words.reason_sentences(none) == [
        "The stored model (always predicts the most frequent class) is fitted to all 300 rows."
    ]
    assert repr(other).startswith("<Learned: Use a Gaussian kernel: ")


def test_words_of_a_regression():
    found = result(kind="regression", class_labels=(), target_deviation=50.0)
    assert words.error_name(found) == "variance not explained"
    assert "typical error is 7.07" in words.headline(found)
    assert words.subject(found) == "300 rows, 7 columns, a number to predict: 'risk'"


def test_words_when_nothing_was_found():
    layer = LayerFound(1, 0, (0, 0), 1, 1.1, (), (SignalOfClass("risk", (1,), (0.9,), 0, None),))
    found = result(
        found=(layer,),
        outlook=Outlook((), verdict="Extrapolation is refused: no fall has been measured."),
    )
    assert "no direction carries signal" in feature_words.signal_sentence(layer, found)
    assert words.outlook_sentence(found) == ("There is no forecast: no fall has been measured.")
    assert feature_words.class_rows(layer) == [("risk", "0.9 times", "–", "0")]
    above = replace(layer, number=2)
    assert "not tested" in feature_words.signal_sentence(
        above, replace(found, found=(layer, above))
    )
    unknowing = tuple(replace(score, beats_constant=False) for score in found.methods)
    first, *_ = words.comparison_sentences(replace(found, methods=unknowing))
    assert first == "No method is clearly better than predicting the most frequent class."
    assert "No direction is clearly stronger" in figures(found)[0].caption


@pytest.mark.parametrize(
    ("value", "precision", "text"),
    [(0.0, None, "0.0 %"), (-0.0001, None, "0.0 %"), (-0.021, 0.05, "−2.1 %"), (1.0, 0.3, "100 %")],
)
def test_percents(value, precision, text):
    assert percent(value, precision) == text


def test_shares_and_their_intervals_have_the_same_digits():
    assert percents(0.0123, 0.01, 0.02) == ("1.2 %", "1.0 to 2.0 %")
    assert percents(0.0123, 0.011, 0.0145) == ("1.23 %", "1.10 to 1.45 %")
    assert percents(None, None, None) == ("–", "–")


def test_rows_of_emergence_are_told_in_two_digits():
    assert [feature_words.emergence_text(rows) for rows in (3.2, 412.3, None)] == [
        "below 20",
        "410",
        "–",
    ]


def test_details_add_columns_and_the_protocol():
    found = result()
    short, long = (terminal_parts(answer(found), details=details) for details in (False, True))
    assert short[0].text == words.recommendation(found)

    def shown(parts):
        return {column.name for part in parts if isinstance(part, Table) for column in part.columns}

    assert shown(long) - shown(short) == {
        "difference, points", "direction", "strength", "rows to emerge",
    }  # fmt: skip
    texts = [{part.text for part in parts if isinstance(part, Cell)} for parts in (short, long)]
    assert texts[1] - texts[0] == {
        found.protocol,
        found.outlook.verdict,
        ALL_METHODS.format("the most frequent class"),
        DIRECTION,
    }


def test_missing_numbers_are_empty_cells():
    assert (
        columns_as_csv({"row": np.array([1, 2]), "x": np.array([0.5, np.nan])})
        == "row,x\n1,0.5\n2,\n"
    )


def test_intervals_are_drawn_on_one_scale():
    learned, ridge, _, missing, constant = interval_places(result())
    # The widest interval of a method other than the constant reaches nearly to the end.
    assert 90 < ridge[1] < 100
    assert learned[0] < learned[2] < learned[1] < ridge[1]
    assert ridge[2] / learned[2] == pytest.approx(0.07 / 0.02)
    assert missing is None
    assert constant is None


def test_both_back_ends_draw_the_figures():
    for found in (result(), images()):
        drawn = figures(found)
        assert [one.name for one in drawn] == ["learn-strengths", "learn-curve"]
        for one in drawn:
            assert draw_matplotlib(one).axes
            assert draw_plotly(one).data
    entries = [one.label for one in figures(images())[0].series if one.label]
    assert entries == [*"0123456789", "threshold"]


def test_a_curve_that_reaches_zero_is_drawn_on_a_linear_axis():
    curve = (CurvePoint(30, (0.1, 0.0), (1, 1)), CurvePoint(60, (0.0, 0.0), (1, 1)))
    (_, figure) = figures(result(outlook=Outlook(curve, verdict="No.")))
    assert figure.y_scale == "linear"


def test_layers_have_figures_of_their_own():
    layers = tuple(replace(result().found[0], number=number) for number in (1, 2))
    names = [one.name for one in figures(result(found=layers))]
    assert names == ["learn-strengths-1", "learn-strengths-2", "learn-curve"]


def test_pictures(tmp_path):
    assert write_pictures(result(), tmp_path) == []
    (path,) = write_pictures(images(), tmp_path)
    assert path.read_bytes() == draw_pictures(images())
    assert path.read_text().count("<image") == 12


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("learn-report")
    return {
        name: write_page(
            answer(found, command="solvable learn x", model="m.safetensors"),
            directory / f"{name}.html",
        )
        for name, found in (
            ("table", result()),
            ("images", images()),
            ("two", result(found=tuple(replace(result().found[0], number=n) for n in (1, 2)))),
            ("hostile", result(name=HOSTILE, target=HOSTILE, treatments=(HOSTILE,))),
            ("bare", result(outlook=Outlook((), verdict="Refused."))),
        )
    }


def test_a_page_is_ours_and_says_everything(pages):
    text = pages["table"].read_text()
    assert is_report(pages["table"])
    body = html.unescape(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
    for part in (
        "patients.csv: learned features",
        "300 rows, 7 columns, 2 classes of 'risk'",
        "the kernel is too large",
        "off the scale",
        "no clear difference",
        "dropped column 'unit': constant",
        "solvable predict m.safetensors NEW.csv",
        "4 times the rows",
        "The data do not decide.",
        "A note.",
    ):
        assert part in body
    assert "http" not in re.sub(r'xmlns\S*="[^"]*"', "", body).replace("http-equiv", "")


PROBE = """
<script>
window.addEventListener("load", function () {
  var waited = 0;
  (function look() {
    if (document.body.dataset.drawn === undefined && waited++ < 400) return setTimeout(look, 25);
    var out = document.createElement("pre");
    out.id = "probe";
    out.textContent = JSON.stringify({
      drawn: document.body.dataset.drawn,
      errors: Array.from(document.querySelectorAll(".drawing")).map((one) => one.dataset.error || ""),
      page: document.documentElement.scrollWidth,
      dots: document.querySelectorAll(".range .dot").length,
      filters: Array.from(document.querySelectorAll("img.whole")).map((one) => one.naturalWidth),
      requests: performance.getEntriesByType("resource")
        .map((one) => one.name).filter((name) => !name.startsWith("data:")),
      title: document.title,
    });
    document.body.appendChild(out);
  })();
});
</script>
"""


def opened(page: Path, directory: Path, width: int):
    probed = directory / f"{page.stem}-{width}.html"
    probed.write_text(page.read_text().replace("</body>", f"{PROBE}</body>"))
    dom, console = loaded(probed, directory / "profile", width)
    found = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None
    assert console == []
    return json.loads(html.unescape(found[1]))


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.parametrize(
    ("name", "width", "figures"),
    [
        pytest.param("table", 1200, 2, marks=pytest.mark.slow),
        ("images", 500, 2),
        ("hostile", 1200, 2),
        pytest.param("two", 1200, 3, marks=pytest.mark.slow),
        pytest.param("bare", 500, 1, marks=pytest.mark.slow),
    ],
)
def test_the_page_in_a_browser(pages, tmp_path, name, width, figures):
    seen = opened(pages[name], tmp_path, width)
    assert seen["drawn"] == str(figures)
    assert not any(seen["errors"])
    assert seen["requests"] == []
    assert seen["page"] <= width
    assert seen["dots"] == 3
    assert seen["title"] != "taken"
    assert [one > 0 for one in seen["filters"]] == ([True] if name == "images" else [])
