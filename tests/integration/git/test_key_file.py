"""One key file in a repository; those of 0.1.0 stay in use (docs/format/storage.md, 8)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import gitcp
from gitcp.format.ledger import Record
from gitcp.git.area import is_secret
from gitcp.git.discover import discover
from gitcp.git.repository import Repository
from gitcp.git.secret import FINGERPRINTS, LEDGER, DerivedKey, KeyFile
from gitcp.ledger.signing import RecordSigner
from gitcp.sync.from_folder import _keys
from tests.support.gitrepo import make_repo
from tests.support.inprocess import invoke, ok

RECORD = Record(n=1, at="", kind="intent", branch="main", id="0123456789ab")


def earlier(place: Repository, purpose) -> bytes:
    """Makes the file that 0.1.0 made for a purpose."""
    return KeyFile(place, *purpose.earlier).make()


def test_a_save_a_step_and_a_scan_share_one_key_file(repo):
    (repo / "s.txt").write_text("AKIA" + "Z7QK3MNP2RTV5WXY\n")
    ok(repo, "save")
    gitcp.open(repo).session("main").step("a", lambda: 1)
    assert b"s.txt" in invoke(repo, "scan").stderr
    state = repo / ".git" / "gitcp"
    keys = [path for path in state.rglob("*") if is_secret(path.name)]
    assert keys == [state / "key"]


@pytest.mark.parametrize("purpose", [LEDGER, FINGERPRINTS])
def test_an_earlier_file_stays_the_key_for_its_purpose(repo, purpose):
    place = discover(repo)
    key = earlier(place, purpose)
    assert DerivedKey(place, purpose).make() == key
    assert DerivedKey(place, purpose).read() == key
    assert not (place.store_dir / "key").exists()


def test_keys_for_two_purposes_are_two(repo):
    place = discover(repo)
    keys = {KeyFile(place).make()}
    keys |= {DerivedKey(place, each).make() for each in (LEDGER, FINGERPRINTS)}
    assert len(keys) == 3


def test_a_record_is_ours_after_0_1_0_made_its_own_file(repo):
    place = discover(repo)
    sealed = replace(RECORD, seal=RecordSigner(place, "main").seal(RECORD))
    earlier(place, LEDGER)
    signer = RecordSigner(place, "main")
    assert signer.is_ours(sealed)
    assert signer.seal(RECORD) != sealed.seal
    assert not signer.is_ours(replace(RECORD, seal="0" * 32))


@pytest.mark.parametrize("has_file", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_the_keys_of_a_store_that_moves_are_believed(tmp_path, has_file, known):
    ours = discover(make_repo(tmp_path / "ours", {"f": b"1"}))
    theirs = discover(make_repo(tmp_path / "theirs", {"f": b"1"}))
    if known:
        KeyFile(ours).make()
    if has_file:
        earlier(theirs, FINGERPRINTS)
        earlier(theirs, LEDGER)
    sealed = replace(RECORD, seal=RecordSigner(theirs, "main").seal(RECORD))
    before = (
        replace(RECORD, seal=RecordSigner(ours, "main").seal(RECORD)) if known else None
    )
    fingerprints = DerivedKey(theirs, FINGERPRINTS).make()
    ours.make_directory(ours.store_dir)
    _keys(ours, theirs)
    _keys(ours, theirs)
    assert RecordSigner(ours, "main").is_ours(sealed)
    assert before is None or RecordSigner(ours, "main").is_ours(before)
    assert (DerivedKey(ours, FINGERPRINTS).read() == fingerprints) is not known
