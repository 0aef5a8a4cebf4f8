"""What `gitcp acp` adds to each message between an editor and an agent.

python bench/acp.py --gitcp VENV/bin/gitcp

The same conversation with an agent, directly and through the proxy, in turn: the editor sends
a message, the agent answers with an update of the open turn. A turn ends after every 500, so that
checkpoints are made meanwhile. All bytes that either end gets are compared with what was sent.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from generate import make

_FILES = 2_000
_TURN = 500
_AGENT = r"""
import hashlib, json, os, sys
heard, turn = hashlib.sha256(), None
def out(value):
    os.write(1, json.dumps({"jsonrpc": "2.0", **value}).encode() + b"\n")
for line in sys.stdin.buffer:
    message = json.loads(line)
    if message["method"] != "x/heard":
        heard.update(line)
    ident, params = message.get("id"), message.get("params")
    method = message["method"]
    if method == "session/new":
        out({"id": ident, "result": {"sessionId": "s"}})
    elif method == "session/prompt":
        turn = ident
        update = {"sessionUpdate": "plan", "entries": []}
        out({"method": "session/update", "params": {"sessionId": "s", "update": update}})
    elif method == "x/end":
        with open("changed", "a") as file:
            file.write("more\n")
        out({"id": turn, "result": {"stopReason": "end_turn"}})
    elif method == "x/heard":
        out({"id": ident, "result": heard.hexdigest()})
    else:
        content = {"type": "text", "text": "\u00e4" * params["size"]}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        out({"method": "session/update", "params": {"sessionId": "s", "update": update}})
"""


class Measured(NamedTuple):
    """Round trips in seconds, what the editor got, and whether the agent got what was sent."""

    trips: list[float]
    prompts: list[float]
    got: str
    same: bool


class _Editor:
    def __init__(self, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.sent, self.got = hashlib.sha256(), hashlib.sha256()

    def ask(self, method: str, ident: int | None = None, **params: object) -> bytes:
        head = {} if ident is None else {"id": ident}
        message = {"jsonrpc": "2.0", **head, "method": method, "params": params}
        line = json.dumps(message).encode() + b"\n"
        if method != "x/heard":
            self.sent.update(line)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if method != "x/heard":
            self.got.update(answer)
        return answer


def converse(
    command: list[str], cwd: Path, env: dict[str, str], messages: int
) -> Measured:
    """Has a conversation of so many messages, half of them each way."""
    editor = _Editor(command, cwd, env)
    editor.ask("session/new", 1, cwd=str(cwd), mcpServers=[])
    trips, prompts = [], []
    for number in range(messages // 2):
        if number % _TURN == 0:
            if number:
                editor.ask("x/end")
            text = [{"type": "text", "text": f"prompt {number}"}]
            began = time.perf_counter()
            editor.ask("session/prompt", number + 2, sessionId="s", prompt=text)
            prompts.append(time.perf_counter() - began)
        began = time.perf_counter()
        editor.ask("x/say", size=[10, 200, 5_000][number % 3])
        trips.append(time.perf_counter() - began)
    editor.ask("x/end")
    sent = editor.sent.copy()
    heard = json.loads(editor.ask("x/heard", 10**6))["result"]
    assert editor.process.stdin is not None
    editor.process.stdin.close()
    editor.process.wait()
    return Measured(trips, prompts, editor.got.hexdigest(), heard == sent.hexdigest())


def main() -> None:
    """Prints the round trips of both, and what is between them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gitcp", default="gitcp", help="the command to measure")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="gitcp-acp-"))
    try:
        project = directory / "project"
        make(project, _FILES)
        agent = directory / "agent.py"
        agent.write_text(_AGENT)
        env = {**os.environ, "XDG_STATE_HOME": str(directory / "state")}
        alone = [sys.executable, str(agent)]
        cases = {"direct": alone, "proxy": [given.gitcp, "acp", "--", *alone]}
        found: dict[str, list[Measured]] = {name: [] for name in cases}
        for _ in range(given.rounds):
            for name, command in cases.items():
                found[name].append(converse(command, project, env, given.messages))
        _print(found, given.messages)
    finally:
        shutil.rmtree(directory)


def _print(found: dict[str, list[Measured]], messages: int) -> None:
    wrong = sum(not one.same for many in found.values() for one in many)
    answers = {one.got for many in found.values() for one in many}
    rounds = len(found["direct"])
    print(f"{rounds} rounds of {messages:,} messages; load {os.getloadavg()[0]:.1f}")
    print(f"conversations that were changed: {wrong + len(answers) - 1}")
    print("round trip (two messages), in ms     median      95 %      99 %")
    shown = {}
    for name, many in found.items():
        trips = sorted(trip for one in many for trip in one.trips)
        cuts = statistics.quantiles(trips, n=100)
        shown[name] = cuts
        print(
            f"  {name:<32} {cuts[49] * 1e3:9.3f} {cuts[94] * 1e3:9.3f} {cuts[98] * 1e3:9.3f}"
        )
    added = [(shown["proxy"][at] - shown["direct"][at]) * 500 for at in (49, 94, 98)]
    print(
        f"  {'added to each message':<32} {added[0]:9.3f} {added[1]:9.3f} {added[2]:9.3f}"
    )
    ratio = shown["proxy"][49] / shown["direct"][49]
    print(f"  median, proxy / direct: {ratio:.2f}")
    prompts = [prompt for one in found["proxy"] for prompt in one.prompts]
    print(f"a prompt, with its checkpoints: median {statistics.median(prompts):.3f} s")


if __name__ == "__main__":
    main()
