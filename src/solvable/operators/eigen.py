r"""Leading eigenpairs of a moment operator at both ends of its spectrum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidParameter, NotConverged, unknown_choice
from solvable.operators._explicit import dense_pairs, gram_pairs
from solvable.operators._lanczos import RitzPairs, lanczos
from solvable.operators.base import SymmetricOperator
from solvable.operators.routes import RouteName, basis_capacity, choose_route


@dataclass(frozen=True)
class Eigenpairs:
    """Eigenpairs of both ends of a spectrum, with their accuracy."""

    values: np.ndarray  # eigenvalues, descending: first the upper end, then the lower end, (k,)
    vectors: np.ndarray  # eigenvectors as orthonormal columns, (D, k)
    # residuals |C v - lambda v|, which bound the distance to the nearest eigenvalue; divided by the gap
    # to other eigenvalues, they bound the sine of the angle to the eigenvector
    residuals: np.ndarray
    products: int  # number of products with the operator
    route: RouteName | Literal["power-iteration"]  # "power" is set only by a learner
    converged: np.ndarray  # True if the residual is below the tolerance times the scale, (k,)
    scale: float  # largest modulus of a computed eigenvalue, about the norm of the operator
    n_upper: int  # number of pairs at the upper end


def leading_eigenpairs(
    operator: SymmetricOperator,
    n_upper: int,
    n_lower: int,
    *,
    route: Literal["auto"] | RouteName = "auto",
    tolerance: float = 1e-4,
    max_products: int | None = None,
    rng: np.random.Generator | int,
    enough: Callable[[Eigenpairs], bool] | None = None,
    unconverged: Literal["mark", "raise"] = "mark",
    available_memory: float | None = None,
) -> Eigenpairs:
    r"""Compute the eigenpairs with the algebraically largest and smallest eigenvalues.

    .. math:: \hat C v_j = \lambda_j v_j, \qquad
        \|\hat C v_j - \lambda_j v_j\| \le \text{tolerance} \times \max_i |\lambda_i| .

    Both ends come from one Krylov space, so that spikes of both signs cost no more than spikes of
    one. Pairs are not ranked by modulus, because the bulk is shifted and skewed.

    Parameters
    ----------
    operator : MomentOperator
        The operator.
    n_upper, n_lower : int
        Pairs at the upper and at the lower end; together 1 to :math:`D`.
    route : {"auto", "lanczos", "dense", "gram"}
        "auto" takes the cheapest route of :func:`choose_route`. "dense" forms the matrix (D, D),
        "gram" the dual matrix (n, n), which exists for uncorrected operators with fewer samples than
        features; both are exact to rounding.
    tolerance : float
        Tolerance of the residual for "lanczos", relative to the largest modulus of an eigenvalue.
    max_products : int, optional
        Largest number of products with the operator for "lanczos"; by default 200 + 40 (n_upper +
        n_lower).
    rng : Generator or int
        Generator or seed of the starting vector; results depend on it only within the tolerance.
    enough : callable, optional
        Function of the present pairs that returns True if they suffice, called every second product of
        "lanczos"; pairs in a bulk may stay unresolved. By default all pairs must have converged.
    unconverged : {"mark", "raise"}
        "mark" returns pairs that did not converge, marked in ``converged``; "raise" raises an error.
    available_memory : float, optional
        Memory limit in bytes; by default the free memory of the machine.

    Returns
    -------
    Eigenpairs
        Eigenvalues in descending order, vectors, residuals, and convergence of each pair.

    Raises
    ------
    NotConverged
        If pairs did not converge and ``unconverged="raise"``, or if ``max_products`` is below
        ``n_upper + n_lower``.
    MemoryLimitExceeded
        If the route does not fit into memory.
    InvalidParameter
        If a parameter is out of range, or the route does not exist for this operator.

    Notes
    -----
    Lanczos uses full orthogonalisation and thick restarts. It needs about 25 products for well
    separated spikes and about :math:`40 + 8 (n_\text{upper} + n_\text{lower})` if some of the pairs are
    at the bulk edge. It finds an exactly repeated eigenvalue once; the other routes find its
    multiplicity. arXiv:2605.14567, Algorithm 1 (step 4), with selection at both ends;
    ``tests/operators/test_eigen.py`` compares the routes with numpy's ``eigh``.

    Examples
    --------
    >>> from solvable.operators import HermiteFeatures, MomentOperator
    >>> X = np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> operator = MomentOperator(X, np.array([1.0, 0.0, -1.0]), HermiteFeatures(1, 2))
    >>> leading_eigenpairs(operator, 1, 1, rng=0).values.round(4)
    array([ 1.3333, -3.    ])
    """
    wanted = _check(operator, n_upper, n_lower, tolerance, max_products, unconverged)
    chosen = choose_route(
        operator.n_samples,
        operator.features,
        wanted,
        available_memory,
        correction=operator.correction,
        itemsize=operator.itemsize,
        route=route,
    )
    start = operator.products

    def found(pairs: RitzPairs) -> Eigenpairs:
        # Results of the explicit routes are exact to rounding and count as converged even at 1e-16.
        allowed = max(tolerance, 1e-10 if chosen.name != "lanczos" else 0.0) * pairs.scale
        return Eigenpairs(
            values=pairs.values,
            vectors=pairs.vectors,
            residuals=pairs.residuals,
            products=operator.products - start,
            route=chosen.name,
            converged=pairs.residuals <= allowed,
            scale=pairs.scale,
            n_upper=n_upper,
        )

    def will_do(pairs: RitzPairs) -> bool:
        eigenpairs = found(pairs)
        return bool(eigenpairs.converged.all()) or (enough is not None and enough(eigenpairs))

    if chosen.name == "dense":
        pairs = dense_pairs(operator, n_upper, n_lower)
    elif chosen.name == "gram":
        pairs = gram_pairs(operator, n_upper, n_lower, np.random.default_rng(rng))
    else:
        pairs = lanczos(
            operator.matvec,
            operator.shape[0],
            n_upper,
            n_lower,
            enough=will_do,
            max_products=_most_products(wanted, max_products),
            capacity=basis_capacity(operator.shape[0], wanted),
            rng=np.random.default_rng(rng),
        )
    if unconverged == "raise" and not will_do(pairs):
        raise NotConverged(_message(found(pairs), tolerance), _diagnostics(pairs))
    return found(pairs)


def _check(
    operator: SymmetricOperator,
    n_upper: int,
    n_lower: int,
    tolerance: float,
    max_products: int | None,
    unconverged: str,
) -> int:
    """Check the parameters and return the number of pairs."""
    size = operator.shape[0]
    if n_upper < 0 or n_lower < 0 or not 1 <= n_upper + n_lower <= size:
        raise InvalidParameter(
            f"n_upper is {n_upper} and n_lower is {n_lower}; allowed: integers of at least 0 whose "
            f"sum is 1 to the {size} features."
        )
    if not 0 <= tolerance < 1:
        raise InvalidParameter(f"tolerance is {tolerance}; allowed: at least 0 and below 1.")
    if max_products is not None:
        check_integer("max_products", max_products, 1)
    if unconverged not in ("mark", "raise"):
        raise InvalidParameter(unknown_choice("unconverged", unconverged, ["mark", "raise"]))
    return n_upper + n_lower


def _most_products(wanted: int, max_products: int | None) -> int:
    limit = 200 + 40 * wanted if max_products is None else max_products
    if limit < wanted:
        raise NotConverged(
            f"max_products is {limit} for {wanted} eigenpairs: a Krylov space of this size "
            "is too small. Allow at least a few products per pair.",
            {"products": 0, "max_products": limit},
        )
    return limit


def _message(pairs: Eigenpairs, tolerance: float) -> str:
    return (
        f"{np.count_nonzero(~pairs.converged)} of {pairs.converged.size} eigenpairs did not converge "
        f"by {pairs.route} in {pairs.products} products: the largest residual is "
        f"{pairs.residuals.max():.2e}, allowed {tolerance * pairs.scale:.2e}. Raise max_products or "
        "the tolerance, or ask for fewer pairs: pairs at the bulk edge converge last."
    )


def _diagnostics(pairs: RitzPairs) -> dict[str, Any]:
    return {
        "values": pairs.values,
        "residuals": pairs.residuals,
        "products": pairs.products,
        "scale": pairs.scale,
    }
