"""Signs of overfitting and rank correlations with the held-out loss, next to WeightWatcher's.

    python benchmarks/checkpoint_networks.py DIRECTORY
    python benchmarks/checkpoint_signs.py DIRECTORY

Measures all checkpoints of the first script, writes ``histories.jsonl`` and ``weightwatcher.csv``
network by network into the same directory, and prints tables in Markdown: time, signs at the end
of training, and
Spearman correlations of each quantity with the held-out loss, over the checkpoints of each network and
over networks at the end, with bootstrap intervals.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import logging
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import checkpoint_networks as trained
import numpy as np
import torch
from safetensors.torch import load_file

from solvable.diagnose import quick_rows
from solvable.diagnose.checkpoints.changes import Change
from solvable.diagnose.checkpoints.fits import Fit
from solvable.diagnose.checkpoints.history import History
from solvable.diagnose.checkpoints.measuring import measure
from solvable.diagnose.checkpoints.series import open_series
from solvable.diagnose.checkpoints.verdicts import judged

OVERFIT = 1.1  # final held-out loss over the smallest one
HEAVY = 2.0  # exponent below which WeightWatcher calls a matrix over-trained
HISTORIES, WATCHED = "histories.jsonl", "weightwatcher.csv"
WATCHED_NAMES = (
    "network", "seed", "step", "seconds", "alpha", "over_trained", "layers", "traps", "quick_seconds",
)  # fmt: skip


def measure_all(directory: Path) -> None:
    """Measure the histories of the networks that are not there yet."""
    path = directory / HISTORIES
    done = {(row["run"]) for row in _lines(path)}
    for folder in sorted(one for one in directory.iterdir() if one.is_dir()):
        if folder.name in done or not (folder / "step-0.safetensors").exists():
            continue
        started = time.process_time()
        series = open_series(folder)
        found = measure(series, heads=None, quick=False, seed=0, workers=1)
        row = {
            "run": folder.name,
            "steps": [part.step for part in series.checkpoints],
            "seconds": time.process_time() - started,
            "fits": {k: [fit and asdict(fit) for fit in v] for k, v in found.fits.items()},
            "changes": {k: [asdict(one) for one in v] for k, v in found.changes.items()},
        }
        with path.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        print(f"{folder.name}: {row['seconds']:.0f} s", flush=True)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.open()] if path.exists() else []


def watch_all(directory: Path, *, shuffle: bool) -> None:
    """Analyse all checkpoints by WeightWatcher; the last of each network also with shuffled entries."""
    path = directory / WATCHED
    done = {(row["network"], row["seed"]) for row in _rows(path)}
    for run in trained.RUNS:
        for seed in range(10):
            place = trained.folder(directory, run.name, seed)
            if not place.is_dir() or (run.name, str(seed)) in done:
                continue
            steps = trained.saved_steps(run.steps)
            rows = [
                _watched(
                    run,
                    seed,
                    place / f"step-{step}.safetensors",
                    step,
                    shuffle and step == steps[-1],
                )
                for step in steps
            ]
            new = not path.exists()
            with path.open("a", newline="") as stream:
                writer = csv.writer(stream)
                if new:
                    writer.writerow(WATCHED_NAMES)
                writer.writerows(rows)
            print(run.name, seed, flush=True)


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open() as stream:
        return list(csv.DictReader(stream))


def _watched(run: trained.Run, seed: int, path: Path, step: int, shuffled: bool) -> list[Any]:
    import weightwatcher

    model = run.build()
    model.load_state_dict(load_file(path))
    with contextlib.redirect_stdout(io.StringIO()):
        watcher = weightwatcher.WeightWatcher(model=model)
        started = time.process_time()
        found = watcher.analyze()
        seconds = time.process_time() - started
        traps: Any = ""
        if shuffled:
            traps = int((watcher.analyze(randomize=True)["rand_num_spikes"] > 0).sum())
    started = time.process_time()
    list(quick_rows(path))
    quick = time.process_time() - started
    over = int((found["warning"] == "over-trained").sum())
    return [
        run.name, seed, step, seconds, float(found["alpha"].mean()), over, len(found), traps, quick,
    ]  # fmt: skip


def histories(row: dict[str, Any]) -> list[History]:
    """Return the judged histories of a network."""
    found = []
    for name, stored in row["fits"].items():
        fits = tuple(
            Fit(**{**fit, "shape": tuple(fit["shape"]), "overlaps": tuple(fit["overlaps"])})
            for fit in stored
        )
        changes = tuple(Change(**change) for change in row["changes"][name])
        found.append(judged(History(name, fits[-1].shape, fits, changes)))
    return found


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else np.nan


def _exponent(fit: Fit) -> float | None:
    return fit.exponent if fit.plausible is not False else None


QUANTITIES: dict[str, Callable[[list[Fit], list[Change]], float]] = {
    "tail exponent that passes its test": lambda fits, _: _mean([_exponent(fit) for fit in fits]),
    "number of features": lambda fits, _: _mean([fit.features for fit in fits]),
    "scale of the noise": lambda fits, _: _mean([fit.noise for fit in fits]),
    "norm": lambda fits, _: _mean([None if not fit.norm else np.log(fit.norm) for fit in fits]),
    "stable rank": lambda fits, _: _mean([fit.stable_rank for fit in fits]),
    "shuffled value over the edge": lambda _, changes: _mean([one.trap for one in changes]),
}


def curves(directory: Path) -> dict[str, dict[str, Any]]:
    """Return losses and quantities by checkpoint of each network."""
    losses: dict[str, list[trained.Measured]] = defaultdict(list)
    for row in trained.read(directory):
        losses[f"{row.network}-seed-{row.seed}"].append(row)
    alphas: dict[str, list[float]] = defaultdict(list)
    over: dict[str, tuple[int, int | None]] = {}
    for row in _rows(directory / WATCHED):
        key = f"{row['network']}-seed-{row['seed']}"
        alphas[key].append(float(row["alpha"]))
        # The rows of a network end with its last checkpoint.
        over[key] = int(row["over_trained"]), int(row["traps"]) if row["traps"] else None
    found = {}
    for row in _lines(directory / HISTORIES):
        key = row["run"]
        judged_rows = histories(row)
        loss = [one.loss for one in losses[key]]
        values = {
            name: [
                rule([h.fits[k] for h in judged_rows], [h.changes[k] for h in judged_rows])
                for k in range(len(loss))
            ]
            for name, rule in QUANTITIES.items()
        }
        values["WeightWatcher's alpha"] = alphas.get(key, [np.nan] * len(loss))
        found[key] = {
            "kind": losses[key][0].kind,
            "loss": loss,
            "values": values,
            "histories": judged_rows,
            "overfit": loss[-1] / min(loss),
            "watched": over.get(key, (0, None)),
        }
    return found


RULES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "trap, in a norm that grew (sign here)": lambda one: any(
        sign.kind == "trap" for h in one["histories"] for sign in h.signs
    ),
    "growth after the features settled (sign here)": lambda one: any(
        sign.kind == "growth" for h in one["histories"] for sign in h.signs
    ),
    "either sign": lambda one: any(h.signs for h in one["histories"]),
    "trap without a condition on the norm": lambda one: any(
        (h.changes[-1].trap or 0) > 1.1 for h in one["histories"]
    ),
    "tested tail exponent below 2": lambda one: any(
        (_exponent(h.fits[-1]) or np.inf) < HEAVY for h in one["histories"]
    ),
    "WeightWatcher: a layer over-trained (alpha < 2)": lambda one: one["watched"][0] > 0,
    "WeightWatcher: a correlation trap": lambda one: (one["watched"][1] or 0) > 0,
}


def signs_table(found: dict[str, dict[str, Any]], title: str) -> None:
    """Print hits and false alarms of each rule."""
    bad = [one for one in found.values() if one["overfit"] >= OVERFIT]
    good = [one for one in found.values() if one["overfit"] < OVERFIT]
    print(f"\n| {title} | hits of {len(bad)} that overfit | false alarms of {len(good)} others |")
    print("|---|---|---|")
    for name, rule in RULES.items():
        if "trap" in name and name.startswith("Weight"):
            known = [one["watched"][1] is not None for one in (*bad, *good)]
            if not all(known):
                print(f"| {name} | not analysed | not analysed |")
                continue
        print(f"| {name} | {sum(map(rule, bad))} | {sum(map(rule, good))} |")


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the rank correlation of the pairs that are known; NaN below four pairs."""
    from scipy.stats import spearmanr

    a, b = np.array(x, dtype=float), np.array(y, dtype=float)
    known = np.isfinite(a) & np.isfinite(b)
    if known.sum() < 4 or np.ptp(a[known]) <= 0 or np.ptp(b[known]) <= 0:
        return np.nan
    return float(spearmanr(a[known], b[known]).statistic)


