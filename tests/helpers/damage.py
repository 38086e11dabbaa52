"""Ways to damage a file, for tests of what refuses it."""

from pathlib import Path


def flip(path: Path, place: int) -> None:
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
