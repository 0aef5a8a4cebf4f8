"""Clients whose hooks are a file of code: gitcp writes a plugin or extension for them."""

import hashlib
from collections.abc import Callable, Mapping

import msgspec

_SEAL = b"// as installed: "
_NO_COMMANDS = b"const COMMANDS = {}"


class PluginFile:
    """The part of a client whose hooks `install` writes as a whole file of code.

    `source` is the file's name in `gitcp.agents`; `renamed` are words to replace in it.
    """

    name: str
    meanings: Mapping[str, str]
    source: str
    renamed: Mapping[bytes, bytes] = {}

    def merge(self, text: bytes | None, command: Callable[[str], str]) -> bytes:
        """Returns the file.

        Raises:
            ValueError: another file has this name, or the user has changed ours.
        """
        if text is not None:
            self._check_ours(text)
        commands = msgspec.json.encode({hook: command(hook) for hook in self.meanings})
        from importlib import resources  # noqa: PLC0415  to install, not to look

        script = resources.files("gitcp.agents").joinpath(self.source).read_bytes()
        for word, other in self.renamed.items():
            script = script.replace(word, other)
        script = script.replace(_NO_COMMANDS, b"const COMMANDS = " + commands)
        return script + _SEAL + _digest(script) + b"\n"

    def unmerge(self, text: bytes) -> bytes | None:
        """Returns None: the whole file is removed.

        Raises:
            ValueError: the user has changed the file.
        """
        if not self.installed(text):
            return text
        self._check_ours(text)
        return None

    def installed(self, text: bytes) -> bool:
        """Whether the file is ours."""
        return f"Made by `gitcp install {self.name}`".encode() in text

    def _check_ours(self, text: bytes) -> None:
        if not self.installed(text):
            raise ValueError("it is not a plugin of gitcp's")
        script, seal, digest = text.rpartition(_SEAL)
        if not seal or digest.strip() != _digest(script):
            raise ValueError(
                "it was changed by hand; remove it yourself if you do not need it"
            )


def _digest(script: bytes) -> bytes:
    return hashlib.sha256(script).hexdigest().encode()
