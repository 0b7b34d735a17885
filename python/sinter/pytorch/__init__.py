"""Sinter for PyTorch: the backend of torch.compile, and modules made by torch.export."""
