"""Types, sizes, names, layouts and registered ops of graphs of torch."""
