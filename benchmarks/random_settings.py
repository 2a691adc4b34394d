"""Settings drawn at random from all that a system allows, each measured against its theory.

    python benchmarks/random_settings.py --seed 20261125 > docs/random-settings.md

Prints one table of every setting drawn, whatever it shows. Parameters are independent. Choices are
uniform, links among sixteen; numbers are uniform where the upper limit is less than ten times the
lower, else uniform in their logarithm. Where a range starts at zero, the logarithm starts at one
for whole numbers and at a hundredth of the default for others; zero itself, where allowed, is drawn
half of the time for whole numbers (it means "never" or "by default") and a quarter for others.
Whole numbers without an upper limit end at 10^9. What the system refuses is drawn again, and so is
the published learner of sequential recovery, for which theory refuses, and, for the sake of time
alone, what exceeds

* --work products of samples (test samples included) and features (d^2 for quadratic networks),
* 2,000 inputs or features, and 2,000 samples with a kernel.

Each setting then has --seconds of CPU time for --replicates replicates and its prediction, which is
that at its own dimension where the system tells it beside a limit (``finite_size_``), and its reason
where it makes none.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Annotated, Any, Literal, get_args, get_origin

import numpy as np
from gemm import one_thread
from pydantic import ValidationError
from pydantic.fields import FieldInfo

import solvable
from solvable.arrays import random_stream
from solvable.frame import registry
from solvable.plots.numbers import format_number, format_with_error

MOST_COLUMNS = MOST_KERNEL_ROWS = 2_000
ENTRIES = 3
"""Entries of a list metric that the table shows."""

LINKS = (
    "he2", "abs", "he4", "he3", "cosmix", "relu", "gelu", "tanh", "sin(z)", "cos(2*z)",
    "z**2*exp(-z**2/2)", "step(abs(z) - 1)", "he2 + 0.5*he4", "max(z, 0.3*z)", "z + 0.4*he2", "sign",
)  # fmt: skip
"""What is drawn where a parameter is a link function, by name or formula."""


def draw_value(field: FieldInfo, rng: np.random.Generator) -> Any:
    """One value of a parameter, from its whole range."""
    if field.annotation is bool:
        return bool(rng.integers(2))
    if field.annotation is str:
        return LINKS[rng.integers(len(LINKS))]
    if get_origin(field.annotation) is Literal:
        choices = get_args(field.annotation)
        return choices[rng.integers(len(choices))]
    if any(get_origin(kind) is Annotated for kind in get_args(field.annotation)):
        # A number, or a list of them
        one = FieldInfo.from_annotation(get_args(field.annotation)[0])
        one.default = field.default
        values = [draw_value(one, rng) for _ in range(rng.integers(1, 4))]
        return values[0] if len(values) == 1 else tuple(values)
    bounds: dict[str, float] = {}
    for limit in field.metadata:
        bounds |= {
            name: getattr(limit, name) for name in ("ge", "gt", "le") if hasattr(limit, name)
        }
    low, high = bounds.get("ge", bounds.get("gt", 0)), bounds.get("le", 1e9)
    whole = field.annotation is int
    if "ge" in bounds and low == 0 and rng.random() < (0.5 if whole else 0.25):
        return 0
    low = low or (1 if whole else (field.default or high / 100) / 100)
    if high < 10 * low:
        value = rng.uniform(low, high)
    else:
        value = math.exp(rng.uniform(math.log(low), math.log(high + whole)))
    return int(min(value, high)) if whole else float(f"{value:.3g}")


def too_dear(setting: Any, work: float) -> bool:
    """Whether a setting exceeds the limits that the docstring of this file states."""

    def size(*names: str) -> int:
        return next((getattr(setting, name) for name in names if hasattr(setting, name)), 0)

    columns, rows = size("n_features_total", "n_inputs", "dimension"), size("n_samples", "samples")
    quadratic = ".quadratic." in type(setting).__module__
    ratio = getattr(setting, "sample_ratio", 0)
    rows = rows or round(ratio * columns ** (2 if quadratic else 1))
    products = (rows + size("test_samples")) * (columns**2 if quadratic else columns)
    if hasattr(setting, "shape"):  # sensors of matrices that are not square
        products = rows * math.prod(setting.shape)
    kernel = min(rows, size("kernel_samples"))
    lifted = rows if getattr(setting, "lift", "none") != "none" else 0
    return products > work or columns > MOST_COLUMNS or max(kernel, lifted) > MOST_KERNEL_ROWS


def published(setting: Any) -> bool:
    """Whether the learner is the published one, for which theory makes no prediction."""
    names = getattr(setting, "selection", "edges"), getattr(setting, "solver", "lanczos")
    return names != ("edges", "lanczos")


def draw_settings(system: Any, count: int, work: float, seed: int) -> Iterator[tuple[Any, Counter]]:
    """Settings of a system, each with how many draws were refused, and by whom, before it."""
    rng = random_stream("random-settings", seed, system.name)
    for _ in range(count):
        again: Counter = Counter()
        while True:
            fields = system.parameters.model_fields.items()
            try:
                setting = system.parameters(**{name: draw_value(f, rng) for name, f in fields})
            except ValidationError:
                again["refused"] += 1
                continue
            if published(setting):
                again["without theory"] += 1
            elif too_dear(setting, work):
                again["too dear"] += 1
            else:
                break
        yield setting, again


def study(system: str, setting: dict[str, Any], replicates: int) -> tuple[list[str], list[Any]]:
    """Lines of measured and predicted numbers, and the verdicts."""
    # A list that is one value is a grid of one.
    grid = {name: [v] if isinstance(v, tuple) else v for name, v in setting.items()}
    found = solvable.run(system, preset=None, seeds=replicates, workers=1, **grid)
    if not found.points:
        raise RuntimeError(found.failures[0].error)
    point, lines = found.points[0], []
    for name in point.prediction:
        known = [metrics[name] for metrics in point.metrics if metrics.get(name) is not None]
        at_size = f"finite_size_{name}"
        source = at_size if at_size in point.prediction else name
        if len(known) < replicates or any(isinstance(value, str) for value in known):
            continue
        means, errors = point.mean(name).reshape(-1), point.standard_error(name).reshape(-1)
        # Predicted and measured lists may differ in length, such as neighbours of found features.
        entries = zip(means, errors, point.predicted(source).reshape(-1), strict=False)
        for rank, (mean, error, predicted) in enumerate(list(entries)[:ENTRIES]):
            if np.isfinite([mean, predicted]).all():
                label = name if means.size == 1 else f"{name} {rank + 1}"
                measured = format_with_error(mean, error)
                lines.append(f"{label}: {measured} against {format_number(predicted, 3)}")
    refused = [f"not predicted: {point.refusal}"] if point.refusal else []
    failures = [f"failed: {failure.error}" for failure in found.failures]
    return lines + refused + failures, found.verdicts


def child(answer: Connection, seconds: int, *arguments: Any) -> None:
    """Run a study under a limit of CPU time; what it raises is its answer."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    try:
        answer.send(study(*arguments))
    except Exception as error:  # whatever a setting provokes belongs into the table
        answer.send(f"{type(error).__name__}: {str(error).splitlines()[0]}")


