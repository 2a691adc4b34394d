"""Rules of a module between two widths: factors of its parameters, optimiser groups, initial scales."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from solvable.errors import InvalidData, InvalidParameter
from solvable.fitting.devices import import_torch
from solvable.paths import error_line
from solvable.scale.forward_pass import Batch, Operation, example_inputs, read_forward
from solvable.scale.widths.factors import (
    Factors,
    Optimiser,
    check_optimiser,
    factors_of,
    normalised_factors,
    parametrisation,
)
from solvable.scale.widths.numbers_in_forward import score_scale, sums_over_width
from solvable.scale.widths.roles import parameter_roles

Make = Callable[[int], Any]


@dataclass(frozen=True)
class WidthRules:
    """Changes from one width of a module to another.

    Attributes
    ----------
    parameters : tuple of Factors
        One row a parameter: its role, and the factors of initial scale, learning rate and weight decay.
    optimiser : {"sgd", "adam", "adamw"}
        Optimiser of the factors of the learning rate.
    parametrisation : str
        Parametrisation in which the module is built: "standard", "NTK", "mean-field", "maximal-update" or
        "of its own".
    structure : mapping of str to int
        Numbers of layers, residual connections, gates, attention and so on in the forward pass.
    cautions : tuple of str
        Operations that sum over the width and are no layer, so that factors may not be enough.
    branches : float
        Number by which residual branches must be multiplied, as their number grows; 1 otherwise.
    queries : float
        Number by which queries of attention must be multiplied where heads grow; 1 where none does.
    """

    parameters: tuple[Factors, ...]
    optimiser: Optimiser
    parametrisation: str
    structure: Mapping[str, int]
    queries: float = 1.0
    branches: float = 1.0
    cautions: tuple[str, ...] = ()

    @property
    def width_ratio(self) -> float:
        """Ratio of the two widths: the largest growth of an axis."""
        return max((row.parameter.width for row in self.parameters), default=1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``solvable scale --width``."""
        return {
            "optimiser": self.optimiser,
            "parametrisation": self.parametrisation,
            "width_ratio": self.width_ratio,
            "query_multiplier": self.queries,
            "branch_multiplier": self.branches,
            "cautions": list(self.cautions),
            "structure": dict(self.structure),
            "parameters": [row.to_dict() for row in self.parameters],
        }


def width_rules(
    module: Any, base: Any, *, optimiser: str = "adamw", inputs: Any = None, base_inputs: Any = None
) -> WidthRules:
    """Compute what must change from a module to the same one at another width.

    Parameters
    ----------
    module, base : torch.nn.Module
        The module, and the module at the width at which the learning rate was chosen. Neither is trained.
    optimiser : {"adamw", "adam", "sgd"}
        Optimiser.
    inputs, base_inputs : tensor, tuple of tensors, or mapping of names to tensors, optional
        One batch for each module; drawn from the first layer if left out.

    Returns
    -------
    WidthRules
        Factors of every parameter.

    Raises
    ------
    InvalidData
        If the modules differ in more than their width, or the use of a parameter is not known.
    InvalidParameter
        If the optimiser is unknown.

    Notes
    -----
    Formulas: docs/derivations/widths. Backed by ``tests/scale/widths``.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> make = lambda n: torch.nn.Sequential(
    ...     torch.nn.Linear(8, n), torch.nn.ReLU(), torch.nn.Linear(n, 1)
    ... )  # doctest: +SKIP
    >>> width_rules(make(512), make(64)).parameters[2].rate  # doctest: +SKIP
    0.125
    """
    chosen = check_optimiser(optimiser)
    torch = import_torch("reading a module")
    for given in (module, base):
        if not isinstance(given, torch.nn.Module):
            raise InvalidData(
                f"the module is a {type(given).__name__}; allowed: a torch.nn.Module."
            )
    operations, lengths = read_forward(module, batch_of(module, inputs))
    before, _ = read_forward(base, batch_of(base, base_inputs))
    roles = parameter_roles(module, base, operations, before, lengths)
    if all(row.shape == row.base_shape and row.depth == 1 for row in roles):
        same = all(a is b for a, b in zip(module.parameters(), base.parameters(), strict=True))
        if same and next(module.parameters(), None) is not None:
            raise InvalidData("both modules are the same object; allowed: one at each width.")
    heads, base_heads = score_scale(operations), score_scale(before)
    queries = 1.0
    if heads is not None and base_heads is not None:
        # scores times head size stay the same; 1 / sqrt(head size) is usual instead (widths 3)
        queries = base_heads[0] * base_heads[1] / (heads[0] * heads[1])
    depth = max((row.depth for row in roles), default=1.0)
    counts = structure(operations)
    if depth != 1 and "residual connections" not in counts:
        raise InvalidData(
            "the number of blocks differs, and the forward pass has no residual connections; allowed: "
            "factors with the depth of residual networks alone."
        )
    factors = {row.name: factors_of(row, chosen) for row in roles}
    held = {row.name: row for row in roles}
    for length, direction in lengths.items():
        pair = normalised_factors(held[direction], held[length], chosen)
        factors |= {row.name: row for row in pair}
    return WidthRules(
        tuple(factors.values()),
        chosen,
        parametrisation(roles),
        counts,
        queries,
        depth**-0.5,
        tuple(sums_over_width(operations, before)),
    )


