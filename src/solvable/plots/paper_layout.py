"""Layout of a figure of a paper by the measured sizes of its texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from solvable.plots.canvas import Frame, LegendEntry
from solvable.plots.flags import arrange
from solvable.plots.matplotlib_backend import legend_handle

GAP = 3.0  # between texts, in points
MOST_ROWS = 4  # of labels above the axes


class Flag(NamedTuple):
    """Label of a vertical line."""

    x: float
    label: str
    colour: str


class Layout:
    """Layout of one figure; all lengths are in points."""

    def __init__(
        self,
        figure: Any,
        axes: Any,
        kept: tuple[Frame, list[Flag], list[LegendEntry]],
        width: float,
        title: str,
        remarks: str,
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self.figure, self.axes = figure, axes
        self.frame, self.flags, self.entries = kept
        self.figure.set_dpi(72)  # so that pixels are points
        self.renderer = FigureCanvasAgg(self.figure).get_renderer()
        self.width = 72 * width
        self.title, self.remarks = title, remarks
        from matplotlib import rcParams
        from matplotlib.font_manager import FontProperties

        self.label, self.small = (
            FontProperties(size=rcParams[name]).get_size_in_points()
            for name in ("axes.labelsize", "legend.fontsize")
        )
        self._sizes: dict[tuple[str, float, str], float] = {}

    def place(self) -> None:
        """Measure and place everything; the height of the figure follows."""
        tall = min(0.68 * (self.width - 40), 250)
        margins: tuple[float, ...] = (40.0, 8.0, 24.0)
        left, right, bottom = margins
        for turn in range(8):  # ticks depend on the size of the axes, and margins on the ticks
            across = self.width - left - right
            title_left, title_bottom = self._titles(across, tall)
            self._resize(left, bottom, across, tall, tall + bottom + GAP)
            self._ticks(across, tall)
            (ticks_left, ticks_bottom, beyond) = self._overhang()
            found = (
                ticks_left + title_left + GAP,
                max(1.1 * beyond + 3, 5.0),
                ticks_bottom + title_bottom + GAP,
            )
            if turn and all(new <= old + 0.01 for new, old in zip(found, margins, strict=True)):
                break
            # From the second turn on margins only grow: ticks may come and go with the size.
            margins = tuple(map(max, found, margins)) if turn else found
            left, right, bottom = margins
        across = self.width - left - right
        rows, note = self._flag_rows(across, right)
        note = f"{note} {self.remarks}".strip()
        legend = self._legend_inside(left, bottom, across, tall)
        below = self._below(note, own_legend=not legend)
        top = max(rows * 10.0 + 4, 7.0)  # half of a label of a tick at the end
        top += self._put_title()
        height = below + bottom + tall + top
        self._resize(left, below + bottom, across, tall, height)
        self._ticks(across, tall)
        self._put_titles(left, below, bottom, across, tall)
        self._keep_marks()
        self._put_flags()

    def _keep_marks(self) -> None:
        """Remove texts inside the axes that overlap others or the edge; the legend names them too."""
        kept: list[Any] = []
        axes = self.axes.get_window_extent(self.renderer)
        for text in list(self.axes.texts):
            text.set_fontsize(self.small)
            box = text.get_window_extent(self.renderer)
            inside = axes.x0 < box.x0 and box.x1 < axes.x1 and axes.y0 < box.y0 and box.y1 < axes.y1
            if inside and not any(box.overlaps(other) for other in kept):
                kept.append(box)
            else:
                text.remove()

    def _resize(self, left: float, low: float, across: float, tall: float, height: float) -> None:
        self.figure.set_size_inches(self.width / 72, height / 72)
        self.axes.set_position(
            (left / self.width, low / height, across / self.width, tall / height)
        )

    def _size(self, text: str, size: float, weight: str = "normal") -> tuple[float, float]:
        """Return width and height of a text."""
        lines = text.split("\n")
        widths = [self._line_width(line, size, weight) for line in lines if line]
        return max(widths, default=0.0), 1.25 * size * len(lines)

    def _line_width(self, line: str, size: float, weight: str) -> float:
        """Return the width of a line, measured once."""
        from matplotlib.font_manager import FontProperties

        key = (line, size, weight)
        if key not in self._sizes:
            font = FontProperties(size=size, weight=weight)
            found = self.renderer.get_text_width_height_descent(line, font, ismath=False)
            self._sizes[key] = found[0]
        return self._sizes[key]

    def _wrapped(self, text: str, room: float, size: float, weight: str = "normal") -> str:
        """Break a text between words, and long words anywhere."""
        room *= 0.96  # widths depend a little on the resolution
        lines = [""]
        for word in text.split():
            joined = f"{lines[-1]} {word}".strip()
            if self._size(joined, size, weight)[0] <= room:
                lines[-1] = joined
                continue
            if lines[-1]:
                lines.append("")
            for letter in word:
                if lines[-1] and self._size(lines[-1] + letter, size, weight)[0] > room:
                    lines.append("")
                lines[-1] += letter
        return "\n".join(lines)

    def _titles(self, across: float, tall: float) -> tuple[float, float]:
        """Wrap the titles of the axes; return the room that they take at the left and below."""
        self.x_title = self._wrapped(self.frame.x_label, across, self.label)
        self.y_title = self._wrapped(self.frame.y_label, tall, self.label)
        return tuple(
            self._size(t, self.label)[1] + GAP if t else 0.0 for t in (self.y_title, self.x_title)
        )  # type: ignore[return-value]

    def _put_title(self) -> float:
        """Write the title at the upper edge; return its height."""
        from matplotlib.transforms import ScaledTranslation

        if not self.title:
            return 0.0
        text = self._wrapped(self.title, self.width - 2 * GAP, 9.0, "bold")
        drawn = self.figure.text(
            0, 1, text, fontsize=9.0, fontweight="bold", va="top", linespacing=1.1, parse_math=False
        )
        down = ScaledTranslation(GAP / 72, -GAP / 72, self.figure.dpi_scale_trans)
        drawn.set_transform(self.figure.transFigure + down)
        return self._size(text, 9.0, "bold")[1] + 2 * GAP

    def _put_titles(
        self, left: float, below: float, bottom: float, across: float, tall: float
    ) -> None:
        height = below + bottom + tall
        total = 72 * self.figure.get_size_inches()[1]
        for text, x, y, look in (
            (self.x_title, left + across / 2, below + GAP / 2, {"ha": "center", "va": "bottom"}),
            (self.y_title, GAP / 2, height - tall / 2,
             {"ha": "left", "va": "center", "rotation": 90, "rotation_mode": "default"}),
        ):  # fmt: skip
            if text:
                self.figure.text(
                    x / self.width, y / total, text, fontsize=self.label, linespacing=1.1,
                    parse_math=False, **look,
                )  # fmt: skip

    def _overhang(self) -> tuple[float, float, float]:
        """Return how far the labels of ticks reach beyond the axes: left, below and right."""
        box = self.axes.get_window_extent(self.renderer)
        parts = [axis.get_tightbbox(self.renderer) for axis in (self.axes.xaxis, self.axes.yaxis)]
        parts = [part for part in parts if part is not None]
        parts += [bar.get_tightbbox(self.renderer) for bar in self.axes.child_axes]  # colour bars
        low = min([part.y0 for part in parts], default=box.y0)
        start = min([part.x0 for part in parts], default=box.x0)
        end = max([part.x1 for part in parts], default=box.x1)
        return box.x0 - start, box.y0 - low, end - box.x1

    def _ticks(self, across: float, tall: float) -> None:
        """Thin out the labels of ticks until none touches another."""
        from matplotlib.ticker import MaxNLocator

        for axis, scale, length, along in (
            (self.axes.xaxis, self.frame.x_scale, across, 0),
            (self.axes.yaxis, self.frame.y_scale, tall, 1),
        ):
            if scale == "linear":
                most = max(2, int(length / (38 if along == 0 else 24)))
                axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
            low, high = sorted(axis.get_view_interval())
            labels = [
                label
                for label in axis.get_ticklabels(which="both")
                if label.get_text() and low <= label.get_position()[along] <= high
            ]
            shown: list[Any] = []
            for label in sorted(labels, key=lambda one: one.get_position()[along]):
                box = label.get_window_extent(self.renderer)
                place = (box.x0, box.x1) if along == 0 else (box.y0, box.y1)
                if shown and place[0] < shown[-1] + 2:
                    self._hide(axis, label)
                    continue
                shown.append(place[1])

    def _hide(self, axis: Any, label: Any) -> None:
        """Leave one tick without its label."""
        from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

        low, high = sorted(axis.get_view_interval())
        ticks = [
            (place, text.get_text())
            for place, text in zip(
                axis.get_majorticklocs(), axis.get_majorticklabels(), strict=False
            )
            if low <= place <= high
        ]
        along = 0 if axis is self.axes.xaxis else 1
        gone = label.get_position()[along]
        axis.set_major_locator(FixedLocator([place for place, _ in ticks]))
        axis.set_major_formatter(
            FixedFormatter(["" if np.isclose(place, gone) else text for place, text in ticks])
        )
        axis.set_minor_formatter(NullFormatter())

    def _flag_rows(self, across: float, right: float) -> tuple[int, str]:
        """Place the labels of vertical lines; return their rows, and a note on those without."""
        flags, note = self.flags, ""
        limits = self.frame.x_limits
        self.placed: list[tuple[Flag, int, bool]] = []
        if not flags:
            return 0, ""
        values = np.array([flag.x for flag in flags]), np.array(limits)
        if self.frame.x_scale == "log":
            values = np.log(values[0]), np.log(values[1])
        at = (values[0] - values[1][0]) / (values[1][1] - values[1][0]) * across
        widths = [self._size(flag.label, self.small)[0] + 6 for flag in flags]
        # at the left stand the labels of the vertical axis
        ends = -2.0, across + right - 1
        found = arrange(at.tolist(), widths, ends)
        if found is None or max(flag.row for flag in found) >= MOST_ROWS:
            names = list(dict.fromkeys(flag.label for flag in flags))
            return 0, f"Vertical lines, from the left: {', '.join(names)}."
        self.placed = [(flag, one.row, one.left) for flag, one in zip(flags, found, strict=True)]
        return 1 + max(one.row for one in found), note

    def _put_flags(self) -> None:
        for flag, row, left in self.placed:
            high = 10.0 * row + 10.0
            self.axes.annotate(
                "", (flag.x, 1.0), (0.0, high), xycoords=("data", "axes fraction"),
                textcoords="offset points", annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": flag.colour, "linewidth": 0.6,
                            "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip
            self.axes.annotate(
                flag.label, (flag.x, 1.0), (-2.0 if left else 2.0, high - 8.0),
                xycoords=("data", "axes fraction"), textcoords="offset points",
                ha="right" if left else "left", fontsize=self.small, color=flag.colour,
                annotation_clip=False, parse_math=False,
            )  # fmt: skip

    def _handles(self, room: float) -> list[Any]:
        handles = [legend_handle(entry) for entry in self.entries]
        for handle in handles:
            handle.set_label(self._wrapped(handle.get_label(), room, self.small))
            if hasattr(handle, "set_markersize"):
                handle.set(linewidth=1.2, markersize=0.75 * handle.get_markersize())
        return handles

    def _make_legend(self, handles: list[Any], owner: Any, **where: Any) -> Any:
        legend = owner.legend(
            handles=handles, borderaxespad=0.2, handlelength=2.2, handletextpad=0.5,
            labelspacing=0.3, columnspacing=1.0, borderpad=0.2, **where,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
        return legend

    def _legend_inside(self, left: float, bottom: float, across: float, tall: float) -> bool:
        """Place the legend where it covers no data; return False if there is no such place."""
        if not self.entries or any(entry.patch and entry.hatched for entry in self.entries):
            return not self.entries
        self._resize(left, bottom, across, tall, tall + bottom + 8)
        taken = self._taken()
        if taken is None:
            return False
        legend = self._make_legend(self._handles(0.45 * across), self.axes)
        for place in ("upper right", "upper left", "lower right", "lower left", "center right",
                      "center left"):  # fmt: skip
            legend.set_loc(place)
            box = legend.get_window_extent(self.renderer).padded(2)
            if box.width >= 0.65 * across or box.height >= 0.6 * tall:
                break
            inside = (taken > (box.x0, box.y0)) & (taken < (box.x1, box.y1))
            if not inside.all(axis=1).any():
                return True
        legend.remove()
        return False

    def _taken(self) -> np.ndarray | None:
        """Return points that the drawing covers, closely spaced; None if it fills the axes."""
        from matplotlib.patches import Polygon

        if any(isinstance(patch, Polygon) for patch in self.axes.patches) or self.axes.texts:
            return None
        parts = []
        paths = [(line.get_path(), line.get_transform()) for line in self.axes.lines]
        for stairs in self.axes.patches:
            paths.append((stairs.get_path(), stairs.get_transform()))
        for bars in self.axes.collections:
            paths += [(path, bars.get_transform()) for path in bars.get_paths()]
        for path, transform in paths:
            corners = transform.transform(path.vertices)
            parts.append(_dense(corners))
        found = np.concatenate([np.empty((0, 2)), *parts])
        for stairs in self.axes.patches:  # bars are filled down to the axis
            corners = stairs.get_transform().transform(stairs.get_path().vertices)
            base = self.axes.get_window_extent(self.renderer).y0
            for share in np.linspace(0, 1, 40):
                level = corners.copy()
                level[:, 1] = base + share * (level[:, 1] - base)
                found = np.concatenate([found, _dense(level)])
        return found[np.isfinite(found).all(axis=1)]

    def _below(self, note: str, *, own_legend: bool) -> float:
        """Place the legend and the sentence on labels under the axes; return their height."""
        from matplotlib.transforms import IdentityTransform, ScaledTranslation

        room = self.width - 2 * GAP
        used = 0.0
        if note:
            text = self._wrapped(note, room, self.small)
            drawn = self.figure.text(0, 0, text, fontsize=self.small, va="bottom", parse_math=False)
            drawn.set_linespacing(1.1)
            drawn.set_transform(ScaledTranslation(GAP / 72, GAP / 72, self.figure.dpi_scale_trans))
            used += drawn.get_window_extent(self.renderer).height + 2 * GAP
        if not own_legend:
            return used
        for columns in range(min(len(self.entries), 4), 0, -1):
            handles = self._handles(0.98 * room - 36 if columns == 1 else 1e6)
            legend = self._make_legend(
                handles, self.figure, ncols=columns, loc="lower left",
                bbox_to_anchor=self._anchor(used), bbox_transform=IdentityTransform(),
            )  # fmt: skip
            box = legend.get_window_extent(self.renderer)
            if box.width <= 0.96 * room or columns == 1:
                return float(used + 1.04 * box.height + GAP)  # pixels make texts a little taller
            legend.remove()
        return used

    def _anchor(self, up: float) -> Any:
        """Return a point above the lower left corner, which stays there if the figure grows."""
        from matplotlib.transforms import Bbox, TransformedBbox

        return TransformedBbox(
            Bbox.from_bounds(GAP / 72, up / 72, 0, 0), self.figure.dpi_scale_trans
        )


def _dense(corners: np.ndarray) -> np.ndarray:
    """Return points on a polygon, at most 2 points of length apart (at most 400 a segment)."""
    if len(corners) < 2:
        return corners
    steps = np.nan_to_num(np.abs(np.diff(corners, axis=0)).max(axis=1), posinf=0.0)
    counts = np.clip(steps / 2, 1, 400).astype(int)
    parts: Sequence[np.ndarray] = [
        a + (b - a) * np.linspace(0, 1, count + 1)[:, None]
        for a, b, count in zip(corners[:-1], corners[1:], counts, strict=True)
    ]
    return np.concatenate(parts)
