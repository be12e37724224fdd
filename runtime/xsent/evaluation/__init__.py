"""Published protocols: an encoder and files in, a table with a note out. They measure; nothing is chosen by them."""
