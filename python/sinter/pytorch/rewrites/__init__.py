"""Rewrites of graphs of torch before they are converted."""
