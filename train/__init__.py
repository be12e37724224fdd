"""Training: parallel text to a vocabulary, an encoder and a checkpoint."""
