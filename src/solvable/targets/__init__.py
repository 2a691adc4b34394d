"""targets of solvable."""
