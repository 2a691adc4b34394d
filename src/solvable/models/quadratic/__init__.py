"""Wide, narrow and diagonal quadratic networks, and gradient flow of quadratic networks."""
