"""Matrix sensing: symmetric matrices of high rank from noisy measurements."""
