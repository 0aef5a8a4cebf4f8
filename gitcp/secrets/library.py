"""The scanner library of the extra `gitcp[secrets]`: more rules, loaded on first use.

Loading its rules takes a quarter of a second; compiling them, once on a machine, takes three
seconds. It does both without Python's lock, so another thread can load them meanwhile.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from gitcp.secrets.tokens import Token

# Where Linux lists the threads of a process, including those of libraries.
_THREADS = "/proc/self/task"
# Seconds until a thread that has ended disappears from that list.
_GOING = 0.1


class Library:
    """The library with its rules."""

    def __init__(self, rules_dir: Path | None = None) -> None:
        """Uses `rules_dir` for the compiled rules if the library has no directory of its own.

        Raises:
            ImportError: the extra is not installed.
        """
        from importlib.metadata import version  # noqa: PLC0415

        import kingfisher_sdk  # noqa: PLC0415  optional, and slow to load

        self._sdk = kingfisher_sdk
        self._rules_dir = rules_dir
        self._scanner: Any = None
        self._loading: threading.Thread | None = None
        self.version = f"kingfisher {version('kingfisher-secret-scanner')}"

    @property
    def can_fork(self) -> bool:
        """Whether a forked process can scan: the library has no thread that a fork loses."""
        self._join()
        return self._scanner is None or _count_threads() == 1

    def begin(self) -> None:
        """Loads the rules in another thread, if threads can be counted afterwards."""
        if self._scanner is None and self._loading is None and _count_threads():
            self._loading = threading.Thread(target=self._try_to_load, daemon=True)
            self._loading.start()

    def prepare(self) -> None:
        """Loads the rules before a fork, so that each child has them already.

        Unless a child's safety with them cannot be checked: then each child loads its own.
        """
        if _count_threads():
            self._loaded()

    def __call__(self, data: bytes) -> Iterator[Token]:
        """Yields the secrets that the library finds in a text."""
        text = data.replace(b"\r", b"\n")
        for finding in self._loaded().scan(text):
            if not finding.visible:
                continue
            value = finding.secret.encode("utf-8", "surrogateescape")
            at = text.find(value)
            # The scanner has views of its own for text that the library decodes.
            if at >= 0:
                yield Token(finding.rule_id, value, at)

    def _join(self) -> None:
        if self._loading is None:
            return
        self._loading.join()
        self._loading = None
        # The system lists the ended thread for a moment longer.
        until = time.monotonic() + _GOING
        while _count_threads() > threading.active_count() and time.monotonic() < until:
            time.sleep(0.0005)

    def _loaded(self) -> Any:
        self._join()
        if self._scanner is None:
            self._scanner = self._load()
        return self._scanner

    def _try_to_load(self) -> None:
        # If it fails, the scan of the first text tries again, and raises the error.
        with suppress(Exception):
            self._scanner = self._load()

    def _load(self) -> Any:
        """Returns a scanner with the rules.

        The library keeps them in the user's cache directory. If there is none that it trusts
        (no HOME, as in a service), it keeps them in `rules_dir`, for later processes.
        """
        wanted = self._rules_dir
        own = wanted if wanted is not None and wanted.is_dir() else None
        rules = self._sdk.Rules(cache_dir=own)
        if wanted is not None and own is None and rules.cache_status == "bypassed":
            with suppress(OSError):
                wanted.mkdir(mode=0o700, parents=True)
        return self._sdk.Scanner(rules)


def _count_threads() -> int:
    """Returns the number of threads of this process, with those of libraries; 0 if unknown."""
    try:
        return len(os.listdir(_THREADS))
    except OSError:
        return 0


# The first result of `library`.
_first: list[Library | None] = []


def library(rules_dir: Path | None = None) -> Library | None:
    """Returns the library, the same one each time; None if the extra is not installed.

    Its rules are the same for all repositories: the first one's `rules_dir` counts.
    """
    if not _first:
        found = None
        with suppress(ImportError):
            found = Library(rules_dir)
        _first.append(found)
    return _first[0]
