"""Remotes: lists them and their refs, and sends and fetches exact commits."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import TransferError, UsageError
from gitcp.format.oid import PATTERN
from gitcp.git import other_form, shard_pattern, store_address, transport
from gitcp.git.push_directory import naming_for_push
from gitcp.git.repository import Repository, naming
from gitcp.git.transport import Limits, Look, Told, TooLongError
from gitcp.git.unreachable import LISTED, too_many, unreachable
from gitcp.names import quoted

_URL = re.compile(r"(https?|ssh|git)://[^\s\x00-\x1f\x7f]+")
# `<helper>::<address>` runs a program; these two run any.
_RUNS = re.compile(r"(ext|fd)::")
_OID = re.compile(PATTERN)
# git's words for what the other side refused, and before what that says.
REFUSED_THERE = "[remote rejected]"
_SAID_THERE = "remote: "
# Lines that only repeat that a hook declined: git's own, and gitolite's of a hook it called.
_VERDICT = re.compile(
    r"error: hook declined to update |FATAL: VREF/\S+: helper program exit status "
)
_AT_MOST = 3
# What a list of refs may take in git: half a million refs of a usual length.
_LISTING = 384 * 1024 * 1024
_NO_MEMORY = "out of memory"
# Of the bytes that an argument list may have, the environment's too, what a push takes.
_SHARE = 4
_QUIET = (
    "--no-tags",
    "--no-prune",
    "--no-prune-tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-write-commit-graph",
    "--refmap=",
)


def find(repository: Repository, given: str) -> str:
    """Returns how a remote is called: by its name, a URL, or a pattern over shards.

    Raises:
        UsageError: the text is none of these, or the address would run a program.
    """
    if shard_pattern.parse(given) is not None:
        return given
    if _URL.fullmatch(given) and not _RUNS.search(given):
        return given
    if store_address.check_given(given):
        return given
    names = [given]
    if not any(name == f"remote.{given}.url" for name, _ in repository.config_items):
        # git knows other places for them, too.
        names = repository.git("remote").decode("utf-8", "surrogateescape").splitlines()
    if given not in names or given.startswith("-"):
        known = f"; there is {', '.join(names)}" if names else ""
        if repository.private and not names:
            raise UsageError(
                f"{repository.top} has no git repository, and so no remote {given!a}",
                hint="name a URL (https, ssh, git); or `gitcp export SEL -o FILE` writes a file",
            )
        raise UsageError(
            f"there is no remote {given!a}{known}",
            hint="`git remote add NAME URL` adds one; name the remote first",
        )
    section = f"remote.{given.lower()}"
    for key in (f"{section}.url", f"{section}.pushurl"):
        for url in repository.config.get(key, []):
            shard_pattern.refuse_in(given, url)
            if url.startswith("-") or not url.isprintable() or _RUNS.match(url):
                raise UsageError(
                    f"the address of {given}, {url!a}, is not one that gitcp can use",
                    hint=f"look at it with `git config {quoted(key)}`",
                )
    return given


def address_of(repository: Repository, remote: str) -> str:
    """Returns where a fetch from a remote goes: its first URL, or what was given."""
    urls = repository.config.get(f"remote.{remote.lower()}.url", [])
    return urls[0] if urls else remote


def addresses(repository: Repository, remote: str) -> list[str]:
    """Returns where a push to a remote goes, if that is elsewhere than a fetch; or it.

    There may be several: git sends to all of them.
    """
    section = f"remote.{remote.lower()}"
    urls = repository.config.get(f"{section}.url", [])
    given = repository.config.get(f"{section}.pushurl", [])
    return given or (urls if len(urls) > 1 else [remote])


class RefusedError(TransferError):
    """git would not take what came."""


class Advertised(NamedTuple):
    """The refs of a remote below some prefixes; `symbolic` are those that name another."""

    refs: dict[str, str]
    symbolic: frozenset[str]


def advertised(
    repository: Repository,
    remote: str,
    prefixes: Sequence[str],
    *,
    address: str | None = None,
    limits: Limits,
    interactive: bool = False,
) -> Advertised:
    """Asks a remote for its refs below some prefixes, at another `address` if need be.

    Raises:
        TransferError: the remote cannot be reached, or its answer is not a list of refs.
    """
    try:
        ended = transport.run(
            [
                *("ls-remote", "--refs", "--symref", "--", address or remote),
                *(f"{prefix}*" for prefix in prefixes),
            ],
            cwd=repository.top or repository.git_dir,
            env=naming(repository),
            limits=listing(limits),
            doing=f"asking {remote}",
            interactive=interactive,
        )
    except TooLongError as exc:
        raise too_many(remote) from exc
    if ended.status and _NO_MEMORY in ended.reason().lower():
        raise too_many(remote)
    if ended.status:
        raise unreachable(remote, ended.reason())
    refs, symbolic = dict[str, str](), set[str]()
    for line in ended.out.decode("utf-8", "surrogateescape").splitlines():
        word, _, name = line.partition("\t")
        if not name.startswith(tuple(prefixes)):
            continue
        if word.startswith("ref: "):
            symbolic.add(name)
        elif _OID.fullmatch(word):
            refs[name] = word
    if any(len(oid) != repository.form.digits for oid in refs.values()):
        raise other_form.of(repository.form, remote)
    return Advertised(refs, frozenset(symbolic))


def listing(limits: Limits) -> Limits:
    """Returns limits for a git that lists the refs of another repository."""
    return limits._replace(memory=_LISTING, out=LISTED)


def bundled(repository: Repository, source: str, limits: Limits) -> bytes:
    """Returns the refs in a bundle as git lists them, once it is known to be one.

    Raises:
        TransferError: the file is not a bundle, or lists more than may be read.
    """
    with Path(source).open("rb") as file:
        head = file.read(LISTED)
    if len(head) == LISTED and b"\n\n" not in head:
        # git reads it byte by byte.
        raise too_many(source)
    listed = b""
    # With -q the first would not say which commits a bundle needs that are not here.
    for verb in ("verify", "list-heads"):
        ended = transport.run(
            ["bundle", verb, source],
            cwd=repository.top or repository.git_dir,
            env=naming(repository),
            limits=listing(limits),
            doing="reading it",
        )
        if ended.status:
            raise TransferError(
                f"git bundle failed: {ended.reason()}", hint="nothing was adopted"
            )
        listed = ended.out
    return listed


class Update(NamedTuple):
    """A ref of a remote to move from `old` (None: it is not there) to `new`."""

    ref: str
    old: str | None
    new: str


class Answer(NamedTuple):
    """The result of a ref update: git's flag for it, and its message."""

    flag: str
    reason: str

    @property
    def done(self) -> bool:
        """Whether the remote has the commit now."""
        return self.flag in " +*="


