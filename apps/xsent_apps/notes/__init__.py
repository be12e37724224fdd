"""The files of a folder, searched by meaning and by words."""
