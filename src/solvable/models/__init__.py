"""Solvable models: one folder per family, with the same file names in each folder."""
