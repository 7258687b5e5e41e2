"""Functions for worker processes to find: a module that is imported by its name."""


def take_memory(amount: int) -> int:
    held = bytearray(amount)
    held[::4096] = b"x" * len(held[::4096])
    return len(held)
