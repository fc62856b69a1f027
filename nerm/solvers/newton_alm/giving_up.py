"""What ends the augmented Lagrangian where another method waits that would be faster by now."""


class GaveUpError(Exception):
    """More work than whoever asked wants to wait for."""
