"""The package xsent_bench.experiments."""
