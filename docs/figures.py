"""Redraw the figures of README and docs with the present program: ``python docs/figures.py``.

    python docs/figures.py [NAME ...]                 measure again, store the records, draw
    python docs/figures.py --from-records [NAME ...]  draw from stored records, without a measurement
    python docs/figures.py --check [NAME ...]         compare stored pictures with the present program
    python docs/figures.py --list                     the run or command of each figure

Without names all figures are meant. A figure of a system is identified by its run and the beginning
of its title.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from figure_records import Drawing, measured, redrawn, wanted
from figure_scripts import SCRIPTS
from picture_data import Picture, differences, read_picture, write_picture

DIRECTORY = Path(__file__).parent / "figures"

FIRST = "Features appear one after another"
DRAWN = {
    "overlap.svg": Drawing("sequential-recovery", FIRST, predictions=49),
    "paper-overlap.svg": Drawing("sequential-recovery", FIRST, predictions=49, width=3.4),
    "error.svg": Drawing("sequential-recovery", "The error falls as features are recovered"),
    "spectrum.svg": Drawing(
        "sequential-recovery", "Features leave the bulk of the spectrum at n = 49"
    ),
    "spectra.svg": Drawing("sequential-recovery", "Whole spectra"),
    "quadratic-network-error.svg": Drawing("quadratic-network", "Test error (marchenko-pastur)"),
    "quadratic-network-recovery.svg": Drawing("quadratic-network", "Test error", "recovery"),
    "quadratic-network-spectrum.svg": Drawing(
        "quadratic-network", "Spectrum at n/d² = 1.6 (power-law)"
    ),
    "attention-indexed-error.svg": Drawing(
        "attention-indexed", "Error of the estimated weights (softmax)"
    ),
    "bilinear-error.svg": Drawing(
        "bilinear-sequence", "Error of the weight matrix (r/d = 0.2, noise 0)", "paper"
    ),
    "boltzmann-overlap.svg": Drawing(
        "boltzmann-machine",
        "Overlap of a Boltzmann machine with the spikes (decay 2, gradient, converged)",
    ),
    "curse-of-detail.svg": Drawing("curse-of-detail", "Alignment of networks with the target"),
    "curse-of-detail-energy.svg": Drawing("curse-of-detail", "Energy of learning the target"),
    "curse-of-detail-law.svg": Drawing(
        "curse-of-detail", "Distribution of the overlaps of neurons"
    ),
    "curse-of-detail-kernels.svg": Drawing(
        "curse-of-detail", "Strength of powers of an amplified feature", "kernels"
    ),
    "curse-of-detail-norms.svg": Drawing(
        "curse-of-detail", "Norm of powers of an amplified feature", "kernels"
    ),
    "curse-of-detail-parity.svg": Drawing(
        "curse-of-detail", "Neurons that carry a parity", "parity"
    ),
    "curse-of-detail-width.svg": Drawing("curse-of-detail", "Specialised neurons", "width"),
    "emergence-captured.svg": Drawing(
        "emergence-in-sgd", "Captured share of each feature against time"
    ),
    "emergence-frontier.svg": Drawing(
        "emergence-in-sgd", "Compute buys loss along the best width", "width"
    ),
    "emergence-loss.svg": Drawing("emergence-in-sgd", "Loss of online SGD against time"),
    "hierarchical-overlap.svg": Drawing(
        "hierarchical-multi-index", "Overlap of each feature against samples"
    ),
    "hierarchical-best-error.svg": Drawing(
        "hierarchical-multi-index", "Error of the spectral estimator and smallest possible error"
    ),
    "hierarchical-risk.svg": Drawing(
        # spikes are drawn in single precision
        "hierarchical-multi-index",
        "Excess risk against samples",
        predictions=25,
        accuracy=1e-4,
    ),
    "hierarchical-error.svg": Drawing(
        "hierarchical-multi-index", "The error of the subspace falls step by step", "scaling"
    ),
    "random-hierarchy-accuracy.svg": Drawing("random-hierarchy", "Accuracy of learners"),
    "random-hierarchy-correlations.svg": Drawing(
        "random-hierarchy", "Correlations between the last symbol", "language"
    ),
    "random-hierarchy-denoising.svg": Drawing(
        "random-hierarchy", "Belief in the true symbol", "language"
    ),
    "random-hierarchy-blanks.svg": Drawing(
        "random-hierarchy",
        "Blanks multiply the strings that a learner needs (locally-connected)",
        "sparse",
    ),
    "label-hierarchy-majority.svg": Drawing(
        "label-hierarchy", "Error of each level of labels (blocks 2)", "majority"
    ),
    "label-hierarchy-error.svg": Drawing(
        "label-hierarchy", "Error of each level of labels (blocks 4)"
    ),
    "late-interaction-labels.svg": Drawing("late-interaction", "Labels differ", "labels", panel=1),
    "late-interaction-ndcg.svg": Drawing("late-interaction", "MaxSim training passes", "pipelines"),
    "late-interaction-pooled.svg": Drawing("late-interaction", "Pooled vectors see", "lengths"),
    "late-interaction-spectrum.svg": Drawing(
        "late-interaction", "Spectrum of the kernel through the phases (pipeline c)", "pipelines"
    ),
    "sensing-error.svg": Drawing("matrix-sensing", "Error of the nuclear norm"),
    "separable-overlap.svg": Drawing(
        "separable-multi-index",
        "Overlap of the single directions of a sum (cosmix)",
        predictions=25,
    ),
    "separable-thresholds.svg": Drawing("separable-multi-index", "Thresholds of single directions"),
    "single-head-error.svg": Drawing(
        # the first order in 1/d is computed from samples in single precision
        "single-head-attention",
        "Error of the learned matrix",
        accuracy=1e-4,
    ),
    "single-head-spectrum.svg": Drawing("single-head-attention", "Learned spectrum at n/d² = 0.6"),
    "compositional-overlap.svg": Drawing(
        "compositional-target",
        "Rotated features appear one after another, d = 40",
        predictions=7,
        panel=2,
    ),
    "diagonal-network.svg": Drawing("diagonal-network", "Features are learned one by one"),
    "kernel-staircase.svg": Drawing("kernel-staircase", "Learned share of each degree"),
    "narrow-network.svg": Drawing("narrow-network", "Error against width"),
    "neural-lofi.svg": Drawing("neural-lofi", "The first filter finds the direction"),
    "neural-lofi-images.svg": Drawing("neural-lofi-images", "The error is lowest at some tens"),
    "quadratic-flow.svg": Drawing("quadratic-flow", "Features are learned one after another"),
    "single-index.svg": Drawing("single-index", "Overlap of each estimator with the direction"),
    "single-index-gap.svg": Drawing("single-index", "Message passing from two starts (cos(2.7*z))"),
}
"""Figures drawn by runs of systems, with the beginnings of their titles."""


ELSEWHERE = {name: script.command for name, script in SCRIPTS.items()}
"""Figures drawn by other functions and commands."""


def pictures(names: list[str], *, measure: bool) -> dict[str, Picture]:
    """Draw the named figures; each run of a system is measured or read once."""
    drawn: dict[str, Picture] = {}
    for group in wanted({name: DRAWN[name] for name in names if name in DRAWN}):
        drawn |= measured(group) if measure else redrawn(group)
    return drawn | {name: SCRIPTS[name].draw(measure) for name in names if name in SCRIPTS}


def check(names: list[str], *, structure: bool = True) -> dict[str, list[str]]:
    """Return the differences of each stored picture from the present program."""
    found = {}
    for name, picture in pictures(names, measure=False).items():
        accuracy = DRAWN[name].accuracy if name in DRAWN else SCRIPTS[name].accuracy
        stored = read_picture(DIRECTORY / name)
        found[name] = differences(stored, picture, accuracy=accuracy, structure=structure)
    return {name: lines for name, lines in found.items() if lines}


def groups_of(names: list[str]) -> list[list[str]]:
    """Group figures that share a run or a command."""
    groups: dict[object, list[str]] = {}
    for name in names:
        asked = DRAWN.get(name)
        key = ELSEWHERE[name] if asked is None else (asked.system, asked.preset)
        groups.setdefault(key, []).append(name)
    return list(groups.values())


def _each(function: Callable[[list[str]], Any], names: list[str]) -> list[Any]:
    """Call a function with each group of figures, in parallel processes."""
    import joblib

    call = joblib.delayed(function)
    with warnings.catch_warnings():
        # After a task, joblib replaces a worker whose memory has grown by 300 MB. Stored theory grows so,
        # and nothing is lost.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs")
        return list(joblib.Parallel(n_jobs=-1)(call(group) for group in groups_of(names)))


def _draw_group(names: list[str]) -> None:
    start = time.process_time()
    for name, picture in pictures(names, measure=False).items():
        write_picture(DIRECTORY / name, picture)
    print(f"{', '.join(names)}: {time.process_time() - start:.1f} s", flush=True)


def main(words: list[str]) -> int:
    """Draw, check or list figures; 1 if a check fails."""
    if words == ["--list"]:
        for name, asked in DRAWN.items():
            print(f"{name}: solvable run {asked.system} --preset {asked.preset}")
        for name, command in ELSEWHERE.items():
            print(f"{name}: {command}")
        return 0
    modes = [word for word in words if word.startswith("-")]
    names = [word for word in words if word not in modes]
    if modes not in ([], ["--check"], ["--from-records"]):
        raise SystemExit(
            f"{' '.join(modes)}: allowed: --list, --check or --from-records, one of them"
        )
    unknown = sorted(set(names) - DRAWN.keys() - ELSEWHERE.keys())
    if unknown:
        raise SystemExit(
            f"not drawn by this script: {', '.join(unknown)}; `--list` prints all names"
        )
    names, start = names or [*DRAWN, *ELSEWHERE], time.perf_counter()
    if modes == ["--check"]:
        found = {}
        for part in _each(check, names):
            found |= part
        for name, lines in found.items():
            print(f"{name}: {'; '.join(lines[:5])}")
        print(f"{len(names) - len(found)} of {len(names)} pictures agree")
        return int(bool(found))
    if modes:
        _each(_draw_group, names)
    else:
        for name, picture in pictures(names, measure=True).items():
            write_picture(DIRECTORY / name, picture)
            print(name, flush=True)
    print(f"{len(names)} figures drawn in {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
