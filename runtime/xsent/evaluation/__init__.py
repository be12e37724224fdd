"""Published protocols: from an encoder and files to a table with a note. They only measure."""
