"""Attention-indexed models: Bayes-optimal estimation of the weights of an attention layer."""
