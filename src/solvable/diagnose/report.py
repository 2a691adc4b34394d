"""Output files of ``solvable diagnose``: all numbers as JSON, and a self-contained HTML page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from solvable.data.weights.stored import Weights
from solvable.diagnose import tables, view, words
from solvable.diagnose.attention import words as attention
from solvable.diagnose.change_factors import FOLDER, write_adapter
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import MatrixDiagnosis
from solvable.diagnose.figures import depth_figures, head_figure, overview, spectrum_figure
from solvable.errors import InvalidData
from solvable.pages.environment import GENERATOR, page_environment
from solvable.pages.result_directory import RESULT, ResultDirectory
from solvable.pages.small_pictures import (
    BOTTOM,
    HEIGHT,
    RIGHT,
    WIDTH,
    SmallCanvas,
    small_picture,
    ticks,
)
from solvable.paths import printable, whole_directory
from solvable.plots.canvas import Frame
from solvable.plots.csv_text import csv_text
from solvable.plots.drawing import draw
from solvable.plots.figure import Figure
from solvable.plots.files import write_atomically
from solvable.plots.layout import positions
from solvable.plots.numbers import format_number
from solvable.plots.palette import Style, style

if TYPE_CHECKING:
    from markupsafe import Markup

REPORT, ROWS = "report.html", "rows.csv"

FORMAT = "solvable-diagnose-1"  # file name that marks a directory as a result of this program

LEFT = 44  # room for the labels of the vertical axis

DIRECTORY = ResultDirectory(
    "diagnose", "weights", FORMAT, (REPORT, RESULT, ROWS, FOLDER)
)  # directory of the results


class DiagnoseFiles(NamedTuple):
    """Paths of the files that were written."""

    report: Path  # HTML page
    result: Path  # JSON file with the numbers
    rows: Path  # CSV file with a row per matrix

    def to_dict(self) -> dict[str, str]:
        """Return the paths as text."""
        return {name: str(path) for name, path in self._asdict().items()}


def reserved_directory(
    directory: Path | None,
    weights: Weights,
    initial: Weights | None,
    request: str,
    kind: ResultDirectory = DIRECTORY,
) -> tuple[Path, str]:
    """Return the directory of the results (default: named after the file) and the fingerprint."""
    total = hashlib.sha256(f"{kind.format} {request}".encode())
    for path in (*weights.files, *(initial.files if initial else ())):
        try:
            with path.open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
        except OSError as error:
            raise InvalidData(
                f"{path} cannot be read ({error.strerror or error}); pass a file of weights."
            ) from error
    fingerprint = total.hexdigest()
    directory = directory or kind.default(weights.name, fingerprint)
    kind.reserve(directory, fingerprint)
    return directory, fingerprint


def content_of(found: Diagnosed, *, command: str, fingerprint: str) -> dict[str, Any]:
    """Return all results as plain values for JSON."""
    return {
        "format": FORMAT,
        "command": command,
        "fingerprint": fingerprint,
        "file": found.name,
        "initial": found.initial or None,
        "seed": found.seed,
        "complete": found.complete,
        "quick": found.quick,
        "alarms": words.alarms(found),
        "seconds": found.seconds,
        "versions": dict(found.versions),
        "phases": {phase.name: len(rows) for phase, rows in words.counts(found)},
        "not_fitted": len(found.refused),
        "matrices": [row.to_dict() for row in found.matrices],
        "heads": [row.to_dict() for row in found.heads],
        "needed_ranks": None if found.needed is None else asdict(found.needed),
        "attention": attention.sentences(found),
        "integers": [row.name for row in found.integers],
        "notes": list(found.notes),
        "vectors": [{"name": row.name, "shape": list(row.shape)} for row in found.vectors],
    }


def write_files(
    found: Diagnosed,
    directory: Path,
    *,
    command: str,
    fingerprint: str,
    changed: tuple[Weights, Weights] | None = None,
) -> tuple[DiagnoseFiles, dict[str, Any]]:
    """Write the numbers and the page, and an adapter of changed weights; return files and numbers."""
    with whole_directory(directory) as draft:
        if changed:
            found = replace(found, notes=(*found.notes, *write_adapter(*changed, draft)))
        content = content_of(found, command=command, fingerprint=fingerprint)
        # The JSON file is written first: if the program is killed here, it marks the directory as ours.
        write_atomically(draft / RESULT, (json.dumps(content, allow_nan=False) + "\n").encode())
        write_atomically(draft / ROWS, table_text(view.rows(found)).encode())
        render_diagnose_report(found, draft / REPORT, command=command)
    return DiagnoseFiles(*(directory / name for name in (REPORT, RESULT, ROWS))), content


def table_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write records as CSV; names of arrays come from files and must not run as formulas."""
    return csv_text(rows[0] if rows else ["matrix"], (row.values() for row in rows))


