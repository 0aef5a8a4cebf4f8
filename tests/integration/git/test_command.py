"""Programs that run on gitcp's own input and output."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from gitcp.git.command import tee

# Ten seconds at most.
_WAITS = """
trap 'exit 9' TERM
touch up
for _ in 0 1 2 3 4 5 6 7 8 9; do for _ in 0 1 2 3 4 5 6 7 8 9; do sleep 0.1; done; done
"""


@pytest.fixture
def ended():
    """The handler of a signal to end, as it is before a program runs."""

    def handler(*_: object) -> None:
        return

    before = signal.signal(signal.SIGTERM, handler)
    yield handler
    signal.signal(signal.SIGTERM, before)


def test_a_signal_that_another_thread_gets_is_handed_on(tmp_path, ended):
    def end() -> None:
        while not (tmp_path / "up").exists() or is_ours():
            time.sleep(0.01)
        # As the system may choose, and as if it came before the other thread waits.
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    def is_ours() -> bool:
        return signal.getsignal(signal.SIGTERM) is ended

    other = threading.Thread(target=end)
    other.start()
    done = tee(["sh", "-c", _WAITS], cwd=tmp_path, keep=100)
    other.join()
    assert done.status == 9
    assert is_ours()
