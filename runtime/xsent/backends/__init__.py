"""The package xsent.backends."""
