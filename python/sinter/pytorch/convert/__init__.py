"""Conversion of parts of a graph of torch into entries of Sinter's modules."""
