"""A request to stop, which a training heeds when it has saved its state."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def caught_signals() -> Iterator[list[int]]:
    """Collects the first SIGTERM or SIGINT instead of dying of it; a second one kills as usual."""
    caught: list[int] = []

    def catch(number: int, _: object) -> None:
        caught.append(number)
        put_back()

    def put_back() -> None:
        for name, handler in before.items():
            signal.signal(name, handler)

    before = {name: signal.signal(name, catch) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield caught
    finally:
        put_back()
