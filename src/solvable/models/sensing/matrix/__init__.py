"""Matrix sensing: estimation of symmetric matrices of high rank from noisy measurements."""
