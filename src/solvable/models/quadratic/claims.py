"""What quadratic networks claim: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from solvable.frame.claims import Claim
from solvable.models.quadratic import checks, relations

NUCLEAR = "arXiv:2505.17958"

SCALING = "arXiv:2509.24882"

BAYES = "arXiv:2408.03733"

EXPANSION = (
    "The square of the first correction in 1/d; for samples also 1.5 d/n, what the shape of a sample's "
    "noise adds; four standard errors."
)

CLAIMS = (
    Claim(
        "test-error",
        "The error of the learned matrix is the predicted one at this dimension.",
        f"{NUCLEAR}; first order in 1/d derived",
        EXPANSION,
        checks.test_error,
    ),
    Claim(
        "train-error",
        "The training error is the predicted one at this dimension.",
        "derived",
        f"{EXPANSION} 1.5 d/n counts twice, as the training error is a square.",
        checks.train_error,
    ),
    Claim(
        "rank",
        "The network learns the predicted number of directions.",
        NUCLEAR,
        "One eigenvalue, 1.5 d/n of the rank for samples, and four standard errors.",
        checks.rank,
    ),
    Claim(
        "spectrum",
        "Learned eigenvalues are distributed as those of target plus noise, shifted and cut.",
        NUCLEAR,
        "Two eigenvalues, the first correction in 1/d of the rank, and 1.5 d/n of it for samples.",
        checks.spectrum,
    ),
    Claim(
        "out-of-the-noise",
        "As many learned directions stand out of the noise as predicted, the noise told by the fit.",
        "derived",
        "One eigenvalue, their number over the degrees of freedom left, and three standard errors.",
        relations.out_of_the_noise,
    ),
    Claim(
        "feature-errors",
        "Each group of the target's features has its predicted error.",
        "derived",
        "The first correction in 1/d, and 1.5 d/n for samples, of the mean error, which may fall on any "
        "feature; d^(-2/3) for the edges of a random target; four standard errors.",
        checks.features,
    ),
    Claim(
        "feature-errors-sum",
        "Predicted errors of the features add up to the predicted error.",
        "derived",
        "Accuracy of the quadrature over features of a continuous spectrum.",
        checks.decomposition,
    ),
    Claim(
        "training-data-tell-the-test-error",
        "The test error predicted from training data alone is the true one.",
        "derived",
        "d over the degrees of freedom that training leaves, and four standard errors.",
        relations.training_data_tell,
    ),
    Claim(
        "minimum",
        "What was found is the global minimum.",
        NUCLEAR,
        "The solver's own tolerance, of dual feasibility and duality gap.",
        relations.optimality,
    ),
    Claim(
        "network-is-convex",
        "Training the weights of a network, wide enough, finds the same minimum.",
        NUCLEAR,
        "What a gradient method leaves, relative to the objective.",
        relations.network_is_convex,
    ),
    Claim(
        "control-is-closer",
        "Samples lie above the limit by more than Gaussian matrices of the same covariance do.",
        "derived",
        "A one-sided statement; three standard errors.",
        relations.control_is_closer,
    ),
    Claim(
        "no-better-than-bayes",
        "The network's error is at least that of the best estimator.",
        BAYES,
        "A one-sided statement; three standard errors.",
        relations.above_bayes,
    ),
    Claim(
        "pruning-helps",
        "Cutting the learned spectrum at the edge of the noise lowers the error where it should.",
        SCALING,
        "A one-sided statement where at least 15 % are predicted and d/n is below 0.06.",
        relations.pruning,
    ),
    Claim(
        "denoising-helps",
        "The rotationally invariant denoiser lowers the error where it should.",
        "derived",
        "A one-sided statement where at least 15 % are predicted and d/n is below 0.06.",
        relations.denoising,
    ),
    Claim(
        "perfect-recovery",
        "Without label noise a low-rank target is recovered beyond the predicted sample size.",
        NUCLEAR,
        "A thousandth of the error of knowing nothing, from 8 % above the threshold on.",
        relations.recovery,
    ),
    Claim(
        "no-recovery-below",
        "Short of that size a low-rank target is not recovered.",
        NUCLEAR,
        "Two hundredths of the error of knowing nothing, up to 16 % below the threshold.",
        relations.no_recovery,
    ),
)
