"""Over-parametrised quadratic networks."""
