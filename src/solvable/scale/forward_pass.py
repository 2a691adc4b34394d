"""Operations of one forward pass of a torch module, in their order, with the parameters that they use.

The module is run once on a batch, and every function of torch that it calls is recorded. Control flow,
functional layers and weights without a layer of their own are so read as they are used; the order of
registration has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from solvable.errors import InvalidData
from solvable.fitting.devices import import_torch
from solvable.paths import error_line

# Functions that keep all numbers of a tensor, at most in another order or a part of them.
VIEWS = frozenset((
    "view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "transpose", "permute", "swapaxes",
    "movedim", "contiguous", "clone", "__getitem__", "chunk", "split", "unbind", "narrow", "select",
    "expand", "expand_as", "T", "mT", "t", "to", "float", "type_as", "detach", "dropout", "dropout1d",
    "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "identity", "requires_grad",
))  # fmt: skip
_PRODUCTS = frozenset(("mul", "__mul__", "__rmul__", "__imul__", "multiply"))
_QUOTIENTS = frozenset(("div", "__truediv__", "__itruediv__", "true_divide", "divide"))


_WITH_WEIGHTS = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
)  # fmt: skip


Batch = Sequence[Any] | Mapping[str, Any]
"""Inputs of a module, in order or by name."""


@dataclass(frozen=True)
class Operand:
    """A tensor that an operation reads."""

    slot: int | str  # position or name of the argument
    shape: tuple[int, ...]
    origin: int | None = None  # operation that made the tensor; None for inputs and parameters
    parameter: str = ""  # parameter that the tensor is, or of which it is a part
    axes: tuple[int, ...] | None = None  # axis of the parameter behind each axis; None: unknown
    factor: float = 1.0  # number by which the parameter is multiplied before it is used
    constant: bool = False  # True for buffers, and tensors made of numbers alone
    value: float | None = None  # of a constant with one entry


@dataclass(frozen=True)
class Operation:
    """One call of a function of torch."""

    function: str  # name in torch, such as "linear"
    module: str  # dotted name of the module whose forward calls it; empty for the outermost
    operands: tuple[Operand, ...]
    options: Mapping[int | str, Any]  # arguments that are no tensors, by position or name
    shape: tuple[int, ...]  # shape of the first tensor that it returns

    @property
    def data(self) -> tuple[Operand, ...]:
        """Operands that depend on the inputs."""
        return tuple(o for o in self.operands if not o.parameter and not o.constant)

    def reads(self, parameter: str) -> bool:
        """Return True if the operation uses a parameter."""
        return any(operand.parameter == parameter for operand in self.operands)

    def slot_of_data(self, operand: Operand) -> bool:
        """Return True if an operand stands where a layer has its inputs."""
        slots: dict[str, tuple[int | str, ...]] = {
            "multi_head_attention_forward": (0, 1, 2, "query", "key", "value"),
            **dict.fromkeys((*_WITH_WEIGHTS, "embedding", "embedding_bag"), (0, "input")),
        }
        return operand.slot in slots.get(self.function, ())

    @property
    def number(self) -> float | None:
        """Number by which the only tensor is multiplied; None for all other operations."""
        tensors = [operand for operand in self.operands if not operand.constant]
        if len(tensors) != 1 or self.function not in _PRODUCTS | _QUOTIENTS:
            return None
        numbers: list[Any] = [v for v in self.options.values() if isinstance(v, (int, float))]
        numbers += [operand.value for operand in self.operands if operand.constant]
        if len(numbers) != 1 or isinstance(numbers[0], bool) or not numbers[0]:
            return None
        if self.function in _QUOTIENTS and tensors[0].slot not in (0, "input"):
            return None  # the tensor divides
        return float(numbers[0] if self.function in _PRODUCTS else 1 / numbers[0])


@dataclass
class _Held:
    """A tensor that was seen, with its source; it is kept so that its address stays its own."""

    tensor: Any
    origin: int | None = None
    parameter: str = ""
    axes: tuple[int, ...] | None = None
    factor: float = 1.0
    constant: bool = False


@dataclass
class _Record:
    """Operations so far, and the tensors they made."""

    held: dict[int, _Held] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    lengths: dict[str, str] = field(default_factory=dict)  # direction of each length of weight_norm

    def add(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Add one call; a part or multiple of a parameter stays this parameter."""
        slots: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
        operands = [
            self._operand(slot, tensor) for slot, value in slots for tensor in _tensors(value)
        ]
        options = {slot: value for slot, value in slots if not list(_tensors(value))}
        made = list(_tensors(result))
        if not made or not operands:
            return
        if all(operand.constant for operand in operands):
            for tensor in made:
                self.held[id(tensor)] = _Held(tensor, constant=True)
            return
        if name == "_weight_norm" and operands[0].parameter:
            self._normalise(operands, args, made[0])
            return
        where = self.modules[-1] if self.modules else ""
        operation = Operation(name, where, tuple(operands), options, tuple(made[0].shape))
        tensors = [operand for operand in operands if not operand.constant]
        only = tensors[0] if len(tensors) == 1 else None
        if only is not None and only.parameter and (name in VIEWS or operation.number is not None):
            axes = _permuted(only.axes, name, options)
            factor = only.factor * (operation.number or 1.0)
            for tensor in made:
                self.held[id(tensor)] = _Held(tensor, None, only.parameter, axes, factor)
            return
        self.operations.append(operation)
        for tensor in made:
            self.held[id(tensor)] = _Held(tensor, len(self.operations) - 1)

    def _normalise(self, operands: Sequence[Operand], args: Sequence[Any], made: Any) -> None:
        """Keep a weight g v / |v| as its direction v, and note its lengths g."""
        direction, lengths = (operand.parameter for operand in operands)
        if (args[2] if len(args) > 2 else 0) != 0:
            raise InvalidData(
                f"{direction} is normalised along other axes than its inputs; allowed: weight_norm with "
                "dim=0."
            )
        self.lengths[lengths] = direction
        self.held[id(made)] = _Held(made, None, direction, operands[0].axes)

    def _operand(self, slot: int | str, tensor: Any) -> Operand:
        shape = tuple(tensor.shape)
        known = self.held.get(id(tensor))
        if known is None:  # made of numbers, as by torch.tensor
            known = self.held[id(tensor)] = _Held(tensor, constant=True)
        value = float(tensor) if known.constant and tensor.numel() == 1 else None
        return Operand(
            slot,
            shape,
            known.origin,
            known.parameter,
            known.axes,
            known.factor,
            known.constant,
            value,
        )


