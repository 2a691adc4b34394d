"""Redraw the figures of README and docs with the present program: ``python docs/figures.py [NAME ...]``.

A figure of a system is drawn by a run and identified by the beginning of its title. Other figures are
drawn by other commands. ``--list`` prints the run or command of each figure.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import solvable

DIRECTORY = Path(__file__).parent / "figures"


class Drawing(NamedTuple):
    """Run of a system, and the beginning of the title of one of its figures."""

    system: str
    title: str
    preset: str = "quick"
    settings: dict[str, Any] = {}  # noqa: RUF012 (a named tuple; nothing changes it)
    seeds: int | None = None


FIRST = "Features appear one after another"
DRAWN = {
    "overlap.svg": Drawing("sequential-recovery", FIRST),
    "error.svg": Drawing("sequential-recovery", "The error falls as features are recovered"),
    "spectrum.svg": Drawing(
        "sequential-recovery", "Features leave the bulk of the spectrum at n = 26"
    ),
    "quadratic-network-error.svg": Drawing("quadratic-network", "Test error (marchenko-pastur)"),
    "quadratic-network-recovery.svg": Drawing("quadratic-network", "Test error", "recovery"),
    "quadratic-network-spectrum.svg": Drawing(
        "quadratic-network", "Spectrum at n/d² = 2 (power-law)"
    ),
    "attention-indexed-error.svg": Drawing(
        "attention-indexed", "Error of the estimated weights (softmax)"
    ),
    "bilinear-error.svg": Drawing(
        "bilinear-sequence", "Error of the weight matrix (r/d = 0.2, noise 0)", "paper"
    ),
    "boltzmann-overlap.svg": Drawing(
        "boltzmann-machine", "Overlap of a Boltzmann machine with the spikes (decay 2, gradient)"
    ),
    "curse-of-detail.svg": Drawing("curse-of-detail", "Alignment of networks with the target"),
    "curse-of-detail-energy.svg": Drawing("curse-of-detail", "Energy of learning the target"),
    "curse-of-detail-law.svg": Drawing(
        "curse-of-detail", "Distribution of the overlaps of neurons"
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
    "hierarchical-risk.svg": Drawing("hierarchical-multi-index", "Excess risk against samples"),
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
    "label-hierarchy-error.svg": Drawing(
        "label-hierarchy", "Error of each level of labels (blocks 4)"
    ),
    "late-interaction-labels.svg": Drawing("late-interaction", "Labels differ", "labels"),
    "late-interaction-ndcg.svg": Drawing("late-interaction", "MaxSim training passes", "pipelines"),
    "late-interaction-pooled.svg": Drawing("late-interaction", "Pooled vectors see", "lengths"),
    "late-interaction-spectrum.svg": Drawing(
        "late-interaction", "Spectrum of the kernel through the phases (pipeline c)", "pipelines"
    ),
    "sensing-error.svg": Drawing("matrix-sensing", "Error of the nuclear norm"),
    "separable-overlap.svg": Drawing(
        "separable-multi-index", "Overlap of the single directions of a sum (cosmix)"
    ),
    "separable-thresholds.svg": Drawing("separable-multi-index", "Thresholds of single directions"),
    "single-head-error.svg": Drawing("single-head-attention", "Error of the learned matrix"),
    "single-head-spectrum.svg": Drawing("single-head-attention", "Learned spectrum at n/d² = 0.6"),
}
"""Figures drawn by runs of systems, with the beginnings of their titles."""

ELSEWHERE = {
    "activations-label.svg": "python examples/noise_sensitivity.py",
    "activations-noise.svg": "python examples/noise_sensitivity.py",
    "diagnose-heads.svg": "python examples/diagnose_transformer.py",
    "diagnose-phases.svg": "python examples/diagnose_phases.py",
    "learn-curve.svg": "solvable learn digits",
    "learn-filters.svg": "solvable learn digits",
    "learn-strengths.svg": "solvable learn digits",
    "paper-overlap.svg": "result.figure('overlap', width=3.4), preset quick of sequential-recovery",
    "random-settings.svg": "python benchmarks/random_settings_page.py",
    "scale-phases.svg": "solvable scale --layers erf:n1,erf:n2 --target he3 --phase n1 n2 "
    "--range n1=1:7,n2=1:7",
    "scale-real-directions.svg": "python benchmarks/scale_real.py",
    "scale-real-sheets.svg": "python benchmarks/scale_real.py",
}
"""Figures drawn by other commands."""


def draw(names: list[str], home: Path) -> None:
    """Run the systems of the named figures, each run once, and copy the figures."""
    runs: dict[str, Any] = {}
    for name in names:
        asked = DRAWN[name]
        key = f"{asked.system}-{asked.preset}-{asked.settings}-{asked.seeds}"
        if key not in runs:
            runs[key] = solvable.run(
                asked.system,
                preset=asked.preset,
                seeds=asked.seeds,
                output=home / f"run-{len(runs)}",
                **asked.settings,
            )
        result = runs[key]
        found = [figure.name for figure in result.drawn if figure.title.startswith(asked.title)]
        if not found:
            titles = "; ".join(figure.title for figure in result.drawn)
            raise SystemExit(f"{name}: no figure is titled {asked.title!r}...; there are {titles}")
        shutil.copyfile(result.directory / "figures" / f"{found[0]}.svg", DIRECTORY / name)
        print(f"{name}: {asked.system}, preset {asked.preset}, figure {found[0]}", flush=True)


def main(words: list[str]) -> None:
    """Draw the named figures, or all of them."""
    if words == ["--list"]:
        for name, asked in DRAWN.items():
            print(f"{name}: solvable run {asked.system} --preset {asked.preset}")
        for name, command in ELSEWHERE.items():
            print(f"{name}: {command}")
        return
    unknown = sorted(set(words) - DRAWN.keys())
    if unknown:
        raise SystemExit(
            f"not drawn by this script: {', '.join(unknown)}; `--list` prints all names"
        )
    with tempfile.TemporaryDirectory() as home:
        draw(words or list(DRAWN), Path(home))


if __name__ == "__main__":
    main(sys.argv[1:])