def batch_of(module: Any, inputs: Any, *, rows: int = 2) -> Batch:
    """Return a batch as a tuple or mapping of tensors, drawn for the first layer if there is none."""
    if inputs is None:
        return (example_inputs(module, rows=rows),)
    if isinstance(inputs, Mapping):
        return inputs
    return tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)


def made(make: Make, width: int) -> tuple[Any, Any]:
    """Call a function for one width; return the module, and its inputs or None."""
    try:
        found = make(width)
    except Exception as error:  # a user's function may raise anything
        raise InvalidData(
            f"the function raised {error_line(error)} at width {width}; allowed: a function of the width "
            "that returns a torch module, or (module, inputs)."
        ) from error
    module, inputs = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(module, import_torch().nn.Module):
        raise InvalidData(
            f"the function returns a {type(module).__name__} at width {width}; allowed: a "
            "torch.nn.Module, or (module, inputs)."
        )
    return module, inputs


def structure(operations: Sequence[Operation]) -> dict[str, int]:
    """Count layers, residual connections, gates, attention and so on in a forward pass."""
    names = {
        "linear": "linear layers", "addmm": "linear layers", "embedding": "embeddings",
        "embedding_bag": "embeddings", "layer_norm": "normalisations", "rms_norm": "normalisations",
        "batch_norm": "normalisations", "group_norm": "normalisations",
        "instance_norm": "normalisations", "multi_head_attention_forward": "attention layers",
        "scaled_dot_product_attention": "attention layers", "softmax": "softmaxes",
        "lstm": "recurrent layers", "gru": "recurrent layers", "rnn_tanh": "recurrent layers",
        "rnn_relu": "recurrent layers", "topk": "routings", "cat": "concatenations",
        **{f"conv{n}d": "convolutions" for n in (1, 2, 3)},
        **{f"conv_transpose{n}d": "convolutions" for n in (1, 2, 3)},
    }  # fmt: skip
    found: dict[str, int] = defaultdict(int)
    for operation in operations:
        function, data = operation.function.strip("_"), operation.data
        if function in ("add", "iadd", "radd") and len(data) == 2:
            found["residual connections"] += 1
        elif function in ("mul", "imul", "rmul") and len(data) == 2:
            found["gates"] += 1
        elif function in ("matmul", "bmm", "mm") and len(data) == 1:
            found["linear layers"] += 1
        elif function in names:
            found[names[function]] += 1
    return dict(found)


