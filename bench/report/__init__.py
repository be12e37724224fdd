"""The report of a run: tables and plots, as Markdown and as one HTML file."""
