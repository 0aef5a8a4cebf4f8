"""Settings: git config, section `gitcp`, overridden by `GITCP_*` in the environment."""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple, Self

from gitcp.errors import UsageError
from gitcp.format.extent import Extent
from gitcp.git.repository import Repository

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"(\d+)\s*([kmg]?)i?b?", re.IGNORECASE)
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_PER = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

# name -> (default, meaning)
KNOWN = {
    "maxFileSize": ("100m", "larger files are listed as not captured"),
    "include": ("", "globs of ignored paths to capture (may be given many times)"),
    "exclude": ("", "globs of paths never to capture (may be given many times)"),
    "lockTimeout": (
        "10s",
        "how long to wait for another gitcp, and for a lock of git's",
    ),
    "autoCheckpoint": ("true", "whether hooks make checkpoints"),
    "maxCheckpoints": (
        "0",
        "checkpoints to keep of a branch, besides labelled ones and forks (0: all)",
    ),
    "frequency": (
        "turn",
        "how often an agent's hooks make checkpoints: turn, tool (each batch), manual",
    ),
    "triggers": (
        "",
        "the only triggers an agent's hooks act on (may be given many times)",
    ),
    "intervalMinutes": (
        "30",
        "minutes of an agent's turn after which hooks make a checkpoint (0: never)",
    ),
    "hookTimeout": ("10s", "how long a hook may take before it gives up"),
    "remote": ("origin", "the remote that push and pull use where none is named"),
    "autoPush": ("false", "whether the pre-push hook pushes sessions, too"),
    "secrets": ("block", "what push does about secrets: block, warn, off"),
    "allowSecrets": (
        "",
        "fingerprints of secrets that may be pushed (may be given many times)",
    ),
    "secretsLibrary": (
        "true",
        "whether the scanner library looks, too, where `gitcp[secrets]` is installed",
    ),
    "transferTimeout": ("60s", "how long a remote may be silent"),
    "transferLimit": ("1h", "how long one transfer may take in all"),
    "pullMaxSize": (
        "4g",
        "a pull that brings more, unpacked, is refused; so are checkpoints from elsewhere",
    ),
    "pullMaxFile": ("500m", "a pull that brings a larger file is refused"),
    "pullMaxObjects": (
        "500k",
        "a pull that brings more objects is refused; so are checkpoints from elsewhere",
    ),
    "encryptTo": (
        "",
        "whom to encrypt to: age or ssh keys, files of them; off (may be given many times)",
    ),
    "identity": (
        "",
        "files of the age or ssh keys that open what is pulled (may be given many times)",
    ),
    "commitTrailer": (
        "false",
        "whether git's hooks name the checkpoint in a commit's message",
    ),
}
# name -> the variable of the environment that overrides it
VARIABLES = {
    name: "GITCP_" + re.sub(r"([A-Z])", r"_\1", name).upper() for name in KNOWN
}
_NAMES = tuple(VARIABLES.values())
SECRETS = ("block", "warn", "off")
FREQUENCIES = ("turn", "tool", "manual")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", ""})


class Sharing(NamedTuple):
    """Settings of push and pull."""

    remote: str
    auto_push: bool
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
        """How much a checkpoint from elsewhere may hold that HEAD does not."""
        return Extent(self.pull_max_objects, self.pull_max_size)


class Settings(NamedTuple):
    """The settings in force. Sizes in bytes, times in seconds."""

    max_file_size: int
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

    @classmethod
    def of(
        cls, repository: Repository, environment: Mapping[str, str] | None = None
    ) -> Self:
        """Returns the settings of a repository.

        Raises:
            UsageError: a value makes no sense.
        """
        environment = os.environ if environment is None else environment

        def many(name: str) -> list[str]:
            variable = VARIABLES[name]
            if variable in environment:
                return environment[variable].split(os.pathsep)
            return repository.config.get(f"gitcp.{name.lower()}", [])

        def one(name: str) -> str:
            values = many(name)
            return values[-1] if values else KNOWN[name][0]

        return cls(
            parse_size(one("maxFileSize"), "gitcp.maxFileSize"),
            tuple(filter(None, many("include"))),
            tuple(filter(None, many("exclude"))),
            parse_seconds(one("lockTimeout"), "gitcp.lockTimeout"),
            parse_flag(one("autoCheckpoint"), "gitcp.autoCheckpoint"),
            parse_seconds(one("hookTimeout"), "gitcp.hookTimeout"),
            Sharing(
                one("remote"),
                parse_flag(one("autoPush"), "gitcp.autoPush"),
                parse_seconds(one("transferTimeout"), "gitcp.transferTimeout"),
                parse_seconds(one("transferLimit"), "gitcp.transferLimit"),
                parse_size(one("pullMaxSize"), "gitcp.pullMaxSize"),
                parse_size(one("pullMaxFile"), "gitcp.pullMaxFile"),
                parse_size(one("pullMaxObjects"), "gitcp.pullMaxObjects"),
                parse_word(one("secrets"), "gitcp.secrets", SECRETS),
                frozenset(
                    word for given in many("allowSecrets") for word in _words(given)
                ),
                parse_flag(one("secretsLibrary"), "gitcp.secretsLibrary"),
                tuple(filter(None, map(str.strip, many("encryptTo")))),
                tuple(filter(None, map(str.strip, many("identity")))),
            ),
            parse_word(one("frequency"), "gitcp.frequency", FREQUENCIES),
            tuple(word for given in many("triggers") for word in _words(given)),
            parse_minutes(one("intervalMinutes"), "gitcp.intervalMinutes"),
            parse_flag(one("commitTrailer"), "gitcp.commitTrailer"),
            parse_count(one("maxCheckpoints"), "gitcp.maxCheckpoints"),
        )


class Following:
    """The settings of a repository that a program keeps open, as they are now."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._read: tuple[Mapping[str, list[str]], list[str | None], Settings] | None
        self._read = None

    def now(self) -> Settings:
        """Returns the settings in force; takes in what was changed since the last call.

        Waits for refs follow `lockTimeout`.

        Raises:
            UsageError: a value makes no sense.
            GitFailedError: git cannot read its configuration.
            UnsupportedRepositoryError: gitcp does not serve the repository any more.
        """
        repository = self._repository
        repository.reread()
        environ = os.environ
        # Most are missing, and `get` raises and catches an error for each of those.
        given = [environ[name] if name in environ else None for name in _NAMES]  # noqa: SIM401
        read = self._read
        if read is None or read[0] is not repository.config or read[1] != given:
            settings = Settings.of(repository)
            repository.refs.lock_timeout = settings.lock_timeout
            read = self._read = repository.config, given, settings
        return read[2]


def parse_size(text: str, what: str) -> int:
    """Returns a size such as `100m` in bytes.

    Raises:
        UsageError: `text` is not a size.
    """
    match = _SIZE.fullmatch(text.strip())
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
    match = _SECONDS.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{what} is {text!a}, which is not a duration",
            hint="write 500ms, 10s or 5m",
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


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def parse_flag(text: str, what: str) -> bool:
    """Returns a yes or no as git spells them.

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
