"""Programs on the public API of `xsent`: commands, the engine for Ray, modules for other people's tools, examples."""
