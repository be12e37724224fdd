"""Latency, memory, size and training cost by layers, beside other systems, and the report of all that."""

LAYERS = (0, 1, 2, 3, 4, 6)
LENGTHS = (8, 16, 32, 64, 128, 256)  # tokens of a sentence