def send(
    repository: Repository,
    remote: str,
    updates: Sequence[Update],
    *,
    limits: Limits,
    replaces: bool = False,
    progress: Told | None = None,
    interactive: bool = False,
) -> dict[str, Answer]:
    """Moves refs of a remote, each only if it is where it is expected to be.

    `replaces` says that what is there goes, and that what takes its place has much of it.

    Raises:
        TransferError: the remote cannot be reached, or broke off.
    """
    answers: dict[str, Answer] = {}
    env = naming_for_push(repository, remote)
    env |= _settings({f"remote.{remote}.mirror": "false"})
    if replaces and not (repository.common_dir / "shallow").exists():
        # git leaves out what the parents of new commits hold; what else is there only where
        # it has to be thrifty, for a shallow repository. Without this all is sent again.
        env |= {"GIT_SHALLOW_FILE": os.devnull}
    for part in _in_pushes(updates):
        leases = [f"--force-with-lease={one.ref}:{one.old or ''}" for one in part]
        ended = transport.run(
            [
                "push",
                "--porcelain",
                "--progress",
                "--no-verify",
                "--no-follow-tags",
                "--no-signed",
                "--recurse-submodules=no",
                *leases,
                "--",
                remote,
                *(f"{one.new}:{one.ref}" for one in part),
            ],
            cwd=repository.top or repository.git_dir,
            env=env,
            limits=limits,
            doing=f"sending to {remote}",
            progress=progress,
            interactive=interactive,
        )
        told = _with_why(_answers(ended.out), ended.said)
        if ended.status and not told:
            raise unreachable(remote, ended.reason())
        answers.update(told)
    return answers


