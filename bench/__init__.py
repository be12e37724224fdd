"""Latency, memory and size per layer count (the measuring room; still empty)."""
