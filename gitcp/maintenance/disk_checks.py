"""Checks of `gitcp doctor`: packs, disk usage, and leftovers on disk."""

import shutil

from gitcp.git.registry import AT_MOST, pack_sizes
from gitcp.maintenance import upkeep
from gitcp.maintenance.doctor_check import DoctorCheck
from gitcp.project.workspace import Workspace

_LOW = 200 * 1024 * 1024
_MIB = 1024 * 1024


def size(workspace: Workspace) -> DoctorCheck:
    """Whether gitcp keeps to `gitcp.maxSize`, and what was removed for that."""
    found = upkeep.size(workspace)
    detail = f"{found.used // _MIB:,} MiB"
    if found.limit:
        detail += f", of {found.limit // _MIB:,} MiB (gitcp.maxSize)"
    note = upkeep.read_note(workspace.repository)
    if note.removed:
        detail += (
            f"; {note.removed:,} old automatic checkpoints were removed to stay"
            f" below it, the last ones at {note.removed_at}"
        )
    if not found.over:
        return DoctorCheck("size", ok=True, detail=detail)
    return DoctorCheck(
        "size",
        ok=False,
        detail=f"{detail}: {upkeep.told(found)}",
        hint="`gitcp du` shows what holds it; `gitcp prune` removes old checkpoints",
    )


def packs(workspace: Workspace) -> DoctorCheck:
    """Whether gitcp's packs are merged."""
    count = len(pack_sizes(workspace.repository))
    detail = f"{count} of gitcp's"
    if count > AT_MOST:
        hint = "`gitcp gc` merges them"
        return DoctorCheck(
            "packs", ok=False, detail=f"{detail}, more than {AT_MOST}", hint=hint
        )
    return DoctorCheck("packs", ok=True, detail=detail)


def disk(workspace: Workspace) -> DoctorCheck:
    """Whether there is room for more checkpoints."""
    free = shutil.disk_usage(workspace.repository.common_dir).free
    detail = f"{free // _MIB:,} MiB free"
    if free < _LOW:
        hint = (
            "free some space: a save that does not fit is refused, but nothing is lost"
        )
        return DoctorCheck("disk", ok=False, detail=detail, hint=hint)
    return DoctorCheck("disk", ok=True, detail=detail)
