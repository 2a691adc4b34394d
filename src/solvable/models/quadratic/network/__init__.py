"""Wide quadratic networks, whose training is a convex problem."""
