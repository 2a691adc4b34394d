"""operators of solvable."""
