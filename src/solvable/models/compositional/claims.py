"""What compositional targets claim: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from solvable.frame.claims import Claim
from solvable.models.compositional import checks
from solvable.models.compositional import scaling_checks as scaling

PAPER = "arXiv:2602.10867"

CLAIMS = (
    Claim(
        "overlap-of-each-rotated-feature",
        "The squared overlap of every recovered rotated feature is on the curve of its eigenvalue.",
        "derived: the spike law in the eigenbasis of the effective matrix",
        "0.06 covers corrections of relative order (D/n)^(1/2) and 1/d, plus four standard errors.",
        checks.feature_overlap,
    ),
    Claim(
        "subspace-overlap",
        "The overlap of the whole first representation, recovered or not, is on its curve.",
        "derived",
        "0.04 for features at their threshold, plus three standard errors.",
        checks.subspace_overlap,
    ),
    Claim(
        "dense-like-diagonal",
        "A dense last layer is a diagonal one in rotated features: both obey one law.",
        "derived",
        "0.02 for differences of 1/d between directions, plus three standard errors.",
        checks.dense_like_diagonal,
    ),
    Claim(
        "last-layer-eigenvalues",
        "The eigenvalues of the fitted last layer are those of B, each shrunk by its overlap.",
        "derived",
        "5 % of the norm for the noise of the fit, plus three standard errors.",
        checks.last_layer,
    ),
    Claim(
        "last-layer-recovered",
        "Once nine tenths of B are within reach, its eigenvalues are found.",
        PAPER,
        "20 % of the norm: what is not recovered yet.",
        checks.last_layer_found,
    ),
    Claim(
        "error-level",
        "The normalised error of three layers is the predicted one.",
        "derived",
        "10 % for heavy tails of the label, plus three standard errors.",
        checks.error_level,
    ),
    Claim(
        "recovery-crossing",
        "Half of the representation is found at the predicted number of samples.",
        "derived",
        "A factor of 1.22: interpolation between sizes a factor of two apart, and seeds.",
        scaling.crossing_place,
    ),
    Claim(
        "recovery-scaling",
        "The number of samples that recovery takes grows with d as predicted: d^(q+epsilon), less "
        "finite-size corrections.",
        f"{PAPER}: n ~ d^(q+epsilon)",
        "0.4: rounding of d^epsilon to whole features and seeds, over a factor of two in d.",
        scaling.recovery_scaling,
    ),
    Claim(
        "gap-to-kernels-grows",
        "As a share of the d^(2q)/(2q)! samples of a kernel, recovery falls at least as 1/d.",
        f"{PAPER}: d^(q+epsilon) against d^(2q)",
        "A one-sided statement; the exponent is epsilon - q in the limit.",
        scaling.below_kernel,
    ),
    Claim(
        "kernel-sees-nothing",
        "Where the layered learner has an error below 0.8, a kernel misses at least nine tenths of "
        "all that is not of degree 2 in the input.",
        PAPER,
        "A one-sided statement.",
        checks.kernel_blind,
    ),
    Claim(
        "kernel-floor",
        "No kernel beats degree 2 of the label and n of the D_4 directions of degree 4.",
        "derived",
        "0.02 for the part of degree 2 as estimated by Monte Carlo, plus three standard errors.",
        checks.kernel_floor,
    ),
    Claim(
        "second-representation-ceiling",
        "The second representation is found no better than the first one lets through.",
        "derived",
        "0.05 for the law of the first step, plus three standard errors.",
        scaling.inner_ceiling,
    ),
    Claim(
        "first-before-second",
        "The first representation is found before the second.",
        PAPER,
        "A one-sided statement.",
        scaling.first_before_second,
    ),
)
