"""Translations among sentences: margins, mining, scores of pairs."""
