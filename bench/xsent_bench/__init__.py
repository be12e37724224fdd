"""Latency, memory, size and training cost by layers, beside other systems, and the report of all that."""

from functools import partial

from xsent.cli import terminal

main = partial(terminal.main, "xsent_bench.cli")  # the `xsent-bench` command

LENGTHS = (8, 16, 32, 64, 128, 256)  # tokens of a sentence
