"""Reports, comparison with eager, and bisection."""
