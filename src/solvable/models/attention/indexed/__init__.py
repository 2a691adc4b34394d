"""Attention-indexed models: the Bayes-optimal estimate of the weights of an attention layer."""
