"""Settings: git config, section `gitcp`, overridden by `GITCP_*` in the environment."""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from gitcp.errors import UsageError
from gitcp.format.extent import Extent
from gitcp.git.repository import Repository

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = r"(?i)(\d+)\s*([kmg]?)i?b?"
_SECONDS = r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?"
_PER = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

# The values of `autoPush`.
OFF, BESIDE_PUSH, AFTER_SAVE = "off", "push", "save"
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", ""})


class Known(NamedTuple):
    """A setting that exists: its default, its meaning, and how its values are read.

    `parse` gets all values, and the setting's name for an error. `field` is the attribute
    of `Settings` or `Sharing`, if it is not the name in snake case. A setting with `many`
    may be given several times; of any other setting, the last value counts.
    """

    default: str
    parse: Callable[[list[str], str], Any]
    meaning: str
    many: bool = False
    field: str = ""


def parse_size(text: str, what: str) -> int:
    """Returns a size such as `100m` in bytes.

    Raises:
        UsageError: `text` is not a size.
    """
    match = re.fullmatch(_SIZE, text.strip())
    if match is None:
        raise UsageError(
            f"{what} is {text!a}, which is not a size", hint="write 500k, 100m or 2g"
        )
    return int(match[1]) * _UNITS[match[2].lower()]


def parse_seconds(text: str, what: str) -> float:
    """Returns a duration such as `10s` in seconds.

    Raises:
        UsageError: `text` is not a duration.
    """
    match = re.fullmatch(_SECONDS, text.strip())
    if match is None:
        raise UsageError(
            f"{what} is {text!a}, which is not a duration",
            hint="write 500ms, 10s, 5m, 24h or 7d",
        )
    return float(match[1]) * _PER[match[2] or "s"]


def parse_minutes(text: str, what: str) -> float:
    """Returns a number of minutes in seconds.

    Raises:
        UsageError: `text` is not a number.
    """
    try:
        minutes = float(text)
    except ValueError:
        minutes = -1.0
    if not 0 <= minutes < float("inf"):
        raise UsageError(
            f"{what} is {text!a}, which is not a number of minutes",
            hint="write 30, or 0 for never",
        )
    return minutes * _PER["m"]


def parse_count(text: str, what: str) -> int:
    """Returns a whole number from 0 on.

    Raises:
        UsageError: `text` is not a whole number.
    """
    word = text.strip()
    if not (word.isascii() and word.isdigit()):
        raise UsageError(
            f"{what} is {text!a}, which is not a whole number", hint="write 500"
        )
    return int(word)


def parse_word(text: str, what: str, words: tuple[str, ...]) -> str:
    """Returns a word if it is one of the allowed ones.

    Raises:
        UsageError: `text` is not one of the words.
    """
    word = text.strip()
    if word not in words:
        raise UsageError(
            f"invalid value {text!a} for {what}", hint=f"use one of: {', '.join(words)}"
        )
    return word


def parse_flag(text: str, what: str) -> bool:
    """Returns a boolean, spelled as in git.

    Raises:
        UsageError: `text` is neither true nor false.
    """
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise UsageError(
            f"{what} is {text!a}, which is neither true nor false",
            hint="write true or false",
        )
    return word in _TRUE


def _last(parse: Callable[[str, str], Any]) -> Callable[[list[str], str], Any]:
    return lambda values, what: parse(values[-1], what)


def _one_of(*words: str) -> Callable[[list[str], str], str]:
    return lambda values, what: parse_word(values[-1], what, words)


def _text(text: str, what: str) -> str:
    del what
    return text


def _globs(values: list[str], what: str) -> tuple[str, ...]:
    del what
    return tuple(filter(None, values))


def _stripped(values: list[str], what: str) -> tuple[str, ...]:
    del what
    return tuple(filter(None, map(str.strip, values)))


def _words(values: list[str], what: str) -> tuple[str, ...]:
    del what
    return tuple(word for value in values for word in value.replace(",", " ").split())


def _auto_push(values: list[str], what: str) -> str:
    """Returns `off`, `push` (with each `git push`) or `save` (after each save)."""
    word = values[-1].strip().lower()
    if word == AFTER_SAVE:
        return word
    if word not in _TRUE | _FALSE:
        raise UsageError(
            f"{what} is {values[-1]!a}, which is neither true, false nor save",
            hint="write true, false or save",
        )
    return BESIDE_PUSH if word in _TRUE else OFF


def _set_of_words(values: list[str], what: str) -> frozenset[str]:
    return frozenset(_words(values, what))


def _many(parse: Callable[[list[str], str], Any], meaning: str) -> Known:
    return Known("", parse, f"{meaning} (may be given many times)", many=True)


def _snake(name: str) -> str:
    # This takes a third of the time to compile a pattern.
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


