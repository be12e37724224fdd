"""Embeddings, labels and search over HTTP."""