def _tensors(value: Any) -> Iterator[Any]:
    torch = import_torch()
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def _permuted(
    axes: tuple[int, ...] | None, name: str, options: Mapping[int | str, Any]
) -> tuple[int, ...] | None:
    """Follow the axes of a parameter through a transposition; None after any other view."""
    if axes is None or name in (
        "to",
        "float",
        "contiguous",
        "clone",
        "detach",
        *_PRODUCTS,
        *_QUOTIENTS,
    ):
        return axes
    if name in ("T", "t", "mT") and len(axes) == 2:
        return axes[::-1]
    given = [value for value in options.values() if isinstance(value, int)]
    if name in ("transpose", "swapaxes", "mT") and (len(given) == 2 or name == "mT"):
        first, second = given or (-2, -1)
        order = list(axes)
        order[first], order[second] = order[second], order[first]
        return tuple(order)
    if name == "permute":
        order = given or next((list(v) for v in options.values() if isinstance(v, tuple)), [])
        return tuple(axes[place] for place in order) if len(order) == len(axes) else None
    return None


def run(module: Any, inputs: Batch) -> Any:
    """Call a module with inputs in order, or by their names."""
    return module(**inputs) if isinstance(inputs, Mapping) else module(*inputs)


def read_forward(module: Any, inputs: Batch) -> tuple[list[Operation], dict[str, str]]:
    """Run a module once; return its operations, and the direction of each length of weight_norm.

    Dropout and the running means of batch normalisation stay as they are: the module is run in evaluation
    mode, and its mode is restored.
    """
    import_torch("reading a module")
    from torch.overrides import TorchFunctionMode

    record = _Record()
    for buffer in module.buffers():
        record.held[id(buffer)] = _Held(buffer, constant=True)
    for name, parameter in module.named_parameters():
        axes = tuple(range(parameter.ndim))
        record.held[id(parameter)] = _Held(parameter, None, name, axes)
    values = list(inputs.values() if isinstance(inputs, Mapping) else inputs)
    for value in values:
        record.held[id(value)] = _Held(value)

    class Recorder(TorchFunctionMode):
        """Hands each call of torch to the record."""

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            name = getattr(func, "__name__", str(func))
            if name == "__get__":  # an attribute, such as T
                name = getattr(getattr(func, "__self__", None), "__name__", name)
            record.add(name.rstrip("_") if name.endswith("_") and not name.startswith("__") else name,
                       args, kwargs or {}, result)  # fmt: skip
            return result

    with _evaluating(module), _named(module, record), Recorder():
        try:
            run(module, inputs)
        except Exception as error:  # a user's module may raise anything
            shapes = ", ".join(str(list(getattr(value, "shape", []))) for value in values)
            raise InvalidData(
                f"{type(module).__name__} raised {error_line(error)} on inputs of shape {shapes}; "
                "allowed: a module that runs on them. Let the function return (module, inputs), or "
                "(module, {name: input}) for inputs by name."
            ) from error
    return record.operations, record.lengths


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    modes = {part: part.training for part in module.modules()}
    for part in modes:  # `eval` would call itself in a module that contains itself
        part.training = False
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training