KNOWN = {
    "maxFileSize": Known(
        "2g", _last(parse_size), "larger files are listed as not captured"
    ),
    "chunkAbove": Known(
        "16m",
        _last(parse_size),
        "larger files are stored in chunks, so a save stores only what changed (0: never)",
    ),
    "include": _many(_globs, "globs of ignored paths to capture"),
    "exclude": _many(_globs, "globs of paths never to capture"),
    "lockTimeout": Known(
        "10s",
        _last(parse_seconds),
        "how long to wait for another gitcp process, or for a lock of git",
    ),
    "autoCheckpoint": Known(
        "true", _last(parse_flag), "whether hooks make checkpoints"
    ),
    "maxCheckpoints": Known(
        "0",
        _last(parse_count),
        "checkpoints to keep on a branch, besides labelled ones and forks (0: all)",
    ),
    "maxSize": Known(
        "5g",
        _last(parse_size),
        "if gitcp uses more, it removes old automatic checkpoints; if the setting is unset in"
        " a repository that is older than the setting, it only warns (0: no limit)",
    ),
    "background": Known(
        "true",
        _last(parse_flag),
        "whether to merge packs and remove old checkpoints in the background after a save",
    ),
    "frequency": Known(
        "turn",
        _one_of("turn", "tool", "manual"),
        "how often an agent's hooks make checkpoints: turn, tool (each batch) or manual",
    ),
    "triggers": _many(_words, "the only triggers an agent's hooks act on"),
    "intervalMinutes": Known(
        "30",
        _last(parse_minutes),
        "minutes of an agent's turn after which hooks make a checkpoint (0: never)",
        field="interval",
    ),
    "injectContext": Known(
        "compact",
        _one_of("off", "compact", "always"),
        "when hooks give an agent the reasons of the work tree: off, compact (in a new"
        " conversation and after a compaction), always (in a resumed one, too)",
    ),
    "hookTimeout": Known(
        "10s", _last(parse_seconds), "how long a hook may take before it gives up"
    ),
    "remote": Known(
        "origin",
        _last(_text),
        "the default remote of push and pull: a name, a URL, or a pattern over 16"
        " (`{shard:x}`) or 256 (`{shard:02x}`) repositories",
    ),
    "autoPush": Known(
        "false",
        _auto_push,
        "true: the pre-push hook also pushes sessions; save: gitcp sends each checkpoint"
        " soon, together with those of other clones",
    ),
    "pushInterval": Known(
        "10s",
        _last(parse_seconds),
        "the shortest time between two pushes of what is queued for a remote",
    ),
    "spoolMaxSize": Known(
        "2g",
        _last(parse_size),
        "limit for what is queued for a remote on this machine; the rest waits in its clone",
    ),
    "secrets": Known(
        "block",
        _one_of("block", "warn", "off"),
        "what push does if it finds secrets: block, warn or off",
    ),
    "allowSecrets": _many(_set_of_words, "fingerprints of secrets that may be pushed"),
    "secretsLibrary": Known(
        "true",
        _last(parse_flag),
        "whether to scan with the library of `gitcp[secrets]` as well, if it is installed",
    ),
    "transferTimeout": Known(
        "60s", _last(parse_seconds), "how long a remote may be silent"
    ),
    "transferLimit": Known(
        "1h", _last(parse_seconds), "how long one transfer may take in all"
    ),
    "pullMaxSize": Known(
        "4g",
        _last(parse_size),
        "a larger pull (unpacked) is refused, and so are larger checkpoints from elsewhere",
    ),
    "pullMaxFile": Known(
        "500m", _last(parse_size), "a pull with a larger file is refused"
    ),
    "pullMaxObjects": Known(
        "500k",
        _last(parse_size),
        "a pull with more objects is refused, and so are larger checkpoints from elsewhere",
    ),
    "encryptTo": _many(
        _stripped, "recipients to encrypt to: age or ssh keys, or files of them; or off"
    ),
    "identity": _many(
        _stripped, "files with the age or ssh keys that decrypt what is pulled"
    ),
    "commitTrailer": Known(
        "false",
        _last(parse_flag),
        "whether git's hooks add the checkpoint to a commit's message",
    ),
}
# name -> the variable of the environment that overrides it
VARIABLES = {name: "GITCP_" + _snake(name).upper() for name in KNOWN}
_FIELDS = {known.field or _snake(name): name for name, known in KNOWN.items()}


class Sharing(NamedTuple):
    """Settings of push and pull."""

    remote: str
    auto_push: str
    push_interval: float
    spool_max_size: int
    transfer_timeout: float
    transfer_limit: float
    pull_max_size: int
    pull_max_file: int
    pull_max_objects: int
    secrets: str
    allow_secrets: frozenset[str]
    secrets_library: bool
    encrypt_to: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()

    @property
    def extent(self) -> Extent:
        """How much a checkpoint made elsewhere may hold beyond HEAD."""
        return Extent(self.pull_max_objects, self.pull_max_size)


class Settings(NamedTuple):
    """The settings in force. Sizes in bytes, times in seconds."""

    max_file_size: int
    chunk_above: int
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    lock_timeout: float
    auto_checkpoint: bool
    hook_timeout: float
    sharing: Sharing
    frequency: str
    triggers: tuple[str, ...]
    interval: float
    commit_trailer: bool
    max_checkpoints: int
    inject_context: str
    max_size: int
    background: bool

    @property
    def hooks_off(self) -> str | None:
        """The setting that stops agents' hooks from making checkpoints, with its value."""
        if not self.auto_checkpoint:
            return "gitcp.autoCheckpoint is false"
        return "gitcp.frequency is manual" if self.frequency == "manual" else None

    @classmethod
    def of(
        cls, repository: Repository, environment: Mapping[str, str] | None = None
    ) -> Self:
        """Returns the settings of a repository.

        Raises:
            UsageError: a value makes no sense.
        """
        environment = os.environ if environment is None else environment

        def read(field: str) -> Any:
            name = _FIELDS[field]
            known = KNOWN[name]
            variable = VARIABLES[name]
            if variable in environment:
                text = environment[variable]
                values = text.split(os.pathsep) if known.many else [text]
            else:
                values = repository.config.get(f"gitcp.{name.lower()}", [])
            return known.parse(values or [known.default], f"gitcp.{name}")

        sharing = Sharing(**{field: read(field) for field in Sharing._fields})
        own = {field: read(field) for field in cls._fields if field != "sharing"}
        return cls(sharing=sharing, **own)
