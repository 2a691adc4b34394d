"""Pruned, denoised and factored weights, and the loss that a user's function measures for each."""
