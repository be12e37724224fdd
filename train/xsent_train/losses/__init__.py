"""The objectives of the papers, each a pure function of tensors."""
