"""report of solvable."""