@dataclass(frozen=True)
class Card:
    """Content of the page about one matrix: figure and sentences."""

    anchor: str  # anchor for links
    row: MatrixDiagnosis  # diagnosis and name of the matrix
    picture: str  # SVG of the spectrum
    facts: list[tuple[str, str]]  # names and values below the figure
    remarks: list[str]  # sentences that open on a click


def render_diagnose_report(found: Diagnosed, path: str | Path, *, command: str = "") -> Path:
    """Write the report of a diagnosis as one self-contained HTML file."""
    write_atomically(path, _html(found, command).encode())
    return Path(path)


def _html(found: Diagnosed, command: str) -> str:
    environment = page_environment("solvable.diagnose")
    environment.filters["broken"] = _broken
    depths = list(depth_figures(found))
    lines = [(line.label, line.colour or 0) for line in depths[0].series] if depths else []
    return environment.get_template("diagnose.html.jinja").render(
        found=found,
        words=words,
        generator=f"{GENERATOR} {version('solvable')}",
        tables=tables,
        columns=tables.columns_of(found),
        depths=[(figure, line_picture(figure, whole=True)) for figure in depths],
        depth_key={label: style(index, len(lines)).colour for label, index in lines},
        phases=words.counts(found),
        all_phases=words.PHASES,
        cards=[] if found.quick else matrix_cards(found),
        attention=attention,
        head_pictures=head_pictures(found),
        command=command,
    )


def _broken(name: str) -> Markup:
    """Name that wraps only after dots and underscores."""
    from markupsafe import Markup

    text = escape(printable(name))
    for mark in "._/":
        text = text.replace(mark, f"{mark}<wbr>")
    return Markup(text)


def matrix_cards(found: Diagnosed) -> list[Card]:
    """Return one card for each fitted matrix."""
    shown = []
    for number, row in enumerate(found.matrices):
        if row.fitted:
            figure = spectrum_figure(row)
            picture = small_picture(figure, label=f"Spectrum of {row.name}: {row.phase}")
            anchor = f"matrix-{number}"
            remarks = [*words.remarks(row), figure.caption]
            shown.append(Card(anchor, row, picture, tables.facts(row), remarks))
    return shown


def head_pictures(found: Diagnosed) -> list[tuple[str, str]]:
    """Captions and figures of the heads: an overview, then the heads with the largest directions."""
    if not any(row.fitted for row in found.heads):
        return []
    whole = overview(found.heads)
    pictures = [(whole.caption, small_picture(whole, label=whole.title, whole=True))]
    for row in attention.outstanding(found.heads)[:11]:
        figure = head_figure(row)
        label = f"Singular values of {row.name}: {row.phase}"
        pictures.append(
            (f"{row.name}: {row.phase}. {row.reason}", small_picture(figure, label=label))
        )
    return pictures


def line_picture(figure: Figure, *, whole: bool = False) -> str:
    """Draw a figure as a small SVG element without title and legend."""
    canvas = LineCanvas(whole=whole)
    draw(figure, canvas)
    return canvas.markup(figure.title)


class LineCanvas(SmallCanvas):
    """Canvas of :func:`line_picture`."""

    def begin(self, frame: Frame) -> None:
        """Draw both axes with their ticks."""
        super().begin(frame)
        # The axis of the base class begins at the left margin of pictures without a vertical axis.
        self.parts[0] = f'<path class="axis" d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
        for value in ticks(frame.y_limits, frame.y_scale):
            y = float(self._y(np.array([value]))[0])
            self.parts.append(f'<path class="grid-line" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            text = escape(format_number(value, 3))
            self.parts.append(f'<text class="up" x="{LEFT - 5}" y="{y + 3.5:.1f}">{text}</text>')

    def line(self, x: np.ndarray, y: np.ndarray, *, label: str, style: Style, dashed: bool) -> None:
        """Draw a curve whose name appears under the pointer."""
        self.parts.append(
            f'<path class="thin" stroke="{style.colour}" d="{self.path(x, y)}">'
            f"<title>{escape(printable(label))}</title></path>"
        )

    def _x(self, values: np.ndarray) -> np.ndarray:
        assert self.frame is not None
        values = np.asarray(values, dtype=float)
        if self.frame.x_scale == "log":
            values = np.where(values > 0, values, np.nan)
        place = positions(values, self.frame.x_scale, self.frame.x_limits)
        return LEFT + (WIDTH - LEFT - RIGHT) * np.asarray(place)
