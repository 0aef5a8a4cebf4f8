"""Has clones decide again about refs that were queued under other settings."""

import hashlib
import os

import msgspec

from gitcp.errors import GitcpError, NotARepositoryError
from gitcp.format import layout
from gitcp.project.settings import VARIABLES, Sharing
from gitcp.project.workspace import Workspace
from gitcp.spool.entries import CloneNote, Pending, Spool, now
from gitcp.spool.kept_clones import KeptClones

# Variables that name a policy's settings, or the files that hold them.
_WHERE = frozenset(
    {
        *("HOME", "XDG_CONFIG_HOME"),
        *(VARIABLES[name] for name in ("encryptTo", "secrets", "secretsLibrary")),
        VARIABLES["allowSecrets"],
    }
)
# If a clone's settings cannot be read, its refs wait so many seconds.
_AGAIN = 60.0


def policy_of(sharing: Sharing) -> str:
    """Returns a text that differs if a session would be encrypted or scanned differently.

    What stands before its colon differs if the settings come from another environment.
    """
    environment = sorted(
        (name, value)
        for name, value in os.environ.items()
        if name in _WHERE or name.startswith("GIT_CONFIG")
    )
    chosen = (
        *(sorted(sharing.encrypt_to), sharing.secrets, sharing.secrets_library),
        sorted(sharing.allow_secrets),
    )
    return f"{_digest(environment)}:{_digest(chosen)}"


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:16]


def _is_other(before: str, policy: str) -> bool:
    """Whether a policy differs that was read in the same environment.

    Between two environments, this process could take the settings for changed only because it
    lacks a variable.
    """
    where, _, _ = before.partition(":")
    return policy.startswith(where + ":") and before != policy


def decide_again(spool: Spool, clones: KeptClones) -> None:
    """Takes refs out of the queue if their clone has other settings now; it queues them again.

    Refs stay as they were queued if the clone is gone, because only the spool has them.
    """
    moment = now()
    due: dict[str, list[Pending]] = {}
    for one in spool.pending().values():
        if one.policy and one.due <= moment:
            due.setdefault(one.clone, []).append(one)
    for ident, refs in due.items():
        noted = spool.clone(ident)
        if noted is None:
            continue
        try:
            workspace = clones.open(noted.directory)
            policy = policy_of(workspace.settings.sharing)
        except NotARepositoryError:
            continue
        except GitcpError as exc:
            spool.put(
                *(
                    msgspec.structs.replace(
                        one, due=moment + _AGAIN, reason=exc.message
                    )
                    for one in refs
                )
            )
            continue
        old = [one for one in refs if _is_other(one.policy, policy)]
        if old:
            _give_back(spool, workspace, noted, old)


def _give_back(
    spool: Spool, workspace: Workspace, noted: CloneNote, refs: list[Pending]
) -> None:
    """Takes refs out of the queue, and notes that their sessions are to be queued again."""
    keys = [key for one in refs if (key := layout.ref_key(one.ref)) is not None]
    held = {key.ledger.session for key in keys}
    store = workspace.store
    names = {
        store.names(key, oid)[0]
        for key, oid in store.refs().items()
        if key.ledger.session in held
    }
    ident = refs[0].clone
    with spool.locked():
        noted = spool.clone(ident) or noted
        if noted.wanted:
            # None stands for all sessions.
            names = names | {*noted.sessions} if noted.sessions else set()
        spool.note_clone(
            ident,
            msgspec.structs.replace(
                noted, wanted=True, sessions=tuple(sorted(names)), at=now()
            ),
        )
        spool.remove(*(one.ref for one in refs))
