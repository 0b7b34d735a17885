"""Weights of codes in graphs of torch."""
