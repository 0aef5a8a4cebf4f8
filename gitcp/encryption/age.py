"""age encryption by the library pyrage: recipients, identities, and their keys.

It has no cryptography of our own (https://age-encryption.org/v1).
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gitcp.errors import CorruptError, EncryptionError, NoKeyError

_MAGIC = b"age-encryption.org/v1\n"
# In bytes: enough for a thousand recipients, more than any team has.
_HEADER_LIMIT = 256 * 1024
_FILE_LIMIT = 1024 * 1024
_KEY = re.compile(r"age1\S*|ssh-\S+\s.*")
_NO_KEY = "No matching keys found"
_INSTALL = "install it: `pip install 'gitcp[crypt]'`"
_KINDS = "one is age1…, ssh-ed25519 …, ssh-rsa …, or a file of such lines"
_WAY_OUT = (
    "make a key without a passphrase, name its file in `gitcp.identity`, and send"
    " its public key to those who encrypt; or remove the passphrase from a copy:"
    " `ssh-keygen -p -N '' -f COPY`"
)


def library() -> Any:
    """Returns the module pyrage.

    Raises:
        EncryptionError: pyrage is not installed.
    """
    try:
        import pyrage  # noqa: PLC0415  optional
    except ImportError as exc:
        raise EncryptionError(
            "encryption needs the library pyrage, which is not installed",
            hint=_INSTALL,
        ) from exc
    return pyrage


class Recipients:
    """The recipients of a ciphertext: public keys."""

    def __init__(self, given: Sequence[str], *, top: Path) -> None:
        """Reads public keys, and files of them.

        Refuses a file inside `top`, the work tree, because a change to the project could
        add a key.

        Raises:
            EncryptionError: a key is invalid, or the library is missing.
        """
        self._age = library()
        self._keys: list[Any] = []
        self._told: list[bytes] | None = None
        for text in given:
            if _KEY.fullmatch(text):
                self._keys.append(self._key(text, "gitcp.encryptTo"))
            else:
                self._keys += self._file(text, top)
        if not self._keys:
            raise EncryptionError("gitcp.encryptTo names no recipients", hint=_KINDS)

    def encrypt(self, data: bytes) -> bytes:
        """Returns the ciphertext, which differs each time."""
        sealed: bytes = self._age.encrypt(data, self._keys)
        return sealed

    def are_those_of(self, sealed: bytes) -> bool:
        """Whether a ciphertext is to these recipients, as far as its header shows.

        It shows four bytes of the hash of each ssh key, and the number of age keys.
        """
        if self._told is None:
            self._told = _told(self.encrypt(b""))
        return _told(sealed) == self._told

    def _key(self, text: str, where: str) -> Any:
        kind = self._age.ssh if text.startswith("ssh-") else self._age.x25519
        try:
            return kind.Recipient.from_str(text)
        except self._age.RecipientError as exc:
            raise EncryptionError(
                f"{where}: {text[:60]!a} is not a key to encrypt to: {exc}", hint=_KINDS
            ) from exc

    def _file(self, name: str, top: Path) -> Iterable[Any]:
        path = Path(os.path.realpath(top / os.path.expanduser(name)))
        if path.is_relative_to(os.path.realpath(top)) and not path.is_relative_to(
            os.path.realpath(top / ".git")
        ):
            raise EncryptionError(
                f"gitcp.encryptTo: {name!a} is inside the project, where any"
                " change to a file could add a key",
                hint="put it outside the project, or below .git",
            )
        lines = _read(path, "gitcp.encryptTo", _KINDS).decode("utf-8", "replace")
        for line in lines.splitlines():
            text = line.strip()
            if text and not text.startswith("#"):
                yield self._key(text, str(path))


class Identities:
    """The private keys on this machine."""

    def __init__(self, given: Sequence[str], *, top: Path) -> None:
        """Reads files of private keys; if none are given, the files at the usual places.

        Raises:
            EncryptionError: a given file cannot be used, or the library is missing.
        """
        self._age = library()
        self._keys: list[Any] = []
        self._passed: list[str] = []
        for name in given:
            self._keys += self._file(Path(top / os.path.expanduser(name)))
        if given:
            return
        for path in _usual():
            if path.is_file():
                try:
                    self._keys += self._file(path)
                except EncryptionError as exc:
                    self._passed.append(exc.message)

    def decrypt(self, data: bytes) -> bytes:
        """Returns the plaintext.

        Raises:
            NoKeyError: no key fits.
            CorruptError: the data is not a ciphertext, or was changed.
        """
        if not data.startswith(_MAGIC):
            raise CorruptError("it is not encrypted with age", hint="do not use it")
        if data.find(b"\n--- ", 0, _HEADER_LIMIT) < 0:
            # pyrage would try every recipient in it.
            raise CorruptError("its header has no end", hint="do not use it")
        if not self._keys:
            raise self._no_key("there are no keys here")
        try:
            opened: bytes = self._age.decrypt(data, self._keys)
        except self._age.DecryptError as exc:
            if str(exc) == _NO_KEY:
                raise self._no_key("none of the keys here decrypts it") from exc
            raise CorruptError(
                f"it was tampered with, or is truncated: {exc}", hint="do not use it"
            ) from exc
        return opened

    def _no_key(self, why: str) -> NoKeyError:
        passed = "".join(f"; {one}" for one in self._passed)
        return NoKeyError(
            f"{why}{passed}",
            hint="set `gitcp.identity` to the file of your key; if it was not"
            " encrypted to you, ask its author to add your public key to"
            " gitcp.encryptTo and to run `gitcp push --re-encrypt`",
        )

    def _file(self, path: Path) -> list[Any]:
        raw = _read(path, "gitcp.identity", "name the file of an age or ssh key")
        if raw.startswith(b"-----BEGIN") and b"AGE ENCRYPTED" not in raw[:64]:
            try:
                return [self._age.ssh.Identity.from_buffer(raw)]
            except self._age.IdentityError as exc:
                if "decrypted first" in str(exc):
                    raise _protected(path) from exc
                raise EncryptionError(
                    f"{path} holds no key that can be used: {exc}",
                    hint="age and ssh keys (ed25519, rsa) can",
                ) from exc
        if raw.startswith((_MAGIC, b"-----BEGIN")):
            raise _protected(path)
        found = []
        for line in raw.decode("utf-8", "replace").splitlines():
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            try:
                found.append(self._age.x25519.Identity.from_str(text))
            except self._age.IdentityError as exc:
                # Do not print the line itself: it may be a mistyped key.
                raise EncryptionError(
                    f"{path} holds a line that is not an age key: {exc}",
                    hint="`age-keygen` writes such files",
                ) from exc
        if not found:
            raise EncryptionError(
                f"{path} holds no key", hint="`age-keygen` writes such files"
            )
        return found


def _told(sealed: bytes) -> list[bytes]:
    """Returns the parts of a header that identify the recipients."""
    found = []
    for line in sealed[:_HEADER_LIMIT].partition(b"\n--- ")[0].split(b"\n"):
        start, _, rest = line.partition(b" ")
        kind, _, more = rest.partition(b" ")
        # age adds stanzas without meaning, so that no reader relies on their absence.
        if start == b"->" and not kind.endswith(b"-grease"):
            found.append(
                kind + more.split(b" ")[0] if kind.startswith(b"ssh-") else kind
            )
    return sorted(found)


def _protected(path: Path) -> EncryptionError:
    return EncryptionError(
        f"{path} is protected by a passphrase, which gitcp cannot ask for",
        hint=_WAY_OUT,
    )


def _usual() -> list[Path]:
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    ssh = Path(os.path.expanduser("~/.ssh"))
    return [
        Path(config) / "gitcp" / "identity.txt",
        ssh / "id_ed25519",
        ssh / "id_rsa",
    ]


def _read(path: Path, setting: str, hint: str) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(_FILE_LIMIT + 1)
    except OSError as exc:
        raise EncryptionError(
            f"{setting}: {path} cannot be read: {exc.strerror}", hint=hint
        ) from exc
    if len(raw) > _FILE_LIMIT:
        raise EncryptionError(f"{setting}: {path} is too large", hint=hint)
    return raw
