"""The report of a diagnosis: its sentences, its figures, and the page in a real browser."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from tests.support.devtools import BROWSER, loaded

from solvable.answers.page import write_page
from solvable.answers.small_pictures import small_picture, ticks
from solvable.diagnose import tables, words
from solvable.diagnose.bulk_fit import fit_bulk
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import (
    NOT_FITTED,
    STRUCTURED,
    Comparison,
    Control,
    Curve,
    Estimate,
    Exponent,
    Feature,
    MatrixDiagnosis,
)
from solvable.diagnose.figures import TRIMMED, spectrum_figure
from solvable.diagnose.noise import RectangularNoise
from solvable.diagnose.outliers import Outliers
from solvable.diagnose.view import page as page_of
from solvable.plots.matplotlib_backend import draw_matplotlib
from solvable.plots.recording_backend import record
from solvable.study.html import is_report

PHASES = (
    "random-like",
    "bleeding-out",
    "bulk+spikes",
    "bulk-decay",
    "heavy-tailed",
    "rank-collapse",
    "structured",
)
HOSTILE = "<b>w</b></script><script>document.title='taken'</script>"


def example_spectra(count: int = 400) -> list[MatrixDiagnosis]:
    """Example spectrum of each phase without randomness: quantiles of a law with this phase."""
    law = RectangularNoise(0.5)
    places = (np.arange(count) + 0.5) / count
    noise = law.quantile(places)
    x = np.linspace(*law.edges, 120)
    curve, edges = Curve(x, law.density(x)), law.edges
    power = places[::-1] ** -0.6
    decay = np.exp(-1.5 * places[::-1] ** 0.7) * 1.8
    shapes: dict[str, tuple[np.ndarray, list[float], Curve | None, int]] = {
        "random-like": (noise, [], curve, 0),
        "bleeding-out": (noise, [1.84, 1.78], curve, 0),
        "bulk+spikes": (noise, [3.4, 2.7, 2.3], curve, 0),
        "bulk-decay": (decay, [], None, 0),
        "heavy-tailed": (power, [], _power_curve(power), 0),
        "rank-collapse": (np.geomspace(0.3, 3.0, 16), [], None, count - 16),
        STRUCTURED: (1 + 0.02 * np.sin(7 * places), [], None, 0),
    }
    rows = []
    for phase, (values, spikes, fitted, zeros) in shapes.items():
        rows.append(
            MatrixDiagnosis(
                "example",
                (count, 2 * count),
                "F64",
                phase,
                "",
                values=np.sort(np.concatenate([np.zeros(zeros), values, spikes])),
                law=fitted,
                edges=edges if fitted is curve else None,
                features=tuple(Feature(y, Estimate(y, y, y), 1.0) for y in spikes),
                zeros=zeros,
            )
        )
    return rows


def _power_curve(values: np.ndarray) -> Curve:
    x = np.geomspace(float(values.min()), float(values.max()), 60)
    # Quantiles u^(-0.6) have the density x^(-1 - 1/0.6) / 0.6 above 1.
    return Curve(x, x ** (-1 - 1 / 0.6) / 0.6)


def example(phase: str, **changes: object) -> MatrixDiagnosis:
    row = next(one for one in example_spectra() if one.phase == phase)
    return replace(row, name=f"layer.0.{phase}", reason="as planted.", **changes)


def full() -> MatrixDiagnosis:
    """A row with all fields filled in."""
    return example(
        "bulk+spikes",
        phase_p_value=0.4,
        noise=Estimate(1.0, 0.98, 1.02),
        shrinkage=Estimate(0.1, 0.0, 0.2),
        directions=5,
        stable_rank=2.5,
        outliers=(Outliers("row", 3, (17,), 0.047, 9.0), Outliers("dead row", 40, (), 0.0, 0.0)),
        initial=Comparison("random-like", 0, 0.4, text="It was noise."),
    )


def noise() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((60, 80))


def tailed() -> MatrixDiagnosis:
    exponent = Exponent(Estimate(2.67, 2.2, 3.1), 0.384, 0.2, n_tail=60)
    return example(
        "heavy-tailed",
        exponent=exponent,
        layout="in rows",
    )


def refused(name: str = "layer.0.short") -> MatrixDiagnosis:
    return MatrixDiagnosis(name, (3, 4), "F32", NOT_FITTED, "a 3 x 4 matrix is too small.")


def vector() -> MatrixDiagnosis:
    return MatrixDiagnosis("bias", (9,), "F32", NOT_FITTED, "a vector has no spectrum.")


def everything() -> Diagnosed:
    others = [example(one) for one in PHASES if one not in ("bulk+spikes", "heavy-tailed")]
    rows = (full(), tailed(), *others, refused(), vector())
    return Diagnosed("model.npz", rows, n_arrays=len(rows), initial="before.npz")


def test_every_phase_is_explained_once():
    assert tuple(one.name for one in words.PHASES) == PHASES
    for one in words.PHASES:
        assert min(len(one.looks), len(one.means), len(one.advice)) > 30


def test_the_cells_hold_the_numbers_with_their_intervals():
    row, tail = full(), tailed()
    cells = {c.head: [c.cell(row), c.cell(tail)] for c in tables.COLUMNS}
    assert tables.estimate_text(row.noise) == "1.00 (0.98 to 1.02)"
    assert tables.estimate_text(row.noise, interval=False) == "1.00"
    assert cells["at least"] == ["5", "–"]
    assert cells["outliers"][0] == "3 rows, 40 dead rows"
    assert (cells["tail exponent"][1], cells["p"][1]) == ("2.7 (2.2 to 3.1)", "0.38")
    # A matrix without a law of noise has no number of features; one with such a law has zero.
    assert (cells["features"], cells["strongest"]) == (["3", "–"], ["3.4", "–"])
    assert tables.features_text(replace(row, features=())) == "0"
    assert cells["change"] == ["0.4", "–"]


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((3.14159, 2.9, 3.4), "3.1 (2.9 to 3.4)"),
        ((123.4, 100.0, 150.0), "123 (100 to 150)"),
        ((0.00123, 0.00121, 0.00125), "0.00123 (0.00121 to 0.00125)"),
        ((2e-9, 1e-9, 3e-9), "2e-09 (1e-09 to 3e-09)"),
        ((2e7, 1e7, 3e7), "2e+07 (1e+07 to 3e+07)"),
        ((1.5, 1.5, 1.5), "1.5"),
        ((1.5, 1.0, float("inf")), "1.5"),
    ],
)
def test_intervals_decide_on_the_digits(ends, text):
    assert tables.interval_text(*ends) == text


def test_the_file_is_counted():
    found = everything()
    assert words.subject(found) == "8 matrices and 1 vector"
    assert words.headline(found).endswith("1 rank-collapse, 1 structured, 1 not fitted.")
    assert found.complete
    cut = replace(found, rows=found.rows[:2])
    assert not cut.complete
    assert "interrupted after 2 of 9 arrays" in words.subject(cut)
    damaged = MatrixDiagnosis("x", (), "unknown", NOT_FITTED, "its entry is damaged.")
    scalar = MatrixDiagnosis("steps", (), "int64", NOT_FITTED, "0 axes.")
    both = Diagnosed("f", (damaged, scalar), n_arrays=2)
    assert (both.refused, both.vectors) == ((damaged,), (scalar,))


def test_the_answer_names_matrices_with_features_and_those_without_noise():
    found = everything()
    assert words.answer(found) == (
        "At least 5 directions above random signs, in 1 of 8 matrices. "
        "2 of 8 matrices hold learned features above a bulk of noise: 3 in layer.0.bulk+spikes and "
        "2 in layer.0.bleeding-out. 4 matrices have no bulk of noise."
    )
    assert words.answer(Diagnosed("f", (refused(),), n_arrays=1)) == "No matrix could be fitted."


def test_layers_are_in_the_order_of_their_numbers():
    names = [f"layer.{i}.w" for i in range(12)]
    alphabet = Diagnosed("f", tuple(replace(refused(), name=one) for one in sorted(names)))
    assert [one.name for one in alphabet.matrices] == names
    # Names in another order keep the order of the file.
    own = ["input", "layer.10.w", "layer.9.w", "head"]
    chosen = Diagnosed("f", tuple(replace(refused(), name=one) for one in own))
    assert [one.name for one in chosen.matrices] == own
    odd = Diagnosed("f", tuple(replace(refused(), name=one) for one in ("", "1", "1.a", "a²")))
    assert len(odd.matrices) == 4


def test_names_that_differ_in_numbers_are_one_kind():
    rows = [replace(refused(), name=f"layer.{i}.key") for i in range(3)]
    other = replace(refused(), name="head")
    assert words.kinds(rows, [*rows, other]) == "layer.*.key, all 3"
    assert words.kinds([*rows[:2], other], [*rows, other]) == "layer.*.key, 2 of 3; head"
    assert words.kinds(rows[1:], rows) == "layer.1.key and layer.2.key"
    many = [replace(refused(), name=letter) for letter in "abcde"]
    assert words.kinds(many, many, 2) == "a; b; and 3 more"


def test_doubts_and_refusals_are_listed():
    shown = dict(words.sections(everything()))
    assert "How sure is it?" not in shown
    assert shown["What was not fitted?"] == ["layer.0.short: a 3 x 4 matrix is too small."]
    assert shown["What has changed since the initial weights?"] == [
        "layer.0.bulk+spikes: It was noise."
    ]
    assert shown["Which entries, rows and columns stand out?"] == [
        "layer.0.bulk+spikes: 3 outlier rows (the largest at [17]), 4.7 % of the squared norm and "
        "40 dead rows (all zero)."
    ]
    assert shown["Which layouts were assumed?"] == ["layer.0.heavy-tailed: in rows."]
    bulk = fit_bulk(np.linalg.svd(noise(), compute_uv=False), noise().shape)
    control = Control(4, 0, "noise: 4 values have their like under random signs")
    alike = replace(example("random-like", bulk=bulk), control=control)
    (doubt,) = words.doubts(Diagnosed("f", (alike,), n_arrays=1))
    assert doubt.startswith("1 matrix with values beyond the edge")
    assert tables.features_text(alike) == "0"
    assert words.remarks(alike) == words.remarks(replace(alike, control=None))
    some = replace(alike, control=replace(control, confirmed=3, text="three of four"))
    assert "Three of four." in words.remarks(some)


@pytest.mark.parametrize("phase", PHASES)
def test_the_histogram_has_unit_mass_with_zeros_and_what_is_left_out(phase):
    row = example(phase)
    figure = spectrum_figure(row)
    bars = next(one for one in figure.series if one.kind == "histogram")
    mass = float(np.diff(bars.x) @ bars.y)
    values = np.asarray(row.values)
    left_out = re.search(r"The (\d+) smallest", figure.caption)
    missing = row.zeros + (int(left_out.group(1)) if left_out else 0)
    assert mass == pytest.approx(1 - missing / values.size, abs=1e-9)
    assert missing <= row.zeros + TRIMMED * values.size
    record(figure)


def test_zeros_of_a_symmetric_matrix_do_not_dwarf_the_rest():
    row = MatrixDiagnosis(
        "w",
        (150, 150),
        "F32",
        "bulk+spikes",
        "",
        values=np.concatenate([np.zeros(100), np.linspace(0.01, 2.0, 50)]),
        zeros=100,
        symmetric=True,
        edges=(0.0, 1.0),
    )
    bars = spectrum_figure(row).series[0]
    assert float(np.diff(bars.x) @ bars.y) == pytest.approx(50 / 150)


def test_bars_lie_under_the_law_and_points_on_the_features():
    figure = spectrum_figure(example("bulk+spikes"))
    bars, law, points = figure.series
    centres = (bars.x[1:] + bars.x[:-1]) / 2
    inside = (centres > law.x[0] + 0.1) & (centres < law.x[-1] - 0.1)
    fitted = np.interp(centres[inside], law.x, law.y)
    # The values are deterministic quantiles of the law: a bar differs by one value at most.
    one = 1 / (403 * np.diff(bars.x)[0])
    assert np.abs(bars.y[inside] - fitted).max() < 1.2 * one
    assert sorted(points.x) == pytest.approx([2.3, 2.7, 3.4])
    assert figure.markers[0].x == pytest.approx(1 + 0.5**0.5)
    assert (figure.x_scale, spectrum_figure(example("heavy-tailed")).x_scale) == ("linear", "log")


def test_a_feature_far_beyond_the_bulk_makes_the_axis_logarithmic():
    row = example("bulk+spikes")
    values = np.append(np.asarray(row.values)[:-1], 40.0)
    assert spectrum_figure(replace(row, values=values)).x_scale == "log"


@pytest.mark.parametrize(
    "values",
    [None, np.zeros(0), np.zeros(5), np.ones(40), np.array([1e-300, 1.0]), np.array([-2.0, 0, 3])],
)
def test_odd_spectra_are_drawn(values):
    for phase in ("random-like", "bulk-decay"):
        for symmetric in (False, True):
            row = MatrixDiagnosis("w", (40, 50), "F64", phase, "", values=values, zeros=0)
            picture = small_picture(spectrum_figure(replace(row, symmetric=symmetric)))
            ET.fromstring(picture)
            assert "nan" not in picture
            assert "inf" not in picture


def test_the_figure_is_drawn_by_the_other_back_ends_too():
    drawn = draw_matplotlib(spectrum_figure(full()))
    assert len(drawn.axes) == 1
    assert drawn.axes[0].get_xlabel() == "singular value"


def test_a_small_picture_escapes_its_texts():
    figure = replace(spectrum_figure(full()), title=HOSTILE)
    root = ET.fromstring(small_picture(figure))
    assert root.attrib["aria-label"] == HOSTILE


def test_layers_are_labelled_by_whole_numbers():
    assert ticks((-0.4, 1.4), "linear", whole=True) == pytest.approx([0.0, 1.0])
    assert 0.5 in ticks((-0.4, 1.4), "linear")


@pytest.mark.parametrize(
    "limits", [(0.0, 1.0), (-3.0, 8.0), (0.97, 1.01), (1e-12, 3e-12), (0, 9e8)]
)
def test_ticks_are_few_round_and_inside(limits):
    found = ticks(limits, "linear")
    assert 2 <= len(found) <= 6
    assert limits[0] <= found[0] < found[-1] <= limits[1]
    steps = np.diff(found)
    assert steps == pytest.approx(np.full(len(steps), steps[0]))
    for low, high in ((1e-8, 1e8), (0.5, 20.0), (2.0, 8.0)):
        found = ticks((low, high), "log")
        assert 1 <= len(found) <= 6
        assert all(low <= one <= high for one in found)


def page(found: Diagnosed, tmp_path) -> str:
    path = write_page(page_of(found, "solvable diagnose a b"), tmp_path / "report.html")
    assert is_report(path)
    return path.read_text()


def test_the_page_has_every_matrix_and_every_phase(tmp_path):
    text = page(everything(), tmp_path)
    assert text.count('<svg class="spectrum"') == 7
    plain = html.unescape(re.sub(r"<[^>]+>", "", text))
    for part in (
        "8 matrices and 1 vector",
        "layer.0.bulk+spikes",
        "a 3 x 4 matrix is too small.",
        "squared overlap",
        "It was noise.",
        "solvable diagnose a b",
        "before.npz",
        "3 rows, 40 dead rows",
        "Assumed layout: in rows.",
    ):
        assert part in plain
    for one in words.PHASES:
        assert words.sentence(one.means) in plain
    # Links lead to pictures that exist.
    anchors = set(re.findall(r'<figure id="(matrix-\d+)"', text))
    assert anchors == set(re.findall(r'href="#(matrix-\d+)"', text))
    assert "http" not in text.replace("http-equiv", "")


def test_names_bring_no_markup(tmp_path):
    rows = (replace(full(), name=HOSTILE, reason=HOSTILE), replace(refused(), name=HOSTILE))
    text = page(Diagnosed(HOSTILE, rows, n_arrays=2), tmp_path)
    assert "<script>document" not in text
    assert "<b>w" not in text
    assert text.count("</script>") == 1


def test_a_hundred_matrices_make_a_small_page(tmp_path):
    rows = tuple(
        replace(one, name=f"layer.{i}.{one.phase}") for i in range(17) for one in example_spectra()
    )
    text = page(Diagnosed("large.npz", rows, n_arrays=len(rows)), tmp_path)
    assert len(rows) > 100
    assert len(text) < 1_500_000


def test_nothing_fitted_and_an_interrupted_file_have_a_page(tmp_path):
    text = page(Diagnosed("a.npz", (refused(), vector()), n_arrays=5), tmp_path)
    assert "No matrix could be fitted." in text
    assert "interrupted after 2 of 5 arrays" in text
    assert "<svg" not in text


PROBE = """
<script>
window.addEventListener("load", function () {
  const table = document.querySelector("[aria-labelledby=rows] table");
  const names = () => Array.from(table.querySelectorAll("tbody th a"), (a) => a.textContent);
  const heads = Array.from(table.querySelectorAll("thead button"));
  const found = { before: names() };
  heads.find((one) => one.textContent === "features").click();
  found.features = names();
  heads[0].click();
  found.named = names();
  heads[0].click(); heads[0].click();
  found.after = names();
  found.page = document.documentElement.scrollWidth;
  found.window = window.innerWidth;
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(found);
  document.body.appendChild(out);
});
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.parametrize("width", [400, pytest.param(1200, marks=pytest.mark.slow)])
def test_the_table_sorts_in_a_browser(tmp_path, width):
    path = tmp_path / "report.html"
    path.write_text(page(everything(), tmp_path).replace("</body>", PROBE + "</body>"))
    dom, console = loaded(path, tmp_path / "profile", width)
    found = json.loads(html.unescape(re.search(r'<pre id="probe">(.*?)</pre>', dom).group(1)))
    assert found["before"] == found["after"]
    assert sorted(found["before"]) == sorted(found["features"]) == sorted(found["named"])
    # A browser compares letters before signs.
    assert (found["named"][0], found["named"][-1]) == (
        "layer.0.bleeding-out",
        "layer.0.structured",
    )
    assert found["features"][0] == "layer.0.bulk+spikes"
    assert found["page"] <= max(found["window"], width)
    assert console == []
