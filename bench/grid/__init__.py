"""Latency, memory, size and start by layers, precision, backend and threads, each in processes of its own."""

LAYERS = (0, 1, 2, 3, 4, 6)
LENGTHS = (8, 16, 32, 64, 128, 256)  # tokens of a sentence
