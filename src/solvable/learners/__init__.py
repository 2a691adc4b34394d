"""learners of solvable."""
