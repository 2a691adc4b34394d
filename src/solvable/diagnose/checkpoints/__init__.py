"""Phase, features, tail and norm of matrices along a series of checkpoints."""
