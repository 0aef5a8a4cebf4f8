"""A small agent that speaks the Agent Client Protocol; what a prompt says is what it does.

It is run as a script. The variable HEARD names a file that gets every byte of its input.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

HELD: dict[str, Any] = {}
FORKS = os.environ.get("FORKS") == "1"


def out(value: dict[str, Any]) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", **value}).encode() + b"\n")


def say(session: str, text: str) -> None:
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    params = {"sessionId": session, "update": update}
    out({"method": "session/update", "params": params})


def prompted(ident: int, session: str, texts: list[str]) -> None:
    word, _, rest = texts[-1].partition(" ")
    match word:
        case "write":
            with open("written", "a") as file:
                file.write(f"{rest}\n")
            say(session, "wrote ")
            say(session, rest)
        case "hang":
            say(session, "half an answer")
            HELD[session] = ident
            return
        case "die":
            say(session, "last words")
            os._exit(3)
        case "stream":
            for number in range(int(rest)):
                say(session, f"{number} ")
        case "heard":
            say(session, json.dumps(texts[:-1]))
        case _:
            pass
    out({"id": ident, "result": {"stopReason": "end_turn"}})


def take(message: dict[str, Any]) -> None:
    ident: Any = message.get("id")
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    session = params.get("sessionId", "")
    match message.get("method"):
        case "initialize":
            can: dict[str, Any] = {"sessionCapabilities": {"fork": {}}} if FORKS else {}
            out(
                {
                    "id": ident,
                    "result": {"protocolVersion": 1, "agentCapabilities": can},
                }
            )
        case "session/new":
            HELD["count"] = HELD.get("count", 0) + 1
            out({"id": ident, "result": {"sessionId": f"s{HELD['count']}"}})
        case "session/load":
            say(session, "said long ago")
            out({"id": ident, "result": {}})
        case "session/fork":
            out({"id": ident, "result": {"sessionId": f"fork-of-{session}"}})
        case "session/prompt":
            texts = [block.get("text", "") for block in params["prompt"]]
            prompted(ident, session, texts)
        case "session/cancel":
            out({"id": HELD.pop(session), "result": {"stopReason": "cancelled"}})
        case "x/ask":
            call = {"kind": "execute", "rawInput": {"command": "rm written"}}
            asked = {"sessionId": session, "toolCall": call, "options": []}
            out({"id": 1000, "method": "session/request_permission", "params": asked})
        case "x/raw":
            os.write(1, bytes.fromhex(params["hex"]))
        case None if ident == 1000:
            os.remove("written")
            out({"method": "x/removed"})


def main() -> None:
    heard = open(os.environ["HEARD"], "ab", buffering=0)  # noqa: SIM115  till the end
    for line in sys.stdin.buffer:
        heard.write(line)
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict):
            take(message)


if __name__ == "__main__":
    main()
