"""Descriptions of networks for scaling arguments, with widths, ridge and patches as exponents of d."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from solvable.errors import InvalidParameter
from solvable.scale.exponents.activations import Activation
from solvable.scale.exponents.linear_forms import LinearForm

MOST_LAYERS = 12
HIGHEST_DEGREE = 9
MOST_EXPONENT = 100


@dataclass(frozen=True)
class Layer:
    """One hidden layer.

    Parameters
    ----------
    width : LinearForm
        Exponent of the number of neurons or filters.
    activation : Activation
        Activation of the layer's neurons.
    patch : LinearForm or None
        Exponent of the patch that each filter sees; d^(1 - patch) patches share it. None: the
        whole input.
    pool : bool
        True: the layer's outputs are summed over the patches and normalised before the next layer.
    """

    width: LinearForm
    activation: Activation
    patch: LinearForm | None = None
    pool: bool = False

    @property
    def reach(self) -> LinearForm:
        """Exponent of the number of inputs that one neuron sees."""
        return self.patch if self.patch is not None else LinearForm.of(1)


@dataclass(frozen=True)
class Network:
    r"""A network and its target; all sizes are exponents of the input dimension d.

    Parameters
    ----------
    layers : tuple of Layer
        Hidden layers, starting at the input.
    degree : int
        The target is He_degree of one hidden direction; with patches, the sum over all patches.
    readout : LinearForm
        Exponent of chi in the variance of the readout, sigma_a² / (N chi); 0 is the standard readout.
    kappa : LinearForm
        Exponent of the ridge, which is the temperature of the posterior.
    inputs : LinearForm
        Exponent of the kernel eigenvalue of the linear feature of the input; -1 for isotropic inputs.
    mean_field : bool
        True: chi is the width of the last layer.
    title : str
        Name of the network.
    parity : bool
        True: the target is the parity of ``degree`` bits; exponents are those of He_degree.
    rounded : bool
        True: exponents were rounded from sizes or measured, so that texts round them too.
    """

    layers: tuple[Layer, ...]
    degree: int
    kappa: LinearForm = field(default_factory=LinearForm)
    readout: LinearForm = field(default_factory=LinearForm)
    inputs: LinearForm = field(default_factory=lambda: LinearForm.of(-1))
    mean_field: bool = False
    title: str = "network"
    parity: bool = False
    rounded: bool = False

    def __post_init__(self) -> None:
        if not self.layers:
            raise InvalidParameter("a network has no layers; allowed: 1 to 12 hidden layers.")
        if len(self.layers) > MOST_LAYERS:
            raise InvalidParameter(
                f"the network has {len(self.layers)} hidden layers; allowed: 1 to {MOST_LAYERS}. "
                "Merge similar layers."
            )
        if not 1 <= self.degree <= HIGHEST_DEGREE:
            raise InvalidParameter(
                f"target degree is {self.degree}; allowed: integers from 1 to {HIGHEST_DEGREE}."
            )
        for number, layer in enumerate(self.layers, 1):
            _check_exponent(f"width of layer {number}", layer.width)
            if layer.patch is not None:
                _check_exponent(f"patch of layer {number}", layer.patch, most=1)
        _check_factor("kappa", self.kappa)
        _check_factor("chi of the readout", self.readout)
        _check_factor("the eigenvalue of the inputs", self.inputs)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the sizes without a value, ascending."""
        forms = [self.kappa, self.readout, self.inputs]
        forms += [form for layer in self.layers for form in (layer.width, layer.reach)]
        return tuple(sorted(frozenset().union(*(form.symbols for form in forms))))

    @property
    def biased_layers(self) -> tuple[Layer, ...]:
        """Layers of the network; a layer has random biases if the layer before it has a constant part."""
        found: list[Layer] = []
        for layer in self.layers:
            # With biases, every activation has a constant part.
            biased = any(held.activation.constant or held.activation.biased for held in found)
            found.append(replace(layer, activation=replace(layer.activation, biased=biased)))
        return tuple(found)

    @property
    def chi(self) -> LinearForm:
        """Exponent of chi in the readout's variance."""
        return self.layers[-1].width if self.mean_field else self.readout

    def at(self, point: Mapping[str, Fraction]) -> Network:
        """Substitute numbers for symbols."""
        layers = tuple(
            replace(
                layer,
                width=layer.width.at(point),
                patch=None if layer.patch is None else layer.patch.at(point),
            )
            for layer in self.layers
        )
        held = {name: getattr(self, name).at(point) for name in ("inputs", "kappa", "readout")}
        return replace(self, layers=layers, **held)

    def symbolic(self) -> tuple[Network, dict[str, Fraction]]:
        """Replace numeric widths by symbols; return the network and the values of the symbols."""
        point: dict[str, Fraction] = {}
        layers = []
        for number, layer in enumerate(self.layers, 1):
            name = "n" if len(self.layers) == 1 else f"n{number}"
            if layer.width.number is None or name in self.symbols:
                layers.append(layer)
            else:
                point[name] = layer.width.constant
                layers.append(replace(layer, width=LinearForm.symbol(name)))
        return replace(self, layers=tuple(layers)), point


def _check_exponent(name: str, form: LinearForm, most: int = MOST_EXPONENT) -> None:
    if form.number is not None and not 0 <= form.number <= most:
        raise InvalidParameter(
            f"{name} is d^{form}; allowed: exponents from 0 to {most}, as sizes are at least 1"
            f"{' and a patch at most the input' if most == 1 else ''}."
        )


def _check_factor(name: str, form: LinearForm, most: int = MOST_EXPONENT) -> None:
    if form.number is not None and abs(form.number) > most:
        raise InvalidParameter(
            f"{name} is d^({form}); allowed: exponents from -{most} to {most}. Write a number, such "
            "as 1/2, for d^(1/2)."
        )


@dataclass(frozen=True)
class Attention:
    """An attention block with a cubic target; the numbers of heads and tokens are exponents of d.

    Parameters
    ----------
    heads, context : LinearForm
        Exponents of the numbers of heads H and of tokens L.
    kappa : LinearForm
        Exponent of the ridge.
    title : str
        Name of the block.
    """

    heads: LinearForm
    context: LinearForm
    kappa: LinearForm = field(default_factory=LinearForm)
    title: str = "attention block"

    def __post_init__(self) -> None:
        _check_exponent("heads", self.heads)
        _check_exponent("context", self.context)
        _check_factor("kappa", self.kappa)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the sizes without a value, ascending."""
        return tuple(sorted(self.heads.symbols | self.context.symbols | self.kappa.symbols))

    def at(self, point: Mapping[str, Fraction]) -> Attention:
        """Substitute numbers for symbols."""
        held = {name: getattr(self, name).at(point) for name in ("heads", "context", "kappa")}
        return replace(self, **held)

    def symbolic(self) -> tuple[Attention, dict[str, Fraction]]:
        """Replace numeric sizes by symbols; return the block and the values of the symbols."""
        point = {
            symbol: form.constant
            for symbol, form in (("h", self.heads), ("l", self.context))
            if form.number is not None and symbol not in self.symbols
        }
        heads = LinearForm.symbol("h") if "h" in point else self.heads
        context = LinearForm.symbol("l") if "l" in point else self.context
        return replace(self, heads=heads, context=context), point


Description = Network | Attention
