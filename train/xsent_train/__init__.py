"""Training: parallel text to a vocabulary, an encoder and a checkpoint."""

from functools import partial

from xsent.cli import terminal

main = partial(terminal.main, "xsent_train.cli")  # the `xsent-train` command
