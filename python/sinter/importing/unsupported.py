"""The exception that makes an op of torch run in eager."""


class Unsupported(Exception):
    """Sinter cannot take a node of the graph; the message says why, for `sinter.explain`."""
