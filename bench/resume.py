"""How much of a conversation a model is sent again, word for word, after a restore.

    python bench/resume.py [CLIENT...]

Each client that is installed takes two turns against a stand-in model; gitcp restores the end
of the first one, and the client continues from there. Compared are the messages before
the second prompt with those before the prompt after the restore, without what only says
where a cache ends: the longest prefix that both share, divided by the former. A provider's
cache pays for that part. Instructions that a client puts before the conversation are compared by
themselves: in some interfaces they are a message, in others they are not. Needs the extra
`test`, and the clients in PATH. Fails below the bars.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support import real_clients
from tests.support.gitrepo import make_repo
from tests.support.real_clients import RealClient
from tests.support.stand_in import Script, say

Messages = list[Any]
FIRST, SECOND, OTHER = "turn one", "turn two", "the other way"
_WHOLE, _MOST = 1.0, 0.95
_INSTRUCT = frozenset({"system", "developer"})
# The least share that a client has to be sent again.
BARS = {"claude-code": _WHOLE, "codex": _WHOLE, "copilot": _WHOLE}


def script(client: RealClient) -> Script:
    """Two turns with tools, and one that takes another way."""
    shell = client.shell
    return {
        FIRST: [
            [shell("echo one > one; cat one")],
            [shell("ls")],
            [say("turn one done")],
        ],
        SECOND: [[shell("echo two > two")], [say("turn two done")]],
        OTHER: [[say("the other way done")]],
    }


def shared(before: Messages, after: Messages) -> int:
    """Returns how many messages two requests begin with alike."""
    pairs = zip(before, after, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one != other),
        min(len(before), len(after)),
    )


class Measured(NamedTuple):
    """How many messages were sent again as they were, of how many, and the instructions."""

    same: int
    of: int
    instructions: str


def parted(messages: Messages) -> tuple[Messages, Messages]:
    """Returns the client's instructions, and the conversation after them."""
    at = next(
        (n for n, one in enumerate(messages) if one.get("role") not in _INSTRUCT),
        len(messages),
    )
    return messages[:at], messages[at:]


def measure(client: RealClient, scratch: Path) -> Measured:
    """Measures one client in a project of its own."""
    top = make_repo(scratch / "project")
    with real_clients.running(client, top, scratch / "home", script(client)) as project:
        project.install()
        first = project.turn(FIRST)
        project.turn(SECOND, first["conversation"]["agent_session"])
        restored = project.gitcp("restore", first["id"], "--yes")
        project.turn(OTHER, project.ready(restored))
        told, before = parted(project.messages(SECOND))
        told_again, after = parted(project.messages(OTHER))
        same = shared(before, after)
        if same < len(before):
            found = after[same] if same < len(after) else "nothing"
            print(f"{client.name}: {before[same]}\n  became {found}", file=sys.stderr)
        words = "same" if told == told_again else "changed"
        return Measured(same, len(before), words if told else "apart")


def main() -> None:
    """Measures each client that is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    clients = sorted(real_clients.CLIENTS, key=lambda client: client.name)
    names = [one.name for one in clients]
    parser.add_argument("clients", nargs="*", choices=[*names, []], metavar="CLIENT")
    given = parser.parse_args()
    os.environ.setdefault("GIT_CONFIG_NOSYSTEM", "1")
    below = False
    print("| client | messages sent again | of | share | bar | instructions |")
    print("|---|---|---|---|---|---|")
    for client in clients:
        if given.clients and client.name not in given.clients:
            continue
        if not client.found:
            print(f"| {client.name} | not installed | | | | |")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            found = measure(client, Path(scratch))
        share = found.same / found.of if found.of else 0.0
        bar = BARS.get(client.name, _MOST)
        below = below or share < bar
        print(
            f"| {client.name} | {found.same} | {found.of} | {share:.1%}"
            f" | {bar:.0%} | {found.instructions} |"
        )
    if below:
        raise SystemExit("a client is below its bar")


if __name__ == "__main__":
    main()
