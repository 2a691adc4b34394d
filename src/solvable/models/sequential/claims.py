"""What sequential feature recovery claims: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from solvable.frame.claims import Claim
from solvable.models.sequential import checks, laws

PAPER = "arXiv:2605.14567"

CLAIMS = (
    Claim(
        "overlap-of-each-feature",
        "The squared overlap of every recovered feature is on its predicted curve.",
        f"{PAPER} eq. 2.10 with the constant derived here",
        "0.04 covers corrections of relative order (D/n)^(1/2) beyond the formula, plus three "
        "standard errors.",
        checks.feature_overlap,
    ),
    Claim(
        "mean-overlap",
        "The mean squared overlap is on its predicted curve once all features are recovered.",
        "derived",
        "0.03: finite-size corrections average out over features.",
        checks.mean_overlap,
    ),
    Claim(
        "nothing-below-threshold",
        "Below half its threshold a feature is not found: its overlap stays at the chance level.",
        f"{PAPER} Theorem 3.1 (2)",
        "The rounding of the transition, 0.85 D^(-1/3), above the chance level p/D, plus three "
        "standard errors.",
        checks.necessary,
    ),
    Claim(
        "loss-far-above-threshold",
        "Far above threshold the lost overlap falls as D/n with the predicted constant "
        "(1/(2 lambda^2) + 2 for an unbounded label).",
        f"{PAPER} Theorem 3.1 (1) with its constant derived here",
        "15 % of the loss for higher orders in D/n, plus three standard errors.",
        checks.far_above,
    ),
    Claim(
        "error-is-a-sum",
        "The normalised error is the predicted sum over all features.",
        "derived",
        "8 % below n/D = 120 and 4 % above (heavy tails of the label), plus two standard errors.",
        checks.error_sum,
    ),
    Claim(
        "error-exceeds-tail",
        "The error exceeds that of the unrecovered features alone: recovered ones contribute too.",
        "derived",
        "A one-sided statement.",
        checks.error_exceeds_tail,
    ),
    Claim(
        "outlier-positions",
        "The eigenvalue of every recovered feature is where predicted.",
        "derived",
        "5 % for terms of order (D/n)^(3/2), plus three standard errors.",
        laws.outlier_positions,
    ),
    Claim(
        "bulk-edges",
        "The rest of the spectrum ends at the predicted edges.",
        f"{PAPER} eq. 2.9 with its constant derived here",
        "5 % of the width: fluctuations of order D^(-2/3) and the population bulk beyond "
        "leading order.",
        laws.bulk_edges,
    ),
    Claim(
        "kernel-sees-nothing",
        "At the sample size at which the layered learner has an error below 0.8, a kernel has "
        "above 0.9.",
        f"{PAPER} section 3",
        "A one-sided statement.",
        laws.kernel_blind,
    ),
    Claim(
        "kernel-ceiling",
        "No kernel beats the part of the label that lies in degree 2 of the input.",
        "derived",
        "0.01 for the first samples of degree four, plus three standard errors.",
        laws.kernel_ceiling,
    ),
    Claim(
        "threshold-exponent",
        "The sample size at which feature i crosses one half grows as a power of i: i^(2 gamma) "
        "in the limit, with the predicted effective exponent here.",
        f"{PAPER} eq. 2.10 at finite size",
        "0.15: interpolation between sizes and seed fluctuations of each crossing.",
        laws.threshold_exponent,
    ),
    Claim(
        "error-exponent",
        "The error falls with the slope of the predicted sum at these sizes.",
        f"{PAPER} Theorem 3.2 at finite size",
        "0.05: seed fluctuations of a slope over a factor of sixteen.",
        laws.error_exponent,
    ),
    Claim(
        "in-sample-error",
        "A second layer made of the eigenvalues has the predicted, larger error.",
        "derived",
        "8 % for heavy tails of the label, plus two standard errors.",
        checks.plug_in("in-sample", 60, 0.08),
    ),
    Claim(
        "in-sample-diverges",
        "With few samples per feature the in-sample second layer is worse than the mean label.",
        "derived",
        "A one-sided statement.",
        checks.in_sample_fails,
    ),
    Claim(
        "shrinkage-error",
        "Shrinking the eigenvalues gives back the error of fresh data to leading order.",
        "derived",
        "10 % at n/D >= 120 for the next order, plus two standard errors.",
        checks.plug_in("shrinkage", 120, 0.1),
    ),
    Claim(
        "neighbour-mixing",
        "Neighbours on the same side of the spectrum mix as second-order perturbation theory says.",
        "derived from arXiv:2605.14567 eq. 3.2",
        "Half of the value: the next order is of the size of the mixing over the gap, plus three "
        "standard errors.",
        laws.neighbour_mixing,
    ),
    Claim(
        "correction-helps",
        "The Wick correction of the moment operator raises the mean squared overlap.",
        "derived",
        "A one-sided statement, up to two standard errors of the difference.",
        laws.correction_helps,
    ),
    Claim(
        "rounding-at-threshold",
        "At its threshold a weak feature has squared overlap 0.85 D^(-1/3).",
        "derived (spiked random matrices)",
        "Half a unit for the chance level and heavy tails, plus three standard errors.",
        laws.rounding,
    ),
)
