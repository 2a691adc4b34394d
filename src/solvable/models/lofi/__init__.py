"""Neural low-degree filtering of Gaussian channels."""
