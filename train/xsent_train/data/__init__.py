"""From parallel text on disk to batches of token ids."""
