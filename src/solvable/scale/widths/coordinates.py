"""Coordinate check: sizes of activations, of their changes and of the outputs against the width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.fitting.devices import import_torch
from solvable.paths import error_line
from solvable.plots.figure import Figure, Series
from solvable.plots.tables import Column, Table
from solvable.scale.forward_pass import Batch, run
from solvable.scale.widths.factors import IN_TORCH, check_optimiser
from solvable.scale.widths.rules import (
    Make,
    WidthRules,
    batch_of,
    groups_of,
    made,
    multiplied,
    rescale_start,
    width_rules,
)

STEPS = 4
WITHIN = 0.1  # a slope of this size counts as flat
# A step moves a batch together by about rows^(-1/2), and apart by about width^(-1/2) (widths 5), so that
# few rows show the limit of large width at smaller widths.
ROWS = 4
CLASSES = 10  # outputs of the fixed readout of modules whose outputs grow with the width


@dataclass(frozen=True, repr=False)
class CoordinateCheck:
    """Sizes of all layers' outputs against the width, at the first steps of training.

    Attributes
    ----------
    widths : tuple of int
        Widths, ascending.
    layers : tuple of str
        Layers, in the order of the forward pass; the last is the output of the module.
    sizes : ndarray, shape (widths, seeds, steps + 1, layers)
        Root mean square of the outputs of each layer.
    changes : ndarray, shape (widths, seeds, steps + 1, layers)
        Root mean square of their change since the start.
    corrected : bool
        True: initial scales and rates follow the rules of :func:`width_rules`.
    grows : tuple of bool
        True for layers whose outputs grow with the width; the size of others at the start may fall.
    missing : tuple of str
        Numbers that belong into ``forward`` and were not applied in the check.
    """

    widths: tuple[int, ...]
    layers: tuple[str, ...]
    sizes: np.ndarray
    changes: np.ndarray
    corrected: bool
    grows: tuple[bool, ...]
    missing: tuple[str, ...] = ()

    def slopes(self, values: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Slope of each layer in the logarithm of the width, and half its 95 % interval, over seeds."""
        x = np.log2(np.asarray(self.widths, dtype=float))
        x = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        with np.errstate(divide="ignore"):
            seeds = np.einsum("w,wsl->sl", x, np.log2(values[:, :, step]))
        count = len(seeds)
        half = _student(count - 1) * seeds.std(axis=0, ddof=1) / np.sqrt(count)
        return seeds.mean(axis=0), half

    @property
    def rows(self) -> list[tuple[str, str, float, float]]:
        """Layer, measure, slope and half interval in the last step, of all that must be flat."""
        found = []
        for name, values in (("change", self.changes), ("size", self.sizes)):
            columns = zip(self.layers, self.grows, *self.slopes(values, -1), strict=True)
            found += [
                (layer, name, float(mean), float(half))
                for layer, grows, mean, half in columns
                if np.isfinite(mean) and (name == "change" or grows)
            ]
        return found

    @property
    def worst(self) -> tuple[str, str, float, float]:
        """The row that decides: the one that is farthest from flat for certain, or may be."""
        sign = -1 if self.verdict == "fails" else 1
        return max(self.rows, key=lambda row: abs(row[2]) + sign * row[3])

    @property
    def verdict(self) -> str:
        """``holds``, ``fails`` or ``undecided``: whether all slopes are within 0.1 of 0."""
        if any(abs(slope) - half > WITHIN for _, _, slope, half in self.rows):
            return "fails"
        inside = all(abs(slope) + half <= WITHIN for _, _, slope, half in self.rows)
        return "holds" if inside else "undecided"

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        layer, name, slope, half = self.worst
        kind = "with these changes" if self.corrected else "as it is built"
        meaning = {
            "holds": "sizes do not depend on the width, so the learning rate carries over",
            "fails": "it depends on the width, so the best learning rate does too",
            "undecided": "more seeds (--seeds) or wider modules are needed",
        }[self.verdict]
        return (
            f"The module {kind}: the check {'is ' * (self.verdict == 'undecided')}{self.verdict}. The "
            f"slope that decides is {slope:+.2f} ± "
            f"{half:.2f} (95 %; the {name} of {layer} after {self.changes.shape[2] - 1} steps): "
            f"{meaning}."
            + "".join(f" Not applied, as it stands in forward: {x}." for x in self.missing)
        )

    def __repr__(self) -> str:
        return self.sentence

    def table(self) -> Table:
        """Build the table of slopes at the start and in the last step."""
        table = Table(
            "layer",
            Column("size at the start", right=True),
            Column("size", right=True),
            Column("change", right=True),
            title="Slope in the width (log-log), after "
            f"{self.changes.shape[2] - 1} steps but for the second column",
        )
        columns = [
            self.slopes(self.sizes, 0),
            self.slopes(self.sizes, -1),
            self.slopes(self.changes, -1),
        ]
        for place, layer in enumerate(self.layers):
            table.add(layer, *(_cell(mean[place], half[place]) for mean, half in columns))
        return table

    def figure(self) -> Figure:
        """Draw the changes of all layers in the last step against the width."""
        series = []
        for place, layer in enumerate(self.layers):
            logs = np.log(self.changes[:, :, -1, place])
            if np.isfinite(logs).all():
                mean = np.exp(logs.mean(axis=1))
                error = mean * logs.std(axis=1, ddof=1) / np.sqrt(logs.shape[1])
                series.append(Series(layer, self.widths, mean, "points", error, place))
                series.append(Series("", self.widths, mean, "line", colour=place))
        built = "with changed scales and rates" if self.corrected else "as it is built"
        return Figure(
            "coordinates-corrected" if self.corrected else "coordinates",
            f"Change of each layer's outputs, {built}",
            "width",
            f"root mean square change after {self.changes.shape[2] - 1} steps",
            series,
            caption="Flat lines: a step changes a layer as much at any width. Bars: standard errors over "
            f"{self.changes.shape[1]} seeds.",
            x_scale="log",
            y_scale="log",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``solvable scale --check``."""
        rows = []
        for name, values in (("size", self.sizes), ("change", self.changes)):
            for step in range(self.changes.shape[2]):
                means, halves = self.slopes(values, step)
                rows += [
                    {"layer": layer, "measure": name, "step": step,
                     "slope": float(mean), "half_interval": float(half)}
                    for layer, mean, half in zip(self.layers, means, halves, strict=True)
                    if np.isfinite(mean)
                ]  # fmt: skip
        return {
            "corrected": self.corrected,
            "verdict": self.verdict,
            "widths": list(self.widths),
            "slopes": rows,
        }


def _student(degrees: int) -> float:
    """Quantile of Student's distribution for two-sided 95 % intervals."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


def _cell(mean: float, half: float) -> str:
    return f"{mean:+.2f} ± {half:.2f}" if np.isfinite(mean) else "-"


def coordinate_check(
    make: Make,
    widths: Sequence[int],
    *,
    corrected: bool = True,
    optimiser: str = "adamw",
    learning_rate: float | None = None,
    seeds: int = 8,
    seed: int = 0,
) -> CoordinateCheck:
    """Measure how activations, their changes and the outputs depend on the width in four steps.

    Parameters
    ----------
    make : callable
        ``make(width)`` returns a torch module, or (module, inputs).
    widths : sequence of int
        At least two widths; the first is the base.
    corrected : bool
        Change initial scales and rates by the rules; False measures the module as it is built.
    optimiser : {"adamw", "adam", "sgd"}
        Optimiser.
    learning_rate : float, optional
        Rate at the base width. [default: 0.003, and 0.1 for SGD]
    seeds : int
        Repetitions with other weights and batches, from 2.
    seed : int
        Another seed repeats the check with independent draws.

    Returns
    -------
    CoordinateCheck
        Sizes, slopes with 95 % intervals, and the verdict.

    Raises
    ------
    InvalidParameter
        If there are fewer than two widths or seeds.
    NotConverged
        If numbers overflow.

    Notes
    -----
    Labels are random. Outputs that grow with the width are read by a fixed random readout.

    Examples
    --------
    >>> coordinate_check(make, (64, 128, 256)).verdict  # doctest: +SKIP
    'holds'
    """
    widths = tuple(sorted(set(widths)))
    if len(widths) < 2 or widths[0] < 1:
        raise InvalidParameter(f"widths are {list(widths)}; allowed: at least two, each from 1.")
    if seeds < 2:
        raise InvalidParameter(f"seeds is {seeds}; allowed: integers from 2, for intervals.")
    check_optimiser(optimiser)
    torch = import_torch("a coordinate check")
    rate = learning_rate or (0.1 if optimiser == "sgd" else 0.003)
    sizes, changes, layers, counts = [], [], [], []
    missing: tuple[str, ...] = ()
    with _seeded(torch):
        torch.manual_seed(seed)
        grown = _grown(make, widths)
        for width in widths:
            rules = _rules(make, widths[0], width, optimiser) if corrected else None
            missing = rules[1] if rules else ()
            rows = [
                _trained(torch, make, width, rules and rules[0], optimiser, rate, grown, number)
                for number in range(1000 * seed, 1000 * seed + seeds)
            ]
            layers = [name for name, _ in rows[0][0]]
            counts.append([count for _, count in rows[0][0]])
            sizes.append([row[1] for row in rows])
            changes.append([row[2] for row in rows])
    values = np.array(sizes), np.array(changes)
    if not all(np.isfinite(part).all() for part in values):
        raise NotConverged(
            f"outputs overflow in {STEPS} steps at rate {rate:g}; lower the learning rate."
        )
    grows = tuple(first < last for first, last in zip(counts[0], counts[-1], strict=True))
    found = CoordinateCheck(widths, tuple(layers), *values, corrected, grows, missing)
    if not found.rows:
        raise InvalidData(
            f"no layer changes in {STEPS} steps; allowed: a module with weights that train."
        )
    return found


def _rules(
    make: Make, base_width: int, width: int, optimiser: str
) -> tuple[WidthRules, tuple[str, ...]]:
    """Compute the rules of a width, and name the numbers of ``forward`` that the check cannot apply."""
    (module, inputs), (base, base_inputs) = made(make, width), made(make, base_width)
    rules = width_rules(module, base, optimiser=optimiser, inputs=inputs, base_inputs=base_inputs)
    kinds = [type(part).__name__ for part in module.modules()]
    linear = {id(part.weight) for part in module.modules() if type(part).__name__ == "Linear"}
    held = dict(module.named_parameters())
    found = [f"the number of the outputs of {row.name}" for row in rules.parameters
             if row.output != 1 and id(held[row.name]) not in linear]  # fmt: skip
    if abs(rules.queries - 1) > 1e-9 and "MultiheadAttention" not in kinds:
        found.append("the number of the queries")
    return rules, tuple(found)


@contextmanager
def _seeded(torch: Any) -> Iterator[None]:
    """Restore the state of torch's random numbers."""
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


def _trained(
    torch: Any,
    make: Make,
    width: int,
    rules: WidthRules | None,
    optimiser: str,
    rate: float,
    grown: int | None,
    number: int,
) -> tuple[list[tuple[str, int]], list[list[float]], list[list[float]]]:
    """Train one module for some steps; return layers with their units, and sizes and changes by step."""
    torch.manual_seed(number)
    module, inputs = made(make, width)
    if rules is not None:
        rescale_start(module, rules)
        groups = groups_of(rules, module, rate, 0.0)
    else:
        groups = [{"params": list(module.parameters()), "lr": rate}]
    torch.manual_seed(number)
    batch = batch_of(module, inputs, rows=ROWS)
    steps = getattr(torch.optim, IN_TORCH[optimiser])(
        [{**group, "weight_decay": 0.0} for group in groups]
    )
    loss = _Loss(torch, number, grown)
    start: list[Any] = []
    sizes, changes = [], []
    multiply = multiplied(module, rules) if rules else nullcontext()
    with multiply, _watched(torch, module) as seen:
        for step in range(STEPS + 1):
            seen.clear()
            try:
                value = loss(_outputs(module, batch))
                steps.zero_grad()
                value.backward()
            except (RuntimeError, TypeError, ValueError) as error:
                raise InvalidData(
                    f"{type(module).__name__} raised {error_line(error)} in a training step; allowed: a "
                    "module that trains on its inputs."
                ) from error
            held = [tensor for _, tensor in seen]
            start = start or held
            sizes.append([_size(tensor) for tensor in held])
            changes.append([_size(now - then) for now, then in zip(held, start, strict=True)])
            if step < STEPS:
                steps.step()
        names = [(name, tensor[0].numel()) for name, tensor in seen]
    return names, sizes, changes


def _size(tensor: Any) -> float:
    return float(tensor.detach().double().square().mean().sqrt())


def _first_tensor(output: Any) -> Any:
    """Return the first array of numbers in an output: of a tuple, a mapping or an object with fields."""
    if hasattr(output, "is_floating_point"):
        return output if output.is_floating_point() and output.ndim else None
    if isinstance(output, (tuple, list)):
        parts = list(output)
    else:
        held = output if isinstance(output, Mapping) else getattr(output, "__dict__", {})
        parts = list(held.values())
    return next((found for part in parts if (found := _first_tensor(part)) is not None), None)


def _outputs(module: Any, batch: Batch) -> Any:
    """Run a module, and return the array of its outputs."""
    found = _first_tensor(run(module, batch))
    if found is None:
        raise InvalidData(
            f"{type(module).__name__} returns no array of numbers with a row for each input; allowed: "
            "outputs instead of a loss, alone or first in a tuple or mapping."
        )
    return found


def _grown(make: Make, widths: Sequence[int]) -> int | None:
    """Return the axis of the outputs that grows with the width; None if none does."""
    torch = import_torch()
    shapes = []
    for width in (widths[0], widths[-1]):
        module, inputs = made(make, width)
        with torch.no_grad():
            shapes.append(_outputs(module, batch_of(module, inputs, rows=ROWS)).shape)
    axes = [axis for axis in range(1, len(shapes[0])) if shapes[0][axis] != shapes[1][axis]]
    return axes[0] if axes else None


class _Loss:
    """Cross-entropy or squared error against random labels, the same in all steps."""

    def __init__(self, torch: Any, seed: int, grown: int | None) -> None:
        self.torch, self.grown = torch, grown
        self.stream = torch.Generator().manual_seed(seed + 10**9)  # labels that no batch repeats
        self.labels: Any = None
        self.readout: Any = None

    def __call__(self, output: Any) -> Any:
        torch = self.torch
        if self.grown is not None:
            output = output.movedim(self.grown, -1)
            width = output.shape[-1]
            if self.readout is None:
                # entries of order 1 / width: outputs change by order 1
                self.readout = torch.randn(width, CLASSES, generator=self.stream) / width
            output = output @ self.readout
        output = output.reshape(-1, output.shape[-1]) if output.ndim > 1 else output[:, None]
        if self.labels is None:
            self.labels = (
                torch.randn(output.shape, generator=self.stream)
                if output.shape[-1] == 1
                else torch.randint(output.shape[-1], (len(output),), generator=self.stream)
            )
        if output.shape[-1] == 1:
            return ((output - self.labels) ** 2).mean()
        return torch.nn.functional.cross_entropy(output, self.labels)


@contextmanager
def _watched(torch: Any, module: Any) -> Iterator[list[tuple[str, Any]]]:
    """Collect the outputs of all layers with weights and of the module, in each forward pass."""
    seen: list[tuple[str, Any]] = []
    last: list[Any] = []
    handles = []
    for name, part in module.named_modules():
        weights = next(part.parameters(recurse=False), None) is not None
        # parametrisations return weights, not outputs
        if "parametrizations" in name or (
            name and not weights and not hasattr(part, "parametrizations")
        ):
            continue

        def keep(part: Any, args: Any, output: Any, name: str = name) -> None:
            tensor = _first_tensor(output)
            if tensor is None:
                return
            if not last or last[0] is not tensor:  # the output is often that of the last layer
                seen.append((name or "output", tensor.detach().clone()))
            last[:] = [tensor]

        handles.append(part.register_forward_hook(keep))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
