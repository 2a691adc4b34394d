"""A probe as a system: learners and sample sizes are its grid, learned shares its metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import Field

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.curves import Axis
from solvable.frame.parameters import Parameters
from solvable.frame.points import Metrics, listed
from solvable.frame.system import System
from solvable.models.hierarchy.grammar.measure import draw_target
from solvable.models.hierarchy.labels.target import target_of
from solvable.probes.learners import BUILT_IN, Task, make_learner, predictions
from solvable.probes.observed import fit_observed, gradient_inside
from solvable.probes.references import KERNEL, SPECTRAL, reference_shares
from solvable.probes.shares import Shares, learned_shares, level_shares
from solvable.probes.targets import FAMILIES, LABELS, STRINGS, make_subject, settings_of

ROWS, STRING_ROWS = 20_000, 4_000
"""Fresh rows on which shares are measured, and fresh strings."""


class ProbeParameters(Parameters):
    """Parameters of one fit: a learner, a target and a number of training rows."""

    added = frozenset({"steps", "refit"})

    learner: str = "mlp"
    """Learner: a name of the probe, or module:name."""
    target: str = "sequential-recovery"
    """Target: a system of the library, or module:name."""
    settings: str = "{}"
    """Parameters of the target, as a JSON object."""
    samples: int = Field(1000, ge=8, le=10**7)
    """Number n of training rows."""
    steps: str = "[]"
    """Training steps at which shares are measured as well, as a JSON list."""
    refit: bool = False
    """Train a second time from another start on the same rows, and compare the rests."""


@dataclass(frozen=True)
class _Trial:
    """Rows to train on, and how a fitted learner is measured."""

    X: np.ndarray
    y: np.ndarray
    task: Task
    look: Callable[[Any], Metrics]  # fitted learner to shares and errors
    fresh: np.ndarray
    directions: np.ndarray | None = None  # of the hidden subspace
    outside: Callable[[Any], np.ndarray] | None = None  # fitted learner to its rest on fresh rows


def measure(parameters: ProbeParameters, rng: np.random.Generator) -> Metrics:
    """Train one learner on one draw of the target, and measure what it has learned."""
    seed, first = int(rng.integers(2**31)), int(rng.integers(2**31))
    draw = {STRINGS: _strings, LABELS: _labels}.get(parameters.target, _features)
    trial = draw(parameters, seed, first)
    learner = make_learner(parameters.learner, trial.task)
    steps: list[int] = json.loads(parameters.steps)
    in_time: dict[int, list[float | None]] = {}

    def observe(step: int) -> None:
        in_time[step] = listed(trial.look(learner)["learned_share"])  # type: ignore[arg-type]

    fit_observed(learner, trial.X, trial.y, steps, observe)
    found = trial.look(learner)
    if steps:
        unknown = [None] * len(found["learned_share"])  # type: ignore[arg-type]
        found["share_in_time"] = [one for step in steps for one in in_time.get(step, unknown)]
    if trial.directions is not None:
        inside, chance = gradient_inside(
            lambda X: predictions(learner, X, trial.task), trial.fresh, trial.directions
        )
        found |= {"gradient_inside": inside, "gradient_chance": chance}
    if parameters.refit and trial.outside is not None:
        other = make_learner(parameters.learner, replace(trial.task, seed=trial.task.seed + 1))
        other.fit(trial.X, trial.y)
        # <nu_a, nu_b> / (|nu_a| |nu_b|): what the rows, not the start, decide   (probe 15)
        pair = np.array([trial.outside(learner), trial.outside(other)])
        product = pair @ pair.T
        found["common_rest"] = float(product[0, 1] / np.sqrt(product[0, 0] * product[1, 1]))
    return found


def _features(parameters: ProbeParameters, seed: int, first: int) -> _Trial:
    """Measure shares of the feature functions of a target."""
    subject = make_subject(parameters.target, parameters.settings, seed)
    X, y = subject.sample(parameters.samples, random_stream(first, "training rows"))
    fresh, _ = subject.sample(ROWS, random_stream(first, "fresh rows"))
    names, parts = subject.parts(fresh)
    degree = 1
    if parameters.target in FAMILIES:
        given: Any = settings_of(parameters.target, parameters.settings)
        degree = 0 if parameters.target.endswith("index") else getattr(given, "degree", 1)
        if getattr(given, "inputs", "hermite") == "gaussian":
            degree = 1
    count = sum(name.startswith("feature") for name in names) or len(names)
    task = Task("numbers", X.shape[1], 1, count, degree, 2, 0, first)
    clean = subject.clean(fresh)

    def shares(learner: Any) -> Shares:
        return learned_shares(parts, clean, predictions(learner, fresh, task))

    def look(learner: Any) -> Metrics:
        found = shares(learner)
        return {
            "learned_share": listed(found.share),
            "standard_error": listed(found.standard_error),
            "energy": listed(found.energy),
            "features_error": found.features_error,
            "together_share": found.together,
            "together_energy": found.together_energy,
            "rest": found.rest,
            "excess_rest": found.excess,
            "mean_error": found.mean_error,
            "error": found.error,
            "condition": found.condition,
        }

    directions = getattr(subject, "directions", None)
    return _Trial(X, y, task, look, fresh, directions, lambda learner: shares(learner).outside)


def _strings(parameters: ProbeParameters, seed: int, first: int) -> _Trial:
    """Measure how far the synonyms of each level of a grammar are merged."""
    given: Any = settings_of(STRINGS, parameters.settings)
    target = draw_target(given, np.random.default_rng(seed))
    X, y = target.sample(parameters.samples, random_stream(first, "training rows"))
    fresh, labels = target.sample(STRING_ROWS, random_stream(first, "fresh rows"))
    swaps = [
        target.swap_synonyms(fresh, level, random_stream(first, "synonyms", level))
        for level in range(1, target.depth + 1)
    ]
    symbols = parameters.learner in BUILT_IN and BUILT_IN[parameters.learner].strings
    width = target.n_leaves * target.vocabulary

    def read(strings: np.ndarray) -> np.ndarray:
        if symbols:
            return strings
        one_hot = np.eye(target.vocabulary, dtype=np.float32)[strings]
        return np.asarray(one_hot.reshape(len(strings), width))

    task = Task(
        "classes", width, target.n_classes, 1, 0, target.branching, target.vocabulary, first
    )

    def look(learner: Any) -> Metrics:
        found = level_shares(lambda S: predictions(learner, read(S), task), fresh, labels, swaps)
        return {
            "learned_share": [found.label_share, *listed(found.invariance)],
            "standard_error": [None] * (1 + found.invariance.size),
            "energy": [None] * (1 + found.invariance.size),
            "brier": found.brier,
            "label_error": found.label_error,
            "synonym_error": found.synonym_error,
            "error": found.error,
        }

    return _Trial(read(X), y, task, look, fresh)


def _labels(parameters: ProbeParameters, seed: int, first: int) -> _Trial:
    """Measure the share of each label in its own output, averaged over labels of as many inputs."""
    given: Any = settings_of(LABELS, parameters.settings)
    if given.gate != "product":
        raise InvalidParameter("gate is 'majority'; allowed for a probe: gate=product.")
    target = target_of(given)
    X, Y = target.sample(parameters.samples, random_stream(first, "training rows"))
    fresh, wanted = target.sample(ROWS, random_stream(first, "fresh rows"))
    task = Task("labels", X.shape[1], Y.shape[1], 1, 0, 2, 0, first)
    sizes = label_sizes(target)
    groups = [sizes == size for size in np.unique(sizes)]

    def look(learner: Any) -> Metrics:
        found = predictions(learner, fresh, task)
        # s_k = E[f_k chi_k]; the error of a label is (1 - s_k)² + |nu_k|²
        shares = np.mean(found * wanted, axis=0)
        rest = np.mean((found - wanted) ** 2, axis=0) - (1 - shares) ** 2
        scatter = np.std(found * wanted, axis=0) / np.sqrt(len(fresh))
        return {
            "learned_share": [float(shares[group].mean()) for group in groups],
            "standard_error": [
                float(np.sqrt(np.sum(scatter[group] ** 2)) / group.sum()) for group in groups
            ],
            "energy": [float(group.mean()) for group in groups],
            "rest": float(rest.mean()),
            "error": float(np.mean((found - wanted) ** 2)),
        }

    return _Trial(X, Y, task, look, fresh)


def label_sizes(target: Any) -> np.ndarray:
    """Return the number of inputs of which each label is the product."""
    return np.array(
        [int(bits).bit_count() for level in target.inputs_of[1:] for bits in level], dtype=int
    )


def feature_names(target: str, settings: str) -> tuple[str, ...]:
    """Return the names of the rows of a probe."""
    if target == STRINGS:
        given: Any = settings_of(target, settings)
        return ("label", *(f"merged below level {level}" for level in range(given.depth)))
    if target == LABELS:
        sizes = np.unique(label_sizes(target_of(settings_of(target, settings))))  # type: ignore[arg-type]
        return tuple(
            f"products of {size} inputs" if size > 1 else "single inputs" for size in sizes
        )
    subject = make_subject(target, settings, 0)
    X, _ = subject.sample(64, random_stream(0, "names"))
    return tuple(subject.parts(X)[0])


def predict(parameters: ProbeParameters) -> Metrics:
    """Predict the shares of the spectral learner and of the kernel; others have no theory."""
    reference = {"spectral": SPECTRAL, "rbf-kernel": KERNEL}.get(parameters.learner)
    if reference is None:
        raise InvalidParameter("there is no theory of this learner; the references are drawn.")
    names = feature_names(parameters.target, parameters.settings)
    sizes = np.array([float(parameters.samples)])
    found = reference_shares(reference, parameters.target, parameters.settings, names, sizes)
    if found is None:
        raise InvalidParameter(f"there is no theory of {parameters.learner} on this target.")
    return {"learned_share": listed(found[0])}


class _ProbeSystem(System):
    """The probe as a system; a command of its own repeats its runs."""

    def repeat_command(self, grid: Mapping[str, Sequence[Any]], replicates: int, seed: int) -> str:
        """Return the command that repeats a probe."""
        words = ["solvable probe", *map(str, grid["learner"]), f"--target {grid['target'][0]}"]
        settings = json.loads(str(grid["settings"][0]))
        if settings:
            words += ["--set", *(f"{name}={value}" for name, value in settings.items())]
        words += ["--samples", *map(str, grid["samples"]), f"--seeds {replicates}"]
        steps = json.loads(str(grid["steps"][0]))
        words += ["--steps", *map(str, steps)] if steps else []
        words += ["--refit"] if grid["refit"][0] else []
        return " ".join(words + ([f"--seed {seed}"] if seed else []))


system = _ProbeSystem(
    name="probe",
    title="Which hidden features does a learner find, and at which number of samples?",
    version="1",
    parameters=ProbeParameters,
    measure=measure,
    predict=predict,
    axis=Axis(
        "samples",
        "training rows n",
        words={"learner": "{}", "settings": "", "steps": "", "refit": ""},
    ),
    panels="solvable.probes.view:PANELS",
    tensors=True,
    summary="Learned share of each hidden feature of a known target, for each learner and number of "
    "training rows, next to predictions of theory: 0 for nothing, 1 for the feature itself. "
    "docs/probe.md explains the numbers.",
)
