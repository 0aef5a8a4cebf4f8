"""A pattern over git repositories: `https://host/sessions-{shard:02x}.git`.

A session is in the repository whose number its name gives, so that every machine finds it
without asking (docs/decisions/0121).
"""

import hashlib
import re
from typing import NamedTuple

from gitcp.errors import UsageError
from gitcp.names import quoted

# How the number is written, and how many repositories there are then.
_FORMS = {"{shard:x}": 16, "{shard:02x}": 256}
_FIELD = re.compile(r"\{[^{}]*\}")
_SHARD = re.compile(r"\{shard[^{}]*\}")
# A URL, its host and its path; what ssh takes as `user@host:path`; an absolute path.
_URL = re.compile(r"(https?|ssh|git|file)://([^/\s]*)(/[^\s\x00-\x1f\x7f]*)")
_SCP = re.compile(r"(?!-)([\w.-]+@)?[\w.-]+:(?!:|//)[^\s\x00-\x1f\x7f]+")
_PATH = re.compile(r"/[^\x00-\x1f\x7f]*")
_STORE = re.compile(r"(s3|gs|az)://")
_EXPECTED = "write {shard:x} for 16 repositories, or {shard:02x} for 256, once"


class ShardPattern(NamedTuple):
    """A pattern: what it says, its field, and the number of repositories."""

    text: str
    field: str
    repositories: int

    def number(self, session: str) -> int:
        """Returns the repository of a session, by its name as it stands in a ref."""
        return hashlib.sha256(session.encode()).digest()[0] % self.repositories

    def address(self, number: int) -> str:
        """Returns the address of a repository."""
        return self.text.replace(self.field, self.field.format(shard=number), 1)

    @property
    def stem(self) -> str:
        """What its repositories are called, without the number."""
        last = self.text.replace(self.field, "").rstrip("/").rpartition("/")[2]
        name = last.rpartition(":")[2].removesuffix(".git")
        return name.strip("-_.") or "remote"


def parse(given: str) -> ShardPattern | None:
    """Returns the pattern that an address is; None for an address without a field.

    Raises:
        UsageError: the address has a field, and gitcp cannot use the pattern.
    """
    fields = _FIELD.findall(given)
    address = _URL.fullmatch(given)
    if not (_SHARD.search(given) or (fields and (address or _STORE.match(given)))):
        return None
    if _STORE.match(given):
        raise UsageError(
            "a pattern over shards is for git repositories; an object store has"
            " no limit on pushes",
            hint="name the object store without {shard}",
        )
    if len(fields) != 1 or fields[0] not in _FORMS:
        raise UsageError(
            f"the pattern has {', '.join(fields)}, which gitcp cannot use",
            hint=_EXPECTED,
        )
    if address is not None:
        _check_host(address[1], address[2])
    elif not (_SCP.fullmatch(given) or _PATH.fullmatch(given)):
        raise UsageError(
            "the pattern is not the address of git repositories",
            hint="write a URL (https, ssh, git, file), USER@HOST:PATH or an absolute path",
        )
    return ShardPattern(given, fields[0], _FORMS[fields[0]])


def _check_host(scheme: str, host: str) -> None:
    """Refuses a host that a pattern cannot have.

    Raises:
        UsageError: the host contains the field, or something that may be secret.
    """
    user, _, _ = host.rpartition("@")
    # The pattern is in the names of refs and in the spool, where every reader sees it.
    if (user and scheme.startswith("http")) or ":" in user:
        raise UsageError(
            "a pattern may not hold a password or a token: gitcp names refs after it",
            hint="remove it, and set a credential helper, or"
            " `git config --global url.URL-WITH-TOKEN.insteadOf URL`",
        )
    if _FIELD.search(host):
        raise UsageError(
            "{shard} is in the host of the pattern, but belongs in its path",
            hint="write https://HOST/PATH-{shard:02x}.git",
        )


def refuse_in(remote: str, url: str) -> None:
    """Refuses a pattern as the URL of a git remote: git would not understand it.

    Raises:
        UsageError: the URL has the field of a pattern.
    """
    if _SHARD.search(url):
        raise UsageError(
            f"the address of {remote} is a pattern over shards, which git cannot use",
            hint=f"`git remote remove {quoted(remote)}`, then `git config gitcp.remote PATTERN`",
        )
