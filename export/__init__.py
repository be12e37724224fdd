"""Export: a checkpoint becomes a bundle, measured against the encoder it came from before anyone gets it."""

from functools import partial

from xsent import terminal

main = partial(terminal.main, "xsent.export.cli")  # the `xsent-export` command
