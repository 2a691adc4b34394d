"""Figures of quadratic networks: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import inf

import numpy as np

from solvable.frame.points import Point
from solvable.models.quadratic.checks import model_of, setting_of
from solvable.models.quadratic.curves import Curve, curves_of, families
from solvable.models.quadratic.predict import (
    feature_groups,
    group_errors,
    group_names,
    group_strengths,
    phase_of_spectrum,
    scaling_phase,
    state_of,
)
from solvable.plots.figure import Figure, Marker, Series

SPECTRA = 3
"""Spectra that are drawn of one curve, at most; of several curves one each."""

SHOWN_GROUPS = 7
"""Groups of features that one figure holds, at most."""

BINS = (20, 60)
"""Fewest and most bins of a spectrum; one for every three eigenvalues between."""

X_LABEL = "samples per squared dimension n/d²"

MOST_CURVES = 5
"""Curves that one figure holds, at most."""

CONTROL, TRAINED, LIMIT, LIMIT_OF_MANY = 1, 2, 3, 5
"""Colours of the control, the trained network and a limit, of one curve and of up to five."""


def draw_figures(points: Sequence[Point]) -> list[Figure]:
    """Errors, rank, features and spectra of every target of the study."""
    figures: list[Figure] = []
    groups = families(curves_of(points))
    for group in groups:
        title = _title(group[0], several=len(groups) > 1)
        for start in range(0, len(group), MOST_CURVES):
            part = group[start : start + MOST_CURVES]
            ending = title[1] + (f"-{start // MOST_CURVES + 1}" if start else "")
            figures += [
                _error(part, title[0], ending),
                _train(part, title[0], ending),
                _rank(part, title[0], ending),
                *_self_estimate(part, title[0], ending),
            ]
        for curve in group:
            figures += _of_one(curve, title, several=len(group) > 1)
    return figures


NAMES = {"marchenko-pastur": "Marchenko-Pastur", "power-law": "power law"}


def _title(curve: Curve, *, several: bool) -> tuple[str, str]:
    """Words and file-name ending of a family of curves."""
    one = curve.first
    words = f"{NAMES[one.target]}, d = {one.dimension}"
    if one.noise == 0:
        words += ", no noise"
    ending = f"-{one.target}-{one.dimension}-noise-{one.noise:g}" if several else ""
    return words, ending


def _labels(curves: Sequence[Curve]) -> list[str]:
    """What tells curves of one family apart; the family itself is in the title."""
    told = [set(one.name.split(", ")) for one in curves]
    shared = set.intersection(*told)
    return [
        ", ".join(word for word in one.name.split(", ") if word not in shared) for one in curves
    ]


def _pairs(curves: Sequence[Curve], name: str, state: str) -> list[Series]:
    """Limit, its first order in 1/d, and measurements, one colour for each curve."""
    series: list[Series] = []
    for colour, (curve, own) in enumerate(zip(curves, _labels(curves), strict=True)):
        label = f"{own}, " if own else ""
        series.append(
            Series(f"{label}theory, d → ∞", curve.ratios, curve.line(state), "line", colour=colour)
        )
        if len(curves) == 1:
            series.append(
                Series(
                    f"first order in 1/d, d = {curve.first.dimension}",
                    curve.ratios,
                    curve.corrected(state),
                    "dashed",
                    colour=colour,
                )
            )
        series += curve.measured(f"{label}minimiser", name, colour)
        alone = len(curves) == 1
        control = CONTROL if alone else colour
        series += curve.measured(f"{label}Gaussian control", name, control, "goe")
        if name == "matrix_error":
            trained = TRAINED if alone else colour
            series += curve.measured(f"{label}trained network", "network_matrix_error", trained)
    return series


def _limit(curves: Sequence[Curve]) -> int:
    return LIMIT if len(curves) == 1 else LIMIT_OF_MANY


def _markers(curves: Sequence[Curve]) -> list[Marker]:
    """Thresholds inside the range of the figure."""
    curve = curves[0]
    prediction = curve.points[0].prediction
    low, high = curve.ratios[0], curve.ratios[-1]
    name = "interpolation_ratio" if curve.first.noise > 0 else "perfect_recovery_ratio"
    label = "interpolation" if curve.first.noise > 0 else "perfect recovery"
    place = prediction[name]
    if not isinstance(place, float) or not low < place < high:
        return []
    return [Marker(place, label)]


def _error(curves: Sequence[Curve], title: str, ending: str) -> Figure:
    series = _pairs(curves, "matrix_error", "matrix_error")
    grid, best = curves[0].bayes()
    best = np.where(best > 0, best, np.nan)
    series.append(Series("Bayes-optimal", grid, best, "dashed", colour=_limit(curves)))
    return Figure(
        f"error{ending}",
        f"Test error ({title})",
        X_LABEL,
        "error R = |S − S*|² / d",
        series,
        "Half of the excess risk in the labels. Line: the limit of many dimensions; dashed: with its "
        f"first order in 1/d; points: the minimiser of n samples. {_phases_told(curves)}",
        [*_markers(curves), *_phases(curves)],
        x_scale="log",
        y_scale="log",
        y_range=_log_range(series),
    )


def _names(curve: Curve) -> list[str]:
    """Phase at each ratio: of the scaling law if there is one, else of the spectrum."""
    setting = curve.first
    if setting.target == "power-law":
        values = setting.model_dump() | {"samples": 0}
        found = [
            scaling_phase(type(setting)(**values | {"sample_ratio": float(one)}))
            for one in curve.ratios
        ]
        return [one.phase.value for one in found if one is not None]
    return [phase_of_spectrum(one, setting.dimension) for one in curve.states]


def _phases(curves: Sequence[Curve]) -> list[Marker]:
    """Where one phase follows another, for a curve that is alone."""
    if len(curves) > 1:
        return []
    changes = phase_changes(_names(curves[0]), curves[0].ratios)
    return [Marker(place, f"{name} from here") for place, name in changes]


def phase_changes(names: list[str], ratios: np.ndarray) -> list[tuple[float, str]]:
    """Places between neighbouring ratios where the name changes, with the new name."""
    return [
        (float(np.sqrt(ratios[k - 1] * ratios[k])), names[k])
        for k in range(1, len(names))
        if names[k] != names[k - 1]
    ]


def _phases_told(curves: Sequence[Curve]) -> str:
    """Sentence with the phases of each curve, in order."""
    told = []
    for curve, own in zip(curves, _labels(curves), strict=True):
        order = ", ".join(name for name, _ in groupby(_names(curve)))
        told.append(f"{own}: {order}" if own else order)
    return f"Phases: {'; '.join(told)}."


_TRAIN_CAPTION = (
    "Below the interpolation threshold the labels are fitted, noise and all; beyond it the error "
    "rises to the variance of the noise."
)


def _train(curves: Sequence[Curve], title: str, ending: str) -> Figure:
    series = _pairs(curves, "train_error", "train_error")
    noise = curves[0].first.noise
    if noise > 0:
        ends = [float(curves[0].ratios[0]), float(curves[0].ratios[-1])]
        series.append(Series("label noise", ends, [noise, noise], "dashed", colour=_limit(curves)))
    return Figure(
        f"train-error{ending}",
        f"Training error ({title})",
        X_LABEL,
        "mean squared residual",
        series,
        _TRAIN_CAPTION
        if noise > 0
        else "Of order of the squared regularisation at any sample size.",
        _markers(curves),
        x_scale="log",
        y_scale="log",
        y_range=_log_range(series),
    )


def _rank(curves: Sequence[Curve], title: str, ending: str) -> Figure:
    return Figure(
        f"rank{ending}",
        f"Learned directions ({title})",
        X_LABEL,
        "rank of S over d",
        _pairs(curves, "rank_fraction", "rank_fraction"),
        "A network as wide as this rank reaches the minimum; wider ones change nothing.",
        _markers(curves),
        x_scale="log",
        y_range=(0.0, 1.02),
    )


def _self_estimate(curves: Sequence[Curve], title: str, ending: str) -> list[Figure]:
    """Test error and what the training data say of it, in label space."""
    series: list[Series] = []
    for colour, (curve, own) in enumerate(zip(curves, _labels(curves), strict=True)):
        label = f"{own}, " if own else ""
        line = curve.line("test_error")
        series.append(Series(f"{label}theory", curve.ratios, line, "line", colour=2 * colour))
        series += curve.measured(f"{label}true", "test_error", 2 * colour)
        series += curve.measured(f"{label}from training data", "gcv_test_error", 2 * colour + 1)
    ceiling = 2 * max(float(np.max(one.y)) for one in series if one.kind == "line")
    return [
        Figure(
            f"self-estimate{ending}",
            f"Test error from training data ({title})",
            X_LABEL,
            "mean squared error on fresh noisy labels",
            series,
            "Spectral generalised cross-validation: the training error over the squared share of "
            "degrees of freedom that are left. It needs some to be left, far enough above or "
            "regularised enough below the interpolation threshold.",
            _markers(curves),
            x_scale="log",
            y_scale="log",
            y_range=(_log_range(series)[0], ceiling),
        )
    ]


def _log_range(series: Sequence[Series]) -> tuple[float, float]:
    """Limits that show every curve, and points no more than a factor 3 beyond them."""
    lines = np.concatenate([np.asarray(one.y, dtype=float) for one in series if one.kind == "line"])
    seen = np.concatenate(
        [np.asarray(one.y, dtype=float) for one in series if one.kind != "dashed"]
    )
    lines, seen = lines[lines > 0], seen[seen > 0]
    low = max(float(np.min(seen)), float(lines.min()) / 3)
    high = min(float(np.max(seen)), float(lines.max()) * 3)
    return 0.7 * low, 1.4 * high


def _of_one(curve: Curve, title: tuple[str, str], *, several: bool) -> list[Figure]:
    """Features and spectra of one curve."""
    label = _told(curve) if several else ""
    words = f"{title[0]}, {label}" if label else title[0]
    ending = title[1] + "".join(f"-{word}" for word in label.replace(",", "").split())
    points = curve.of("network") or curve.points
    chosen = [points[len(points) // 2]] if several else _spread(points)
    return [
        _features(curve, words, ending),
        *(_spectrum(one, words, ending) for one in chosen),
    ]


def _told(curve: Curve) -> str:
    skipped = ("marchenko-pastur", "power-law", "d = ")
    return ", ".join(one for one in curve.name.split(", ") if not one.startswith(skipped))


def _spread(points: Sequence[Point]) -> list[Point]:
    """A few points: an early one, one past the middle, the last."""
    count = len(points)
    places = sorted({count // 5, count // 2, count - 1})
    return [points[place] for place in places[-SPECTRA:]]


def _features(curve: Curve, words: str, ending: str) -> Figure:
    setting = curve.first
    ends, names = feature_groups(setting), group_names(setting)
    strengths = group_strengths(curve.states[0], ends)
    kept = [k for k in range(len(ends)) if strengths[k] > 0]
    shown = kept[:: max(1, -(-len(kept) // SHOWN_GROUPS))]
    predicted = np.array([group_errors(one, ends) for one in curve.states])
    points = curve.of("network") or curve.points
    places = [setting_of(one)[0] for one in points]
    values = np.array([one.mean("feature_errors") for one in points])
    errors = np.array([one.standard_error("feature_errors") for one in points])
    series: list[Series] = []
    for colour, k in enumerate(shown):
        unit = strengths[k]
        series.append(
            Series(f"{names[k]}, theory", curve.ratios, predicted[:, k] / unit, colour=colour)
        )
        series.append(
            Series(names[k], places, values[:, k] / unit, "points", errors[:, k] / unit, colour)
        )
    return Figure(
        f"features{ending}",
        f"Error of features ({words})",
        X_LABEL,
        "error along a feature / its strength squared",
        series,
        "1 is a feature that is not learned. Strong features are learned first; noise that is fitted "
        "costs weak ones more than ignoring them would. Times strength squared and averaged over "
        "all d directions these are the error R.",
        _markers([curve]),
        x_scale="log",
        y_scale="log",
        y_range=_log_range(series),
    )


def _spectrum(point: Point, words: str, ending: str) -> Figure:
    state = state_of(model_of(point))
    ratio, d = setting_of(point)
    b, edge = state.threshold, 2 * state.effective_noise
    values = point.values("eigenvalues")
    learned = values[values > 0]
    law = state.law
    top = max(float(law.edges[-1, 1]), b + float(learned.max(initial=0.0)))
    bottom = min(float(law.edges[0, 0]), b)
    count = int(np.clip(learned.size / 3, *BINS))
    bins = np.linspace(b, max(top, b + 1e-9), count + 1)
    counts, _ = np.histogram(learned + b, bins=bins)
    width = bins[1] - bins[0]
    x = np.unique(np.concatenate([np.linspace(bottom, top, 600), law.x]))
    x = x[:: max(1, x.size // 1500)]
    density = law.density(x) * d * width
    series = [
        Series("learned", bins, counts / len(values), "histogram", colour=0),
        Series("law, learned part", x, np.where(x >= b, density, np.nan), "line", colour=1),
        Series("law, hidden part", x, np.where(x < b, density, np.nan), "dashed", colour=1),
    ]
    markers = [Marker(b, "threshold b", 2), Marker(edge, "edge of noise 2δ", 3)]
    rank = float(point.mean("rank_fraction"))
    phase = str(point.prediction.get("spectral_phase", ""))
    return Figure(
        f"spectrum{ending}-ratio-{ratio:.3g}",
        f"Spectrum at n/d² = {ratio:.3g} ({words})",
        "eigenvalue of S, plus the threshold b",
        "eigenvalues per replicate",
        series,
        f"{f'Phase: {phase}. ' if phase else ''}{rank:.0%} of the directions are learned. "
        "Eigenvalues of target plus noise are cut at b and shifted by it; what lies left of b is "
        "hidden in the fit. What lies beyond 2δ stands out of the noise.",
        [one for one in markers if bottom < one.x < inf],
        y_range=(
            0.0,
            1.1 * max(float((counts / len(values)).max(initial=0.1)), _bulk(density, x, b)),
        ),
    )


def _bulk(density: np.ndarray, x: np.ndarray, b: float) -> float:
    """Height of the law's learned part, without the spikes of isolated eigenvalues."""
    seen = density[(x >= b) & (density > 0)]
    return float(np.quantile(seen, 0.95)) if seen.size else 0.1
