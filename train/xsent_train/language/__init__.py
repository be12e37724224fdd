"""The package xsent_train.language."""
