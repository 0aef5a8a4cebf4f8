"""The process that makes the checkpoints of `gitcp acp`: one request per line.

It is separate from the proxy, so a slow or failed checkpoint never delays or ends the
connection between editor and agent.
"""

import json
import os
import signal
import sys
import time
import traceback
from typing import Any

from gitcp import notices
from gitcp.acp import stored_talks
from gitcp.acp.checkpointer import REMOVE_OLD
from gitcp.cli import agent_hook
from gitcp.cli.guard import is_disabled
from gitcp.clients import acp_folder
from gitcp.clients.acp import NAME
from gitcp.clients.acp_folder import SessionFolder
from gitcp.errors import GitcpError
from gitcp.project import hook_log


def main() -> None:
    """Answers requests until there are no more."""
    # Ctrl-C interrupts all processes of a terminal, but the proxy decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    for line in sys.stdin.buffer:
        answer, sound = _answer(json.loads(line))
        os.write(answers, json.dumps(answer).encode() + b"\n")
        if not sound:
            # The interrupted work may have left any state behind; a new process starts clean.
            return


def _answer(request: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Returns the outcome of a request, and whether this process can continue."""
    event = request["event"]
    if is_disabled():
        return {}, True
    started = time.monotonic()
    told: list[str] = []
    failed: dict[str, Any] = {}
    said: bytes | None = None
    sound = True
    try:
        with notices.listening(told.append):
            root = acp_folder.root(os.environ)
            if event == REMOVE_OLD:
                stored_talks.remove_old(root, time.time())
                return {}, True
            stored_talks.write_again(SessionFolder(root / request["session"]))
            said = agent_hook.answer(
                NAME, event, lambda: json.dumps(request).encode(), started
            )
    except GitcpError as exc:
        failed = {"code": exc.code, "error": exc.message}
    except Exception as exc:  # noqa: BLE001  the proxy continues without it
        sound = False
        failed = {"code": "internal", "error": f"{type(exc).__name__}: {exc}"}
        told.append("".join(traceback.format_exception(exc)))
    directory, what = str(request.get("cwd") or "/"), f"{NAME} {event}"
    if failed and failed["code"] not in NOT_OURS:
        text = f"{failed['code']}: {failed['error']}"
        hook_log.write(directory, what, started, text)
    for text in told:
        hook_log.write(directory, what, started, f"warning: {text}")
    if said:
        failed["tell"] = said.decode("utf-8", "replace")
    return failed, sound


# Without a project there is no log of its hooks.
NOT_OURS = frozenset({"no-repository"})

if __name__ == "__main__":
    main()
