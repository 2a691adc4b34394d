"""theory of solvable."""
