"""The class `Session` that `gitcp` exports, without durable steps."""

import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gitcp.checkpoints import restore as restoring
from gitcp.checkpoints import restore_plan
from gitcp.checkpoints.finish_restore import Restored
from gitcp.checkpoints.labels import check_label
from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.checkpoints.restore_request import request_restore
from gitcp.checkpoints.save import save
from gitcp.checkpoints.selectors import select
from gitcp.errors import NotFoundError, UsageError
from gitcp.format.log import KINDS, Decision
from gitcp.project.workspace import Current, Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, NewRecords

_BEFORE_LAST = re.compile(r"(?:last)?(?:~(\d{1,9}))?(?<=.)")


class BaseSession:
    """One thread of work, on one of its branches."""

    def __init__(self, workspace: Workspace, name: str, branch: str) -> None:
        self._workspace = workspace
        self.name = name
        self.branch = branch

    def __repr__(self) -> str:
        return f"<gitcp.{type(self).__name__} {self.name}/{self.branch}>"

    @property
    def workspace(self) -> Workspace:
        """The work tree it is saved from."""
        return self._workspace

    def save(
        self,
        *,
        messages: Iterable[Any] | None = None,
        append: Iterable[Any] | None = None,
        note: str | None = None,
        label: str | None = None,
        trigger: str = "manual",
        position: Any = None,
        metadata: Mapping[str, Any] | None = None,
        decisions: Sequence[Decision] = (),
        allow_empty: bool = False,
    ) -> Checkpoint:
        """Makes a checkpoint, or returns the newest one if nothing changed.

        `messages` is the whole conversation, `append` only the new messages; values are
        anything that JSON can hold. A position of None keeps the last one.

        Raises:
            UsageError: a value is not JSON, both kinds of messages are given, one of them
                is a text, the kind of a decision is unknown, or the label reads as a
                number, an id or a time.
            BusyError: another process is saving or restoring in this work tree.
            StorageError: the disk refused; nothing was saved.
        """
        if label is not None:
            check_label(label)
        if messages is not None and append is not None:
            raise UsageError(
                "give messages or append, not both", hint="drop one of them"
            )
        records: tuple[NewRecords, ...] = ()
        given = messages if messages is not None else append
        _refuse_text(given, "messages" if messages is not None else "append")
        _check_entries(decisions)
        if given is not None:
            data = b"".join(
                bytes(_json(message, "a message", any_text=True)) + b"\n"
                for message in given
            )
            records = (NewRecords(data, whole=messages is not None),)
        return save(
            self._workspace,
            Draft(
                trigger,
                note=note,
                label=label,
                records=records,
                decisions=tuple(decisions),
                position=None if position is None else _json(position, "the position"),
                metadata=None
                if metadata is None
                else _json(dict(metadata), "the metadata"),
                allow_empty=allow_empty,
            ),
            session=self.name,
            branch=self.branch,
        ).checkpoint

    @property
    def last(self) -> Checkpoint | None:
        """The newest checkpoint, or None."""
        return self._workspace.store.tip(self.name, self.branch)

    def checkpoints(self) -> Iterator[Checkpoint]:
        """Yields the checkpoints of the branch and those before its fork, newest first."""
        tip = self.last
        if tip is not None:
            yield from self._workspace.store.line(tip)

    def plan_restore(
        self,
        checkpoint: Checkpoint | str,
        *,
        paths: Sequence[str | bytes] = (),
        files: bool = True,
        conversation: bool = True,
        replay: bool = False,
        trust: bool = False,
    ) -> RestorePlan:
        """Returns what restoring a checkpoint would do; writes nothing.

        The checkpoint may be a selector, as on the command line; `last` and `~N` are those
        of this session's branch. `print(plan)` shows what would change.

        If the checkpoint was made elsewhere, the restore leaves out files that tools execute
        by themselves and links that lead outside, unless `trust` is given.

        With `replay`, steps that reached outside since do not run again: they return their
        recorded results. `behind` of the plan lists them.

        Raises:
            CorruptError: the checkpoint is damaged.
            UnsafePathError: the checkpoint names a path that must not be written.
            NotFoundError, AmbiguousError: the selector matches no checkpoint, or several.
        """
        _refuse_text(paths, "paths")
        return restore_plan.plan_restore(
            self._workspace,
            request_restore(
                self._chosen(checkpoint),
                paths=[os.fsencode(path) for path in paths],
                files=files,
                conversation=conversation,
                trust=trust,
                onto=Current(self.name, self.branch),
                replay=replay,
            ),
        )

    def restore(self, plan: RestorePlan | Checkpoint | str) -> Restored:
        """Carries out a plan, and saves the present state first.

        With a checkpoint or a selector instead of a plan, it makes the plan and carries
        it out at once.

        Raises:
            WouldOverwriteError: something that no checkpoint holds is in the way.
            EffectsStandError: a step reached outside since; plan with `replay=True`,
                fork, or compensate first.
            PartialError: done, but files changed meanwhile and were left alone.
        """
        if not isinstance(plan, RestorePlan):
            plan = self.plan_restore(plan)
        return restoring.restore(self._workspace, plan.request)

    def undo(self) -> Restored:
        """Undoes the last restore; a second call restores again.

        Raises:
            NothingToDoError: nothing was restored.
            WouldOverwriteError, EffectsStandError, PartialError: as `restore`.
        """
        return undo(self._workspace)

    def _chosen(self, checkpoint: Checkpoint | str) -> Checkpoint:
        """Returns a checkpoint, by a selector if need be."""
        if isinstance(checkpoint, Checkpoint):
            return checkpoint
        if not isinstance(checkpoint, str):
            raise UsageError(
                f"{checkpoint!a} is neither a checkpoint nor a selector",
                hint="pass what `save` returned, or text such as 'last'",
            )
        before = _BEFORE_LAST.fullmatch(checkpoint)
        if before is None:
            return select(self._workspace, checkpoint)
        distance = int(before[1] or 0)
        for chosen in itertools.islice(self.checkpoints(), distance, None):
            return chosen
        raise NotFoundError(
            f"there is no checkpoint {checkpoint} in {self.name}/{self.branch}",
            hint="`gitcp log` lists them",
        )

    def flush(self) -> None:
        """Moves the records of steps into git's refs now, so that `git push` finds them.

        They are durable before that, and reach git within two seconds anyway.

        Raises:
            BusyError, StorageError: the records stay in the write-ahead log; nothing is lost.
        """
        self._workspace.ledgers.drainer.flush()


