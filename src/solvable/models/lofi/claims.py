"""What low-degree filters claim: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from solvable.frame.claims import Claim
from solvable.models.lofi import checks

LU_LI = "Lu and Li, arXiv:1702.06435"

PAPER = "arXiv:2605.13612"

CLAIMS = (
    Claim(
        "overlap-through-emergence",
        "The squared overlap of the first filter with its direction is on the predicted curve, "
        "below, at and above the threshold.",
        f"{LU_LI}; rounding at finite d derived",
        "0.04 for corrections of relative order 1/d and the profile at threshold, plus four standard "
        "errors, as overlaps at threshold are skewed.",
        checks.overlap,
    ),
    Claim(
        "place-of-the-outlier",
        "The eigenvalue of a found direction is at psi(lambda*).",
        LU_LI,
        "3 % of the edge for finite d, plus three standard errors.",
        checks.eigenvalue,
    ),
    Claim(
        "edge-of-the-bulk",
        "The extreme eigenvalue at the end without a direction is at the edge of the bulk.",
        LU_LI,
        "5 % and 0.01: an extreme eigenvalue lies a Tracy-Widom fluctuation, d^(-2/3), inside.",
        checks.edges,
    ),
    Claim(
        "nothing-below-threshold",
        "Far below the threshold the leading eigenvector is unrelated to the direction.",
        LU_LI,
        "Three standard errors above 0.1.",
        checks.nothing_below,
    ),
    Claim(
        "lift-as-label-map",
        "An infinitely wide lift before the filter acts like a map of the label.",
        "derived",
        "0.05 for terms of order d^(-1/2) from fluctuating norms, plus four standard errors.",
        checks.lifted,
    ),
    Claim(
        "hidden-overlap",
        "Among strong irrelevant directions the best eigenvector has the predicted overlap.",
        "derived",
        "0.1: levels of a bulk repel one another, which the theory treats roughly.",
        checks.hidden_overlap,
    ),
    Claim(
        "hidden-rank",
        "A weak feature is found behind the strong irrelevant directions in the ranking by modulus.",
        "derived",
        "A quarter of the number of strong directions, plus three standard errors.",
        checks.hidden_rank,
    ),
    Claim(
        "deflation-restores",
        "Without the strong directions the overlap is that of isotropic inputs.",
        "derived",
        "0.05, plus three standard errors.",
        checks.deflated_overlap,
    ),
    Claim(
        "deflation-leads",
        "Without the strong directions a found feature leads the ranking.",
        "derived",
        "Every replicate counts.",
        checks.deflation_leads,
    ),
    Claim(
        "subspace-overlap",
        "The overlap of the kept eigenvectors with the subspace of the label is the predicted one.",
        "derived",
        "0.05 for d = 60, plus four standard errors.",
        checks.subspace,
    ),
    Claim(
        "both-signs-needed",
        "Eigenvectors of one sign hold half of the subspace at most.",
        f"{PAPER}: ranking by modulus",
        "0.05 for chance, plus three standard errors.",
        checks.one_sign,
    ),
    Claim(
        "filter-beats-kernels",
        "One filter before an infinitely wide layer lowers the error by ten points below networks of "
        "one and three layers without filter.",
        f"{PAPER}; figures of note 3.4",
        "A one-sided statement.",
        checks.beats_kernels,
    ),
    Claim(
        "error-above-its-floor",
        "No readout of the learned coordinates beats the Bayes error given their overlaps.",
        "derived",
        "0.02 for overlaps that differ between directions and samples, plus three standard errors.",
        checks.above_floor,
    ),
)
