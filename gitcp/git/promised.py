"""Finds and fetches objects that a partial clone has left at its remote."""

from collections.abc import Iterable
from pathlib import Path

from gitcp.errors import TransferError
from gitcp.git import process, transport
from gitcp.git.configuration import Values
from gitcp.git.objects import Objects
from gitcp.git.transport import Limits

_NO = frozenset({"false", "no", "off", "0"})
# Seconds of silence, and in all.
_LIMITS = Limits(60.0, 3600.0)
_SECTION, _KEY = "remote.", ".promisor"


def remotes(config: Values) -> list[str]:
    """Returns the remotes that promise what is missing here, in git's order."""
    found = [
        name.removeprefix(_SECTION).removesuffix(_KEY)
        for name, values in config.items()
        if name.startswith(_SECTION)
        and name.endswith(_KEY)
        and values[-1].lower() not in _NO
    ]
    # git asks this one last.
    last = config.get("extensions.partialclone", [])[-1:]
    return list(dict.fromkeys([name for name in found if name not in last] + last))


def fetch(
    git_dir: Path, config: Values, objects: Objects, oids: Iterable[bytes]
) -> None:
    """Fetches the missing ones among some objects, as git does on demand.

    It changes no ref. If the repository is no partial clone nothing is done.

    Raises:
        TransferError: no remote sends the objects.
    """
    promisors = remotes(config)
    if not promisors:
        return
    missing = sorted(oid for oid in set(oids) if not objects.exists(oid))
    if not missing:
        return
    said = ""
    for remote in promisors:
        while missing:
            reason = _ask(git_dir, remote, missing)
            left = [oid for oid in missing if not objects.exists(oid)]
            if reason and len(left) == len(missing):
                said = f"{remote}: {reason}"
                break
            # A wanted blob that is in a wanted tree as well is left out by git, by the
            # filter, if the tree comes first. Asked for without the tree it comes.
            missing = left if reason else []
        else:
            return
    count = f"{len(missing)} objects" if len(missing) > 1 else missing[0].hex()
    raise TransferError(
        f"{count} of this partial clone cannot be fetched from {said}",
        hint="nothing was changed; check that `git ls-remote` reaches the remote",
    )


def _ask(git_dir: Path, remote: str, missing: Iterable[bytes]) -> str:
    """Asks one remote for objects; returns git's error, or nothing."""
    ended = transport.run(
        [
            *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet"),
            *("--no-tags", "--no-write-fetch-head", "--recurse-submodules=no"),
            *("--no-auto-maintenance", "--filter=blob:none", "--stdin"),
            *("--", remote),
        ],
        cwd=git_dir,
        env={"GIT_DIR": str(git_dir)},
        limits=_LIMITS,
        doing=f"fetching what is missing from {remote}",
        data="".join(f"{oid.hex()}\n" for oid in missing).encode(),
    )
    return ended.reason() if ended.status else ""


def promised(git_dir: Path, config: Values) -> frozenset[bytes]:
    """Returns the missing objects that the user's own refs reach: the remote has them.

    Empty where the repository is no partial clone.

    Raises:
        GitFailedError: git cannot walk.
    """
    if not remotes(config):
        return frozenset()
    listed = process.run(
        ["rev-list", "--objects", "--missing=print", "--exclude=refs/gitcp/*", "--all"],
        cwd=git_dir,
        env={"GIT_DIR": str(git_dir)},
    )
    return frozenset(
        bytes.fromhex(line[1:].decode())
        for line in listed.splitlines()
        if line.startswith(b"?")
    )
