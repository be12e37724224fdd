"""Small programs to read and to start from."""
