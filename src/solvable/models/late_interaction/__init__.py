"""Late interaction: queries and documents are sets of tokens, scored by sums of maxima (MaxSim)."""
