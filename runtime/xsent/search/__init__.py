"""Search: an index on disk, and what keeps it intact."""
