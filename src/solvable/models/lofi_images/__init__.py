"""Neural low-degree filtering of images."""
