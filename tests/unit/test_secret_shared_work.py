"""Many texts scanned together and in several processes: found is what is found one by one."""

import os
import threading

import pytest

from gitcp.secrets import scanner as scanners
from gitcp.secrets import shared_work
from gitcp.secrets.scanner import Fingerprints, Scanner
from gitcp.secrets.shared_work import Work, scan_all
from tests.support.sample_secrets import sample_secrets

SCANNER = Scanner(Fingerprints(bytes(32)))
CODE = b"def add(one, other):\n    return one + other\n"
PROSE = b"It returns what the two are together, and nothing else.\n"


def mixed() -> list[Work]:
    """Returns short texts, one in ten of them with a secret, some that stand alone."""
    texts = []
    for at, (_, line) in enumerate(sample_secrets().values()):
        texts += [CODE * (at % 7 + 1), PROSE * 3]
        texts.append(f"before\n{line}\nafter".encode())
        texts.append(line.encode("utf-16"))
    return [Work(text) for text in texts] + [
        Work(b"DB_PASSWORD=correct7horse\n", b"deploy/.env"),
        Work(b"DB_PASSWORD=correct7horse\n", b"deploy/.environment"),
    ]


def one_by_one(works: list[Work]) -> list[list[scanners.Hit]]:
    return [SCANNER.scan([work.text], work.path) for work in works]


@pytest.fixture
def three_processes(monkeypatch):
    monkeypatch.setattr(shared_work, "_processes", lambda *_: 3)


def test_what_is_found_together_is_what_is_found_alone():
    works = mixed()
    assert scan_all(SCANNER, works) == one_by_one(works)
    assert any(one_by_one(works))


def test_several_processes_find_what_one_does(three_processes):
    works = mixed()
    assert scan_all(SCANNER, works) == one_by_one(works)


def test_nothing_is_nothing(three_processes):
    assert scan_all(SCANNER, []) == []


def test_texts_do_not_go_on_in_each_other():
    halves = [
        b"password = ",
        b'"correct7horse8battery"\n',
        b"the recovery phrase is",
        b"ladder stone river cloud paper green table mouse candle winter window bread\n",
        b"-----BEGIN PRIVATE KEY-----\n",
        b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n",
    ]
    works = [Work(half) for half in halves]
    assert one_by_one(works) == [[]] * len(works)
    assert SCANNER.scan([shared_work._BETWEEN.join(halves)]) == []


def test_a_process_that_dies_is_made_up_for(three_processes, monkeypatch):
    works, parent = mixed(), os.getpid()
    scan = shared_work._scan

    def dies(*given):
        if os.getpid() != parent:
            os._exit(9)
        return scan(*given)

    monkeypatch.setattr(shared_work, "_scan", dies)
    assert scan_all(SCANNER, works) == one_by_one(works)


def test_a_process_that_fails_is_made_up_for(three_processes, monkeypatch):
    works, parent = mixed(), os.getpid()
    scan = shared_work._scan

    def fails(*given):
        if os.getpid() != parent:
            raise MemoryError
        return scan(*given)

    monkeypatch.setattr(shared_work, "_scan", fails)
    assert scan_all(SCANNER, works) == one_by_one(works)


def test_no_process_is_left_behind(three_processes, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    parent = os.getpid()
    scan = shared_work._scan
    monkeypatch.setattr(
        shared_work,
        "_scan",
        lambda *given: interrupted() if os.getpid() == parent else scan(*given),
    )
    with pytest.raises(KeyboardInterrupt):
        scan_all(SCANNER, mixed())
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_program_with_threads_is_not_forked():
    works = [Work(CODE * 100_000)] * 3
    done = threading.Event()
    waiting = threading.Thread(target=done.wait)
    waiting.start()
    try:
        assert shared_work._processes(SCANNER, works) == 1
    finally:
        done.set()
        waiting.join()


def test_nor_is_one_in_which_the_library_has_begun(monkeypatch):
    scanner = Scanner(Fingerprints(bytes(32)), extra=lambda _: iter(()))
    monkeypatch.setattr(scanners, "_loaded", False)
    before = scanner.can_fork
    monkeypatch.setattr(scanners, "_loaded", True)
    assert (before, scanner.can_fork) == (True, False)
    assert shared_work._processes(scanner, [Work(CODE * 100_000)] * 3) == 1


def test_what_a_file_is_called_counts_among_others():
    text = b"SERVICE=q8Zt3vLx0mRwK2yB7nHs\n"
    works = [Work(CODE), Work(text), Work(text, b"deploy/.env"), Work(CODE)]
    assert [len(hits) for hits in one_by_one(works)] == [0, 0, 1, 0]
    assert scan_all(SCANNER, works) == one_by_one(works)


def test_so_does_how_its_letters_are_written():
    text = "password = 'correct7horse8battery'\n".encode("utf-16-le")
    works = [Work(CODE), Work(text), Work(CODE)]
    assert [len(hits) for hits in one_by_one(works)] == [0, 1, 0]
    assert scan_all(SCANNER, works) == one_by_one(works)
