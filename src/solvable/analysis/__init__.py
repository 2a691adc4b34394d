"""Learning features from a data set, measured honestly, and told to a person."""