def undo(workspace: Workspace) -> Restored:
    """Undoes the last restore; see `BaseSession.undo`."""
    replaced, undone = restoring.last_replaced(workspace)
    request = request_restore(
        replaced, note=f"undid a restore: back to {replaced.id}", undoes=undone
    )
    return restoring.restore(workspace, request)


def _refuse_text(given: object, name: str) -> None:
    """Raises if a text is given where many things are wanted: it would be its letters."""
    if isinstance(given, str | bytes):
        raise UsageError(
            f"{name} must be a list, not {type(given).__name__}",
            hint=f"{name}=[{given[:20]!r}]",
        )


def _check_entries(decisions: Sequence[Decision]) -> None:
    _refuse_text(decisions, "decisions")
    for entry in decisions:
        if not isinstance(entry, Decision):
            raise UsageError(
                f"{entry!a} is not a Decision", hint="gitcp.Decision(text, why=…)"
            )
        if entry.kind not in KINDS:
            raise UsageError(
                f"there is no kind of decision {entry.kind!a}",
                hint=f"it is one of {', '.join(KINDS)}",
            )


def _json(value: Any, what: str, *, any_text: bool = False) -> msgspec.Raw:
    try:
        # Also tells what is not JSON: msgspec writes bytes, dates and sets as text or
        # lists, and what comes back would be something else than what was saved.
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        _refuse_keys(value, what)
        try:
            return msgspec.Raw(msgspec.json.encode(value))
        except UnicodeEncodeError as exc:
            # Lone surrogates, as output of programs decoded by Python has them.
            if any_text:
                return msgspec.Raw(text.encode())
            raise UsageError(
                f"{what} holds text that is not valid Unicode: {exc.object!a}",
                hint="a file name can be kept as os.fsencode(name).hex()",
            ) from exc
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as exc:
        raise UsageError(
            f"{what} is not JSON: {exc}", hint="use dicts, lists, text"
        ) from exc


def _refuse_keys(value: Any, what: str) -> None:
    """Refuses keys that are not text: they would come back as text, and two as one."""
    ahead = [value]
    while ahead:
        one = ahead.pop()
        if isinstance(one, Mapping):
            for key in one:
                if not isinstance(key, str):
                    raise UsageError(
                        f"{what} has the key {key!a}, but keys of JSON are text",
                        hint="make the keys text",
                    )
            ahead += one.values()
        elif isinstance(one, list | tuple):
            ahead += one