@contextmanager
def _named(module: Any, record: _Record) -> Iterator[None]:
    """Keep the name of the module that is running."""
    with ExitStack() as stack:
        for name, part in module.named_modules():

            def enter(part: Any, args: Any, name: str = name) -> None:
                record.modules.append(name)

            def leave(part: Any, args: Any, output: Any) -> None:
                record.modules.pop()

            for handle in (
                part.register_forward_pre_hook(enter),
                part.register_forward_hook(leave),
            ):
                stack.callback(handle.remove)
        yield


def example_inputs(module: Any, shape: Sequence[int] | None = None, *, rows: int = 32) -> Any:
    """Draw a batch that fits the first layer: normal numbers, or tokens for an embedding.

    Parameters
    ----------
    module : torch.nn.Module
        Its first layer with weights decides.
    shape : sequence of int, optional
        Shape of one input without the batch; for an embedding, the number of tokens.
    rows : int
        Size of the batch.

    Raises
    ------
    InvalidData
        If no layer shows the shape.
    """
    torch = import_torch("reading a module")
    shapes = {
        "Linear": lambda layer: (layer.in_features,),
        "Conv1d": lambda layer: (layer.in_channels, 16),
        "Conv2d": lambda layer: (layer.in_channels, 8, 8),
        "MultiheadAttention": lambda layer: (8, layer.embed_dim),
        **{name: lambda layer: (8, layer.input_size) for name in ("LSTM", "GRU", "RNN")},
        **{
            name: lambda layer: (8, layer.normalized_shape[-1]) for name in ("LayerNorm", "RMSNorm")
        },
    }
    for part in module.modules():
        kind = type(part).__name__.removeprefix("Parametrized")
        if kind in ("Embedding", "EmbeddingBag"):
            return torch.randint(part.num_embeddings, (rows, *(shape or (8,))))
        if shape is None and kind in shapes:
            return torch.randn(rows, *shapes[kind](part))
    if shape is not None:
        return torch.randn(rows, *shape)
    raise InvalidData(
        f"{type(module).__name__} has no layer that shows the shape of its inputs; allowed: pass the "
        "shape of one input (--input), or let the function return (module, inputs)."
    )
