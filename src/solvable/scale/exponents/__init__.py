"""Networks as powers of the dimension, patterns of feature learning, the sample exponent."""