def _interval(values: np.ndarray) -> str:
    low, high = np.nanquantile(values, [0.025, 0.975])
    return f"({low:+.2f} to {high:+.2f})"


def correlations_table(found: dict[str, dict[str, Any]]) -> None:
    """Print correlations over checkpoints (mean over networks) and over networks of each kind."""
    rng = np.random.default_rng(0)
    kinds = sorted({one["kind"] for one in found.values()})
    print(f"\n| quantity | over checkpoints | {' | '.join(f'over networks: {k}' for k in kinds)} |")
    print(f"|---|---|{'---|' * len(kinds)}")
    for name in (*QUANTITIES, "WeightWatcher's alpha"):
        # The untrained network, which every quantity recognises, is left out.
        each = [spearman(one["values"][name][1:], one["loss"][1:]) for one in found.values()]
        each = np.array([value for value in each if np.isfinite(value)])
        cells = ["–"]
        if len(each) > 3:
            draws = rng.choice(each, (2000, len(each))).mean(axis=1)
            cells = [f"{each.mean():+.2f} {_interval(draws)}, {len(each)} networks"]
        for kind in kinds:
            mine = [one for one in found.values() if one["kind"] == kind]
            x = np.array([one["values"][name][-1] for one in mine])
            y = np.array([one["loss"][-1] for one in mine])
            value = spearman(x, y)
            known = int(np.isfinite(x).sum())
            picks = rng.integers(0, len(mine), (400, len(mine)))
            draws = (
                np.array([spearman(x[p], y[p]) for p in picks]) if known > 3 else np.array([np.nan])
            )
            cells.append(
                "–" if not np.isfinite(value) else f"{value:+.2f} {_interval(draws)}, {known}"
            )
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    """Measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--no-shuffle", action="store_true", help="skip WeightWatcher's traps")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    watch_all(asked.directory, shuffle=not asked.no_shuffle)
    measure_all(asked.directory)
    found = curves(asked.directory)
    designed = {
        key: one
        for key, one in found.items()
        if key.endswith("seed-0") and one["kind"] != "transformer"
    }
    others = {key: one for key, one in found.items() if key not in designed}
    times = _rows(asked.directory / WATCHED)
    for name in ("seconds", "quick_seconds"):
        print(f"{name}: {np.median([float(row[name]) for row in times]):.3f} a checkpoint")
    full = [
        row["seconds"] / len(row["steps"])
        for row in _lines(asked.directory / HISTORIES)
        if "seconds" in row
    ]
    print(f"full fits: {np.median(full) if full else np.nan:.2f} s a checkpoint")
    print(f"{len(found)} networks")
    signs_table(designed, "networks on which the rules were chosen")
    for kind in ("MLP", "convolutional", "transformer"):
        signs_table(
            {k: v for k, v in others.items() if v["kind"] == kind}, f"other {kind} networks"
        )
    signs_table(others, "all other networks")
    correlations_table(found)


if __name__ == "__main__":
    main()