def optimiser_groups(
    module: Any,
    base: Any,
    *,
    optimiser: str = "adamw",
    learning_rate: float,
    weight_decay: float = 0.0,
    inputs: Any = None,
    base_inputs: Any = None,
) -> list[dict[str, Any]]:
    """Return groups for a torch optimiser, with the rates of this width.

    Parameters
    ----------
    module, base : torch.nn.Module
        The module that is trained, and the same module at the width at which the rate was chosen.
    optimiser : {"adamw", "adam", "sgd"}
        Optimiser that takes the groups.
    learning_rate : float
        Learning rate at the base width, above 0.
    weight_decay : float
        Weight decay at the base width, from 0.
    inputs, base_inputs : tensor, tuple of tensors, or mapping of names to tensors, optional
        One batch for each module; drawn from the first layer if left out.

    Returns
    -------
    list of dict
        Groups with ``params``, ``lr`` and ``weight_decay``: ``torch.optim.AdamW(groups)``.

    Raises
    ------
    InvalidData
        If the modules differ in more than their width, or the use of a parameter is not known.
    InvalidParameter
        If the optimiser, the rate or the decay is not allowed.

    Examples
    --------
    >>> groups = optimiser_groups(make(512), make(64), learning_rate=3e-3)  # doctest: +SKIP
    >>> torch.optim.AdamW(groups)  # doctest: +SKIP
    """
    if not 0 < learning_rate < float("inf"):
        raise InvalidParameter(f"learning_rate is {learning_rate!r}; allowed: numbers above 0.")
    if not 0 <= weight_decay < float("inf"):
        raise InvalidParameter(f"weight_decay is {weight_decay!r}; allowed: numbers from 0.")
    rules = width_rules(module, base, optimiser=optimiser, inputs=inputs, base_inputs=base_inputs)
    return groups_of(rules, module, learning_rate, weight_decay)


def groups_of(
    rules: WidthRules, module: Any, learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Collect the parameters of a module by their factors."""
    parameters = dict(module.named_parameters())
    groups: dict[tuple[float, float], list[Any]] = defaultdict(list)
    for row in rules.parameters:
        groups[round(row.rate, 12), round(row.decay, 12)].append(parameters[row.name])
    return [
        {"params": members, "lr": learning_rate * rate, "weight_decay": weight_decay * decay}
        for (rate, decay), members in groups.items()
    ]


def rescale_start(module: Any, rules: WidthRules) -> None:
    """Multiply the initial entries of a module by their factors, in place, once before training.

    Parameters
    ----------
    module : torch.nn.Module
        The module of :func:`width_rules`, before its first step.
    rules : WidthRules
        Its rules.

    Examples
    --------
    >>> rescale_start(module, width_rules(module, base))  # doctest: +SKIP
    """
    torch = import_torch("rescaling a module")
    parameters = dict(module.named_parameters())
    with torch.no_grad():
        for row in rules.parameters:
            if row.start != 1:
                parameters[row.name].mul_(row.start)


def _with_queries(
    by: float, part: Any, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Multiply the queries of an attention layer, given by position or by name."""
    if args:
        return (args[0] * by, *args[1:]), named
    return args, named | {"query": named["query"] * by}


@contextmanager
def multiplied(module: Any, rules: WidthRules) -> Iterator[None]:
    """Multiply outputs of tied weights and queries of attention layers, while the context is open.

    In a module of one's own, these numbers stand in ``forward``.
    """
    tied = {row.name: row.output for row in rules.parameters if row.output != 1}
    parameters = {id(value): name for name, value in module.named_parameters()}
    with ExitStack() as stack:
        for part in module.modules():
            weight = getattr(part, "weight", None)
            factor = tied.get(parameters.get(id(weight), ""), 1.0)
            if factor != 1 and type(part).__name__ == "Linear":
                handle = part.register_forward_hook(lambda _, args, out, by=factor: out * by)
                stack.callback(handle.remove)
            if rules.queries != 1 and type(part).__name__ == "MultiheadAttention":
                handle = part.register_forward_pre_hook(
                    partial(_with_queries, rules.queries), with_kwargs=True
                )
                stack.callback(handle.remove)
        yield
