"""``solvable activations``: how noise-sensitive an activation is, and what it costs in samples."""

from __future__ import annotations

from solvable.cli.settings import Flag


def activations(
    *names: str,
    noise: float = 1.0,
    directions: int | None = None,
    decay: float | None = None,
    json: Flag = False,
) -> int:
    """Tell how noise-sensitive activations are, and the samples they ask for.

    For example:
      solvable activations relu gelu he4
      solvable activations "cos(z) - 1.12*cos(2*z)" --noise 10
      solvable activations he2 cosmix --directions 16
      solvable activations he2 cosmix --decay 1 --json

    The label is y = sigma(<w, x>) + noise, of a standardised activation sigma and
    Gaussian inputs. A formula in z knows + - * / **, numbers, pi, e, abs, cos,
    erf, exp, gelu, heK, log, max, min, relu, sigmoid, sign, silu, sin, softplus,
    sqrt, step, tan and tanh; a bare name is a function of z, and cosmix, square
    and identity are names too. One that starts with a minus comes last, after --.

    Parameters
    ----------
    names
        Names or formulas of activations.
    noise
        Variance of the label noise; the activation has variance 1.
    directions
        Number p of directions: y = p^-1/2 sum_k sigma(<w_k, x>) + noise.
    decay
        Amplitudes k^-decay instead, of 16 directions unless --directions is given:
        a threshold for each.
    json
        Print a list of {"name", "information_exponent", "generative_exponent",
        "noise_sensitivity_exponent", "coefficient", "parity", "threshold_ratio",
        "information_threshold_ratio"}: infinite exponents are the word "infinite",
        what cannot be told is null; with --decay threshold_ratio is a list.
    """
    from solvable.cli.terminal import write, write_json, write_prose, write_title
    from solvable.models.multi_index.activation_view import tables
    from solvable.plots.numbers import format_number
    from solvable.verbs import activations_of

    found = activations_of(*names, noise=noise, directions=directions, decay=decay)
    if json:
        write_json(found.to_dict())
        return 0
    sums = "" if found.directions == 1 else f", {found.directions} directions"
    if found.decay is not None:
        sums += f" of amplitudes k^-{found.decay:g}"
    write_title("Activations", f"noise {format_number(found.noise)}{sums}")
    for table in tables(found):
        write("", table)
    for row in found.rows:
        write("")
        write_prose(row.name, style="bold")
        write_prose(*row.words)
    return 0
