"""The back end of PyTorch's, which is not here."""
