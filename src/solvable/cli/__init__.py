"""cli of solvable."""
