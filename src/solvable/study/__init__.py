"""study of solvable."""
