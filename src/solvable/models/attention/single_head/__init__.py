"""Training of a single attention head with tied weights on attention matrices."""
