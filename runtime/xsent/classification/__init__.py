"""Linear heads on frozen vectors."""
