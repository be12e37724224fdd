"""The package xsent.files."""
