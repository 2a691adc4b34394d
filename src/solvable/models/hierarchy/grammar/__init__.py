"""System `random-hierarchy`: classification, next-token prediction and denoising of a grammar."""
