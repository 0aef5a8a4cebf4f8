"""The skill's files: how an agent uses gitcp, and where each client looks for them.

Clients that have slash commands get those besides: Claude Code always, the others where they
have a directory already. Each file ends in a line that says it is ours and what it was, so
that a file that the user wrote or changed is recognised and left alone.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

COMMANDS = ("checkpoint", "checkpoints", "restore", "rollback", "undo", "prune")
_NAME = "gitcp"
_MARK = rb"\n(?:<!--|#) gitcp install skill: ([0-9a-f]{64}) (\d+)(?: -->)?(\n?)"
_RULE = """\
---
description: {description}
globs:
alwaysApply: false
---
"""
_FRONT = r"(?ms)\A---\n.*?^---\n+"
_DESCRIPTION = r"(?m)^description: (.*)$"


class SkillFile(NamedTuple):
    """A file to install, without its mark, and the clients that read it.

    `typed` is what a user types to run it, for a slash command.
    """

    path: Path
    content: bytes
    clients: str
    typed: str | None = None


def project_files(top: Path) -> list[SkillFile]:
    """Returns what a project holds for everybody who works in it."""
    return [
        *_claude(top / ".claude"),
        _skill(top / ".agents" / "skills", "Codex, OpenCode, OpenClaw"),
        SkillFile(top / ".cursor" / "rules" / f"{_NAME}.mdc", _rule(), "Cursor"),
        *_gemini(top / ".gemini"),
        *_opencode(top / ".opencode"),
    ]


def user_files(home: Path, environment: Mapping[str, str]) -> list[SkillFile]:
    """Returns what a user has in all projects."""
    own = environment.get("CLAUDE_CONFIG_DIR")
    configured = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return [
        *_claude(Path(own) if own else home / ".claude"),
        _skill(home / ".agents" / "skills", "Codex, OpenCode, OpenClaw"),
        _skill(home / ".cursor" / "skills", "Cursor"),
        *_gemini(home / ".gemini"),
        *_opencode(configured / "opencode"),
    ]


def _claude(root: Path) -> list[SkillFile]:
    return [
        *(
            SkillFile(
                root / "commands" / f"{name}.md",
                _text(f"commands/{name}.md").encode(),
                "Claude Code",
                f"/{name}",
            )
            for name in COMMANDS
        ),
        _skill(root / "skills", "Claude Code"),
    ]


def _gemini(root: Path) -> list[SkillFile]:
    """Slash commands under a name of their own: Gemini CLI has a `/restore`."""
    files = []
    for name in COMMANDS if root.is_dir() else ():
        raw = _text(f"commands/{name}.md")
        prompt = re.sub(_FRONT, "", raw).replace("$ARGUMENTS", "{{args}}")
        path = root / "commands" / _NAME / f"{name}.toml"
        content = _toml(_described(raw), prompt)
        files.append(SkillFile(path, content, "Gemini CLI", f"/{_NAME}:{name}"))
    return files


def _opencode(root: Path) -> list[SkillFile]:
    """Slash commands under a name of their own: OpenCode has an `/undo`."""
    files = []
    for name in COMMANDS if root.is_dir() else ():
        raw = _text(f"commands/{name}.md")
        path = root / "commands" / _NAME / f"{name}.md"
        front = f"---\ndescription: {_described(raw)}\n---\n\n"
        content = (front + re.sub(_FRONT, "", raw)).encode()
        files.append(SkillFile(path, content, "OpenCode", f"/{_NAME}/{name}"))
    return files


def _toml(description: str, prompt: str) -> bytes:
    """Both as TOML's basic strings, which have the escapes of JSON's."""
    return (
        f"description = {json.dumps(description)}\nprompt = {json.dumps(prompt)}\n"
    ).encode()


def _described(raw: str) -> str:
    match = re.search(_DESCRIPTION, raw)
    assert match is not None
    return match[1]


def _skill(root: Path, clients: str) -> SkillFile:
    return SkillFile(root / _NAME / "SKILL.md", _text("SKILL.md").encode(), clients)


def _rule() -> bytes:
    """The same for a client that knows rules: other words above, the same text below."""
    text = _text("SKILL.md")
    rule = _RULE.format(description=_described(text))
    return (rule + re.sub(_FRONT, "\n", text)).encode()


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text("utf-8")


class Mark(NamedTuple):
    """The mark of an installed file: whether it is unchanged, and directories made for it."""

    unchanged: bool
    made: int
    content: bytes


def marked(one: SkillFile, directories: int) -> bytes:
    """Returns a file with its mark; `directories` directories were made for it."""
    digest = hashlib.sha256(one.content).hexdigest()
    mark = f"gitcp install skill: {digest} {directories}"
    comment = f"# {mark}" if one.path.suffix == ".toml" else f"<!-- {mark} -->"
    return one.content + f"\n{comment}\n".encode()


def mark_of(raw: bytes) -> Mark | None:
    """Returns the mark of a file, or None if it is not one of ours."""
    match = re.search(_MARK, raw)
    if match is None:
        return None
    content = raw[: match.start()]
    same = hashlib.sha256(content).hexdigest().encode() == match[1]
    # What a user wrote below the mark is a change, too.
    whole = raw[match.start() :] == match[0] and bool(match[3])
    return Mark(same and whole, int(match[2]), content)
