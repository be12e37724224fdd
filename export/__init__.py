"""Export: a checkpoint becomes a bundle, measured against the encoder it came from before anyone gets it."""
