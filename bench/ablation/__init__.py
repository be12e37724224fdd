"""The ablations of the papers at small scale."""
