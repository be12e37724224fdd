"""Export: turn a checkpoint into a bundle, and measure it against its encoder before it is written."""

from functools import partial

from xsent.cli import terminal

main = partial(terminal.main, "xsent_export.cli")  # the `xsent-export` command
