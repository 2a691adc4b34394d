"""Pages on which theory lines follow the parameters of a system."""
