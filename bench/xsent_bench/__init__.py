"""Latency, memory, size and training cost by layers, beside other systems, and a report."""

from functools import partial

from xsent.cli import terminal

main = partial(terminal.main, "xsent_bench.cli")  # the `xsent-bench` command

LENGTHS = (8, 16, 32, 64, 128, 256)  # tokens of the sentences that are timed
OURS = "xsent"  # the name of our system among those that are compared