def _in_pushes(updates: Sequence[Update]) -> list[list[Update]]:
    """Returns what each push sends: one sends all, as far as an argument list goes."""
    most = max(os.sysconf("SC_ARG_MAX") // _SHARE, 64 * 1024)
    parts, left = list[list[Update]](), 0
    for one in updates:
        # Its ref twice, two ids, the words between, and two pointers.
        size = 2 * len(os.fsencode(one.ref)) + 3 * len(one.new) + 64
        if size > left:
            parts.append([])
            left = most
        parts[-1].append(one)
        left -= size
    return parts


def _with_why(told: dict[str, Answer], said: Sequence[str]) -> dict[str, Answer]:
    """Adds the server's own words to each ref that it refused.

    git itself only says that a hook declined. A line that names a ref is about that ref; the
    others are added where only one ref was refused, or where there is just one such line.
    """
    refused = [ref for ref, one in told.items() if one.reason.startswith(REFUSED_THERE)]
    heard = [line for line in said if line.startswith(_SAID_THERE)]
    lines = list(dict.fromkeys(line.removeprefix(_SAID_THERE) for line in heard))
    lines = [line for line in lines if not _VERDICT.match(line)] or lines
    about = {ref: [line for line in lines if _names(line, ref)] for ref in refused}
    general = [line for line in lines if not any(line in one for one in about.values())]
    for ref in refused:
        shared = general if len(general) == 1 else []
        words = lines if len(refused) == 1 else about[ref] or shared
        if shown := "; ".join(words[:_AT_MOST]):
            told[ref] = told[ref]._replace(reason=f"{told[ref].reason}: {shown}")
    return told


def _names(line: str, ref: str) -> bool:
    """Whether a line names a ref, and not only one that begins with its name."""
    # gitolite prints a dot for each `%`.
    spelled = re.escape(ref).replace("%", "[%.]")
    return re.search(rf"(?<![^\s'\"(]){spelled}(?![\w%/~-])", line) is not None


def _answers(out: bytes) -> dict[str, Answer]:
    found = {}
    for line in out.decode("utf-8", "surrogateescape").splitlines():
        flag, tab, rest = line.partition("\t")
        both, _, summary = rest.partition("\t")
        if tab and len(flag) == 1:
            found[both.rpartition(":")[2]] = Answer(flag, summary)
    return found


def _settings(values: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment that gives git settings whatever their names hold."""
    count = os.environ.get("GIT_CONFIG_COUNT", "0")
    first = int(count) if count.isdigit() else 0
    found = {"GIT_CONFIG_COUNT": str(first + len(values))}
    for number, (name, value) in enumerate(values.items(), first):
        found[f"GIT_CONFIG_KEY_{number}"] = name
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return found


def fetch_into(
    repository: Repository,
    objects: Path,
    remote: str,
    wanted: Sequence[str],
    *,
    near: Sequence[str],
    limits: Limits,
    progress: Told | None = None,
    look: Look | None = None,
    interactive: bool = False,
) -> None:
    """Fetches what is wanted (commits or refs) into an object directory of its own.

    That directory names the repository's own as an alternate; neither these nor a ref
    are changed. git checks each object. `near` are commits of ours that the remote may know.

    Raises:
        TransferError: the remote did not keep within the limits.
        RefusedError: the transfer broke off, or git refuses the objects.
    """
    ended = transport.run(
        [
            *checked(),
            "fetch",
            "--progress",
            *_QUIET,
            # A partial clone would leave files of checkpoints at the remote.
            "--no-filter",
            *(f"--negotiation-tip={one}" for one in near),
            "--stdin",
            "--",
            remote,
        ],
        cwd=repository.top or repository.git_dir,
        env={**naming(repository), "GIT_OBJECT_DIRECTORY": str(objects)},
        limits=limits,
        doing=f"fetching from {remote}",
        data="".join(f"{one}\n" for one in wanted).encode(),
        progress=progress,
        look=look,
        interactive=interactive,
    )
    if ended.status:
        raise RefusedError(
            f"fetching from {remote} failed: {ended.reason()}",
            hint="nothing was adopted",
        )


def checked() -> list[str]:
    """Returns the settings with which git checks what comes."""
    values = {
        "fetch.fsckObjects": "true",
        "transfer.fsckObjects": "true",
        # One pack, whatever its size: its growth can be watched and limited.
        "fetch.unpackLimit": "1",
        "transfer.unpackLimit": "1",
        "pack.threads": "1",
        "core.bigFileThreshold": "16m",
        "core.packedGitWindowSize": "32m",
        "core.packedGitLimit": "256m",
        "core.deltaBaseCacheLimit": "32m",
        "core.protectHFS": "true",
        "core.protectNTFS": "true",
        # Our own objects are an alternate of the quarantine, and git would offer the
        # tip of each of our sessions. `near` names the few that help.
        "core.alternateRefsPrefixes": "refs/gitcp/none/",
    }
    return [word for item in values.items() for word in ("-c", "=".join(item))]
