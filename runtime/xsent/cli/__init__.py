"""The commands of `xsent`, one module each."""
