"""The package xsent_train.teacher."""
