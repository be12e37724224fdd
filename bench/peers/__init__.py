"""Ours beside other systems, each in a process of its own, in turns."""
