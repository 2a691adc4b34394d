"""spectra of solvable."""
