"""Networks with sizes as powers of the dimension, patterns of feature learning, sample exponents."""
