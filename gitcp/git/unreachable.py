"""The errors for a remote that does not answer, or answers with too much."""

import re

from gitcp.errors import TransferError
from gitcp.git import other_form
from gitcp.names import quoted

# What a list of refs may take of what is requested: some 160,000 of gitcp's.
LISTED = 16 * 1024 * 1024
# How git, and hosts of it, say that there is no such repository. Some say the same to a user
# who may not see it.
_MISSING = re.compile(
    r"(?i)does not appear to be a git repository|repository .*not found"
    r"|repository not exported|not a git repository|mis-?spelled the reponame"
    r"|project you were looking for could not be found"
)


class NoRepositoryError(TransferError):
    """A server answers, and has no repository at the address that this user may see."""


def too_many(remote: str) -> TransferError:
    """Returns the error for a remote with more refs than gitcp reads."""
    return TransferError(
        f"{remote} lists more refs than gitcp reads ({LISTED:,} bytes of its own kind)",
        hint="nothing was changed; `git ls-remote` lists the refs, and the remote's"
        " owner can remove them",
    )


def unreachable(remote: str, reason: str) -> TransferError:
    """Returns the error for a remote that does not answer as it should."""
    if other_form.is_meant(reason):
        return other_form.of(None, remote)
    kind = NoRepositoryError if _MISSING.search(reason) else TransferError
    return kind(
        f"{remote} cannot be reached: {reason}",
        hint=f"nothing was changed; check that `git ls-remote {quoted(remote)}` works",
    )
