"""Applications on top of the public API of `xsent`."""
