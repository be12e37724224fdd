"""Training: parallel text to a vocabulary, an encoder and a checkpoint."""

from functools import partial

from xsent import terminal

main = partial(terminal.main, "xsent.train.cli")  # the `xsent-train` command
