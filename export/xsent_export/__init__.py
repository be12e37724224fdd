"""Export: a checkpoint becomes a bundle, measured against the encoder it came from before anyone gets it."""

from functools import partial

from xsent.cli import terminal

main = partial(terminal.main, "xsent_export.cli")  # the `xsent-export` command
