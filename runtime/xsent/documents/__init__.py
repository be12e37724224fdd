"""Document vectors from sentence vectors (LAWDR)."""
