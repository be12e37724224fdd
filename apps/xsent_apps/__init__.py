"""Applications on top of the public API of `xsent`, and its place in other people's tools."""
