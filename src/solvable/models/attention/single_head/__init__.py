"""A single attention head with tied weights, trained on attention matrices."""
