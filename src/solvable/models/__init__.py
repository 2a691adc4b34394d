"""One folder per family of solvable models, the same file names in each."""
