"""Programs on the public API of `xsent`: commands, modules for other people's tools, examples."""