def measure(seconds: int, *arguments: Any) -> tuple[list[str], list[Any]] | str:
    """The study in a process of its own; a sentence where it came to nothing."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(sender, seconds, *arguments))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return f"no result in {seconds} s of CPU time"
    finally:
        process.join()


def told(verdict: Any) -> str:
    """A claim that was testable, with its numbers where it failed."""
    if verdict.status == "holds":
        return f"{verdict.claim} holds"
    if verdict.status == "error":
        return f"**{verdict.claim} raised**: {verdict.reason}"
    sign = {"equal": "=", "at least": "≥", "at most": "≤"}[verdict.kind]
    numbers = [format_number(v, 3) for v in (verdict.measured, verdict.expected, verdict.tolerance)]
    return "**{} fails**: {} {} {} ± {}".format(verdict.claim, numbers[0], sign, *numbers[1:])


def main() -> None:
    """Draw, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--settings",
        type=int,
        help="of each system; default: 10 of sequential-recovery, 5 of others",
    )
    parser.add_argument("--replicates", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=20, help="CPU time of each setting")
    parser.add_argument("--work", type=float, default=1e8, help="largest samples times features")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("systems", nargs="*", help="default: all that are installed")
    asked = parser.parse_args()
    names = asked.systems or [listing.name for listing in registry.available()]
    counts: Counter = Counter()
    start = time.monotonic()
    print("| setting | measured against predicted | claims that could be tested |\n|---|---|---|")
    for name in names:
        wanted = asked.settings or (10 if name == "sequential-recovery" else 5)
        drawn = draw_settings(registry.load(name), wanted, asked.work, asked.seed)
        for number, (setting, again) in enumerate(drawn, 1):
            values = dict(setting)
            words = " ".join(f"{key}={value}" for key, value in values.items())
            redrawn = "".join(f"; {count} {why}" for why, count in again.items())
            outcome = measure(asked.seconds, name, values, asked.replicates)
            lines, verdicts = ([outcome], []) if isinstance(outcome, str) else outcome
            claims = [told(verdict) for verdict in verdicts if verdict.status != "not testable"]
            counts.update(verdict.status for verdict in verdicts)
            counts["settings"] += 1
            counts["settings without a result"] += isinstance(outcome, str)
            cells = (f"**{name} {number}** `{words}`{redrawn}", *map("<br>".join, (lines, claims)))
            print(
                "|",
                " | ".join(cell.replace("|", "\\|") or "none" for cell in cells),
                "|",
                flush=True,
            )
    print(
        f"\n{counts['settings']} settings, {counts['settings without a result']} without a result; "
        f"claims: {counts['holds']} hold, {counts['fails']} fail, {counts['not testable']} not "
        f"testable, {counts['error']} raised an error. {time.monotonic() - start:.0f} s."
    )


if __name__ == "__main__":
    with one_thread():
        main()
