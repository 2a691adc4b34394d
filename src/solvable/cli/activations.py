"""``solvable activations``: sample thresholds and noise sensitivity of activations."""

from __future__ import annotations

from solvable.cli.settings import Flag


def activations(
    *names: str,
    noise: float = 1.0,
    directions: int | None = None,
    decay: float | None = None,
    details: Flag = False,
    json: Flag = False,
) -> int:
    """Compare the samples that activations need, and how noise changes them.

    For example:
      solvable activations relu gelu he4
      solvable activations "cos(z) - 1.12*cos(2*z)" --noise 10
      solvable activations cosmix cosmix3 cosmix4 --noise 100 --details
      solvable activations he2 cosmix --directions 16
      solvable activations he2 cosmix --decay 1 --json

    The label is y = sigma(<w, x>) + noise. The activation sigma has mean 0 and
    variance 1; the inputs are Gaussian. A formula in z may use + - * / **,
    numbers, pi, e, abs, cos, erf, exp, gelu, heK, log, max, min, relu, sigmoid,
    sign, silu, sin, softplus, sqrt, step, tan and tanh. A name alone, such as
    tanh, mish, elu, leaky_relu, hardswish, selu, cosmix, square or identity, stands for
    that function of z, the activations of torch with their defaults; cosmix, cosmix3 and
    cosmix4 have noise sensitivity exponents 2, 3 and 4. A formula that starts
    with a minus comes last, after --.

    Parameters
    ----------
    names
        Names or formulas of activations.
    noise
        Variance of the label noise, in units of the variance of the activation.
    directions
        Number p of directions: y = p^-1/2 sum_k sigma(<w_k, x>) + noise.
    decay
        Decay of the amplitudes k^-decay of the directions, 16 of them unless
        --directions is given. Each direction then has its own threshold.
    details
        Also print the parity, the information and generative exponents, and c.
    json
        Print a list of {"name", "information_exponent", "generative_exponent",
        "noise_sensitivity_exponent", "coefficient", "parity", "threshold_ratio",
        "information_threshold_ratio"}. An infinite exponent is "infinite", an
        unknown number null. With --decay both thresholds are lists.
    """
    from solvable.cli.terminal import write, write_json, write_prose, write_title
    from solvable.data_verbs import activations_of
    from solvable.models.multi_index.activation_view import answer, ordered, tables
    from solvable.plots.numbers import format_number

    found = activations_of(*names, noise=noise, directions=directions, decay=decay)
    if json:
        write_json(found.to_dict())
        return 0
    sums = "" if found.directions == 1 else f", {found.directions} directions"
    if found.decay is not None:
        sums += f" of amplitudes k^-{found.decay:g}"
    write_title("Activations", f"noise {format_number(found.noise)}{sums}")
    write_prose(answer(found))
    for table in tables(found, details=details):
        write("", table)
    same: dict[tuple[str, ...], list[str]] = {}
    for row in ordered(found):
        same.setdefault(row.words, []).append(row.name)
    for words, members in same.items():
        write("")
        write_prose(", ".join(members), style="bold")
        write_prose(*words)
    return 0
