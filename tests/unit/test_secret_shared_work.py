"""Many texts scanned together and in several processes: found is what is found one by one."""

import importlib.metadata
import os
import random
import sys
import threading
from types import SimpleNamespace

import pytest

from gitcp.secrets import library, shared_work
from gitcp.secrets import scanner as scanners
from gitcp.secrets.library import Library
from gitcp.secrets.scanner import Fingerprints, Scanner
from gitcp.secrets.shared_work import Work, scan_all
from gitcp.secrets.text import Text, Words
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
    fork = os.fork
    made = []

    def noted():
        made.append(fork())
        return made[-1]

    monkeypatch.setattr(os, "fork", noted)
    monkeypatch.setattr(
        shared_work,
        "_scan",
        lambda *given: interrupted() if os.getpid() == parent else scan(*given),
    )
    with pytest.raises(KeyboardInterrupt):
        scan_all(SCANNER, mixed())
    assert made
    # Other tests of this process may have left some of their own.
    for pid in made:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


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


@pytest.fixture
def sdk(monkeypatch):
    """A scanner library that sees `tok-`; `loads` lists the threads that loaded its rules."""

    class Rules:
        cache_status = "loaded"

        def __init__(self, cache_dir):
            loads.append(threading.current_thread())

    class SdkScanner:
        def __init__(self, rules):
            pass

        def scan(self, data):
            seen = SimpleNamespace(visible=True, rule_id="made-up", secret="tok-1")
            return [seen] if b"tok-1" in data else []

    loads: list[threading.Thread] = []
    made = SimpleNamespace(Rules=Rules, Scanner=SdkScanner, loads=loads)
    monkeypatch.setitem(sys.modules, "kingfisher_sdk", made)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "0")
    return made


WITH_TOKENS = [Work(b"tok-1 " * (at % 3 == 0) + CODE * 10_000) for at in range(9)]


def test_the_rules_of_the_library_are_loaded_once_for_all_processes(
    sdk, three_processes
):
    scanner = Scanner(Fingerprints(bytes(32)), extra=Library())
    scanner.begin()
    found = scan_all(scanner, WITH_TOKENS)
    assert [len(hits) for hits in found] == [1, 0, 0] * 3
    (loaded_in,) = sdk.loads
    assert loaded_in is not threading.main_thread()


def test_the_rules_are_loaded_before_the_program_is_forked(sdk, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    # The tests' own runner has threads.
    monkeypatch.setattr(library, "_count_threads", lambda: 1)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    scanner = Scanner(Fingerprints(bytes(32)), extra=Library())
    assert shared_work._processes(scanner, WITH_TOKENS) == 2
    assert sdk.loads == [threading.main_thread()]


def test_a_thread_that_has_just_ended_is_waited_for(sdk, monkeypatch):
    counts = iter([1, 2, 2, 1, 1, 1])
    monkeypatch.setattr(library, "_count_threads", lambda: next(counts))
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    extra = Library()
    extra.begin()
    assert extra.can_fork


def test_where_threads_cannot_be_counted_nothing_is_loaded_before_a_fork(
    sdk, monkeypatch
):
    monkeypatch.setattr(library, "_THREADS", "/nowhere")
    extra = Library()
    extra.begin()
    extra.prepare()
    assert (sdk.loads, extra.can_fork) == ([], True)
    list(extra(b"text"))
    assert (len(sdk.loads), extra.can_fork) == (1, False)


def test_a_library_with_threads_of_its_own_is_not_forked(sdk, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(library, "_count_threads", lambda: 2)
    scanner = Scanner(Fingerprints(bytes(32)), extra=Library())
    assert shared_work._processes(scanner, WITH_TOKENS) == 1


def test_rules_that_cannot_be_loaded_beside_are_loaded_with_the_first_text(
    sdk, monkeypatch
):
    load = Library._load

    def fails_beside(self):
        if threading.current_thread() is not threading.main_thread():
            raise OSError
        return load(self)

    monkeypatch.setattr(Library, "_load", fails_beside)
    extra = Library()
    extra.begin()
    assert len(list(extra(b"tok-1"))) == 1


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


@pytest.mark.parametrize(
    "words",
    [
        (b"key", b"keypass", b"pass", b"pass:", b"pat"),
        (b"token", b"{sha", b"{ssha", b" * ", b":::"),
        (b"0000000 ", b"00000000  ", b"0x"),
        (b"echo ", b"seed", b"secret"),
    ],
)
def test_words_are_found_wherever_they_start(words):
    chance = random.Random(1)
    parts = [*words, *(word[:-1] for word in words), b"s", b"0", b" ", b"p"]
    for _ in range(300):
        data = b"".join(chance.choices(parts, k=12))
        starts = {
            at
            for at in range(len(data))
            if any(data.startswith(word, at) for word in words)
        }
        assert Words(*words).starts(Text(data.upper())) == sorted(starts)
        assert Words(*words).found_in(Text(data.upper())) == bool(starts)
