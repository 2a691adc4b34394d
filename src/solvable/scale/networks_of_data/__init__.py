"""Networks described from models and data sets of one's own."""
