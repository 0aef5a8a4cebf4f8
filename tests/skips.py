"""The skips that CI accepts: what a machine may lack, and how to see that it does.

With CI in the environment any other skip is a failure, so that no test is lost without
notice. Extras and packages are not in the list, as the README's command installs them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.support.needs import knows_migrate, knows_owners, knows_reftable

IN_CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _no(*programs: str) -> Callable[[str], bool]:
    """Whether one of these programs is not installed."""
    return lambda _: any(map(_is_missing, programs))


def _no_npm_for(program: str) -> Callable[[str], bool]:
    """Whether a program that npm installs is missing, and npm is as well."""
    return lambda _: _is_missing(program) and _is_missing("npm")


def _is_missing(program: str) -> bool:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return shutil.which(program, path=path) is None


def _no_such(reason: str) -> bool:
    """Whether the program that the reason names first, or last, is not installed."""
    words = re.sub("^there is no | is not installed$", "", reason).split()
    return any(map(_is_missing, words[:1]))


def _no_root(_: str) -> bool:
    return os.geteuid() != 0


def _no_linux(_: str) -> bool:
    return not sys.platform.startswith("linux")


def _always(_: str) -> bool:
    return True


# The reason of a skip, and whether this machine gives cause for it.
ACCEPTED: list[tuple[str, Callable[[str], bool]]] = [
    # Clients and frameworks that npm installs: .ci/run does, where there is npm.
    (r"there is no azurite-blob.*", _no_npm_for("azurite-blob")),
    (r"there is no cline.*", _no_npm_for("cline")),
    (r"there is no codex.*", _no_npm_for("codex")),
    (r"there is no copilot.*", _no_npm_for("copilot")),
    (r"there is no gemini.*", _no_npm_for("gemini")),
    (r"there is no kilo.*", _no_npm_for("kilo")),
    (r"there is no opencode.*", _no_npm_for("opencode")),
    (r"there is no pi .*", _no_npm_for("pi")),
    (r"there is no qwen.*", _no_npm_for("qwen")),
    (r"no husky.*", _no_npm_for("husky")),
    (r"no lefthook.*", _no_npm_for("lefthook")),
    (r"no pre-commit.*", _no("pre-commit")),
    # Debian's programs; .ci/run tries to install them, and tells.
    (r"there is no (mkfs\.\w+|ssh-keygen)", _no_such),
    (
        r"(sshd|ssh|gitolite|lighttpd|mawk|gawk|busybox awk|original-awk) is not installed",
        _no_such,
    ),
    (r"there is no chromium", _no("chromium")),
    (r"git http-backend is not installed", _always),
    (r"ip is not installed.*", _no("ip")),
    (r"root may read everything, and there is no setpriv", _no("setpriv")),
    # strace is there, and a container may still forbid it.
    (r"strace is missing or may not trace here", _always),
    # Other users, disks and networks of a test's own.
    (r"only root .*|needs another user", _no_root),
    # A container may allow mounts, and have no loop devices.
    (r"cannot mount.*", _always),
    (r"the file system cannot be shut down.*", _always),
    (r"no network namespaces here.*", _always),
    (r"a mirror cannot be mounted.*", _always),
    (r"libfuse 2 is not installed|/dev/fuse cannot be used", _always),
    (r"only root may mount, and fusermount.*", _no("fusermount")),
    # Python or the checkout lies where no other user may look.
    (r"there is no Python here that another user may start", _always),
    (r"another user cannot read the package.*", _always),
    (r"there is no /dev/full|the names of open files are in /proc", _no_linux),
    (r"the mirrors of odd disks need Linux", _no_linux),
    (r"git is older than 2\.45, .*", lambda _: not knows_reftable()),
    (r"git is older than 2\.46, .*", lambda _: not knows_migrate()),
    (r"git is older than 2\.36, .*", lambda _: not knows_owners()),
    # Not a test of its own, but a tool for looking into a failure of another.
    (r"set GITCP_MODEL_SCRIPT to a file of steps", _always),
]


def is_accepted(reason: str) -> bool:
    """Whether a test may skip for this reason on this machine."""
    return any(
        re.fullmatch(pattern, reason, re.DOTALL) and lacks(reason)
        for pattern, lacks in ACCEPTED
    )


def judged(report: Report, *, strict: bool = IN_CI) -> Report:
    """Returns a report, as that of a failure if it is a skip that is not accepted."""
    expected_failure = hasattr(report, "wasxfail")
    if not strict or report.outcome != "skipped" or expected_failure:
        return report
    told = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    reason = told.removeprefix("Skipped: ")
    if not is_accepted(reason):
        report.outcome = "failed"
        report.longrepr = (
            f"skipped in CI, which tests/skips.py does not accept: {reason}"
        )
    return report
