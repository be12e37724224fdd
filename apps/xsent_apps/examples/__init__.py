"""Scripts that show what the encoder is for, on data of our own; `README.md` has what they print."""
