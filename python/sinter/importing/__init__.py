"""Turns ops on named tensors with symbolic sizes into entries of Sinter's modules. No framework is imported here:
importers of torch and of other formats stand on it."""
