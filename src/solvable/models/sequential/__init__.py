"""Sequential feature recovery: a hierarchical target and a layer-wise spectral learner."""
