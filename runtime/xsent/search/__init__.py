"""Finding the nearest sentences: an index on the disk, and what keeps it whole."""
