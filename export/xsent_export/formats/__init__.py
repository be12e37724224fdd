"""The package xsent_export.formats."""
