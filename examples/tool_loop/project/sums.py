"""Sums of whole numbers."""


def total(n: int) -> int:
    """Return 1 + 2 + ... + n."""
    return sum(range(1, n))
