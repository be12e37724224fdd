"""Applications on top of the public API of `xsent`: other people's tools, a module each, and examples."""
