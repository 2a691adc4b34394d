"""What filters claim on images: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from solvable.frame.claims import Claim
from solvable.models.lofi_images import checks

PAPER = "arXiv:2605.13612"

NOTE = "measured, kernel limit; checks 8, 9, 10 and 15"

CLAIMS = (
    Claim(
        "few-directions-lose",
        "With 5 directions the error is at least twice that with 40.",
        f"{PAPER}: U-shape in k; {NOTE}",
        "Two standard errors of the paired ratio.",
        checks.few_directions,
    ),
    Claim(
        "many-directions-lose",
        "With the most directions, at least 160, the squared error is at least 3 % above the least.",
        f"{PAPER}: U-shape in k; {NOTE}",
        "Two standard errors of the paired ratio; 3 % above, where the note has 10 % and more on MNIST.",
        checks.many_directions,
    ),
    Claim(
        "filters-lower-the-squared-error",
        "From 400 samples the squared error at 40 directions is at least 5 % below that of the "
        "infinitely wide network without filters, both at their own leave-one-out penalty.",
        f"{PAPER}; {NOTE}",
        "Two standard errors of the paired ratio.",
        checks.below_unfiltered,
    ),
    Claim(
        "mnist-at-a-thousand",
        "MNIST, even or odd, 1,000 samples: at 40 directions the error is 0.3 points and the squared "
        "error 10 % below those of the network of three lifts without filters.",
        NOTE,
        "Two standard errors of the paired ratios, of which the one closer to failing is shown.",
        checks.mnist_headline,
    ),
    Claim(
        "digits-squared-error",
        "Digits, even or odd, 600 samples, two filters of 40: the squared error is 0.073.",
        NOTE,
        "0.006, four standard errors of five splits.",
        checks.digits_squared_error,
    ),
    Claim(
        "ten-digits",
        "Ten digits, 800 samples: the error of the best number of directions is below 1.1 %.",
        "measured, kernel limit; note 2.5",
        "Two standard errors.",
        checks.ten_digits,
    ),
    Claim(
        "lazy-features-are-worse",
        "At the same finite width a network with filters has the lower squared error.",
        f"{PAPER}; {NOTE}",
        "Two standard errors of the paired ratio.",
        checks.lazy_is_worse,
    ),
    Claim(
        "width-approaches-the-kernel",
        "The squared error of wider networks is closer to that of infinitely wide ones.",
        f"{PAPER}; {NOTE}",
        "Three standard errors.",
        checks.width_converges,
    ),
    Claim(
        "rate-in-width",
        "The Gram matrix of random features is as far from its kernel as predicted, at rate "
        "P^(-1/2).",
        "derived",
        "10 % for other images than those of the prediction, and three standard errors of 16 lifts.",
        checks.gram_rate,
    ),
    Claim(
        "meaningless-labels-have-a-ratio-of-one",
        "The strongest direction of permuted labels is as strong as that of labels drawn anew.",
        "derived; check 15",
        "0.1, and three standard errors; single ratios have a standard deviation of 0.2.",
        checks.permuted,
    ),
    Claim(
        "first-directions-stand-out",
        "The second direction, the first one removed, is at least three times as strong as that of "
        "meaningless labels.",
        "derived; check 15",
        "Two standard errors; 300 samples or more.",
        checks.stands_out,
    ),
    Claim(
        "chosen-directions-are-near-the-best",
        "Keeping what stands out of meaningless labels has at most 15 % more squared error than the "
        "best number of directions, which was chosen on the test images.",
        "derived",
        "Two standard errors of the paired ratio.",
        checks.auto_near_best,
    ),
)
