"""The function ``scale``, which answers the same questions as ``solvable scale``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solvable.data.dataset import Dataset
from solvable.errors import InvalidData, InvalidParameter
from solvable.scale.exponents.network_reader import values_of
from solvable.scale.exponents.sample_exponent import Scaling, scaling_of
from solvable.scale.networks_of_data.calculator_networks import describe_real
from solvable.scale.networks_of_data.input_summary import InputSpectrum
from solvable.scale.networks_of_data.layer_description import ModelDescription
from solvable.scale.networks_of_data.modules import describe_module
from solvable.scale.words import headline


def scale_network(
    source: str | Path | Mapping[str, Any] | ModelDescription | None = None,
    /,
    *,
    layers: str | None = None,
    target: str | None = None,
    readout: str | None = None,
    kappa: str | None = None,
    at: Mapping[str, Any] | None = None,
    data: str | Path | Dataset | InputSpectrum | None = None,
    column: str | None = None,
) -> Scaling:
    """Compute how the number of samples must scale for a network to learn a target.

    Parameters
    ----------
    source : path, mapping or ModelDescription, optional
        A TOML or JSON file, or a mapping of the same structure, that describes a network in exponents
        or a real model in numbers. Without it, give ``layers`` and ``target``.
    layers : str, optional
        Hidden layers as activation, width and patch, with exponents of d: ``"erf:1,erf:n2:1/2"``.
    target : str, optional
        ``"heK"`` or ``"parityK"``.
    readout : str, optional
        "standard" (the default), "mean-field", or the exponent of chi.
    kappa : str, optional
        Exponent of the ridge; default 0.
    at : mapping of str to number, optional
        Values of symbols; text such as "3/2" is read exactly.
    data : path, Dataset or InputSpectrum, optional
        Data whose spectrum replaces the white spectrum. Without ``target``, the degree of the target
        is measured on the data.
    column : str, optional
        Column of the data to predict.

    Returns
    -------
    Scaling
        Exponent of the number of samples, closed form, winning patterns, ties and warnings.

    Raises
    ------
    InvalidParameter
        If a description is invalid, or the network cannot represent the target.

    Examples
    --------
    >>> import solvable
    >>> found = solvable.scale_network(layers="erf:n", target="he3", at={"n": 3})
    >>> str(found.exponent), found.closed_form
    ('2', 'P ~ d^max((n+1)/2, (n+3)/4)')
    """
    described, _ = describe_real(
        source,
        data=data,
        column=column,
        layers=layers,
        target=target,
        readout=readout,
        kappa=kappa,
    )
    return scaling_of(described, values_of(at or {}))


def sample_sentence(module: Any, inputs: Any, given: bool) -> str:
    """Write the exponent of the number of samples, or why the theory does not cover the module.

    The shape of the inputs is that of ``inputs``; if they were not ``given``, only vectors are sure.
    """
    if not hasattr(inputs, "is_floating_point") or not inputs.is_floating_point():
        return "Number of samples: not covered, as the inputs are not one array of numbers."
    if not given and inputs.ndim > 2:
        return "Number of samples: give the shape of one input, as in --input 3 32 32."
    try:
        found = scale_network(describe_module(module, tuple(inputs.shape[1:])))
    except (InvalidData, InvalidParameter) as error:
        reason = str(error).partition(" Width and learning rate")[0]
        return f"Number of samples: not covered. {reason}"
    return f"{headline(found)} (`solvable scale` of its file has the details.)"
