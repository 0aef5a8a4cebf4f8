"""Scans a page for secrets; refuses the page, or redacts them.

The scan covers everything that a reader of the page could read: of files, both sides of each
patch, without the signs before their lines. Clean texts are remembered in the same cache as
those that a push found clean.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from gitcp.errors import SecretsFoundError
from gitcp.format.oid import ObjectFormat
from gitcp.git.objects import BLOB
from gitcp.project.workspace import Workspace
from gitcp.purge.redact import Eraser
from gitcp.secrets import dotenv
from gitcp.secrets.cache import Clean
from gitcp.secrets.findings import Finding, Place
from gitcp.secrets.policy import BLOCK, OFF, Checked, allowed_by, refuse, scanner_of
from gitcp.secrets.scanner import Hit, Scanner
from gitcp.secrets.shared_work import Work, scan_all
from gitcp.view.document import File, Page, Row

# If a value is still found after so many rounds, the whole text around it is removed.
_ROUNDS = 3
_DIGEST = 12


class Vetted(NamedTuple):
    """A page that may be written, its findings, and those allowed by fingerprint."""

    page: Page
    findings: tuple[Finding, ...]
    allowed: tuple[Finding, ...]


class _Piece(NamedTuple):
    """A text of a row: of its conversation, its reasons, its names, or one side of a patch.

    `lines` are the numbers of its lines in the file.
    """

    kind: str
    text: bytes
    path: str = ""
    lines: Sequence[int] = ()


class _Found(NamedTuple):
    row: Row
    piece: _Piece
    hit: Hit


class Vetting:
    """Finds secrets for a page, and decides about them; made before the page."""

    def __init__(
        self, workspace: Workspace, *, allow: Sequence[str] = (), redact: bool = False
    ) -> None:
        """With `redact`, fingerprints replace secrets in the page.

        If no scan ran before, the rules load while the page is made.

        Raises:
            UsageError: a value of `allow` is not a fingerprint.
        """
        self._allowed = frozenset(allowed_by(workspace, allow))
        self._mode = workspace.settings.sharing.secrets
        self._redact = redact
        self._form = workspace.repository.form
        self._looks: tuple[Scanner, Clean] | None = None
        if self._mode != OFF or redact:
            scanner = scanner_of(workspace)
            clean = Clean(workspace.repository, scanner.identity)
            self._looks = scanner, clean
            if not clean:
                scanner.begin()

    def vet(
        self,
        page: Page,
        doing: str,
        progress: Callable[[int], None] | None = None,
    ) -> Vetted:
        """Returns the page; with `redact`, fingerprints replace its secrets.

        Raises:
            SecretsFoundError: the page holds secrets, `gitcp.secrets` is `block`, and
                `redact` was not given.
        """
        if self._looks is None:
            return Vetted(page, (), ())
        scanner, clean = self._looks
        allowed = self._allowed
        found = list(_look(scanner, clean, self._form, page, progress))
        clean.keep()
        bad = [one for one in found if one.hit.fingerprint not in allowed]
        let_through = [one for one in found if one.hit.fingerprint in allowed]
        checked = Checked(
            tuple(_findings(page, bad)),
            tuple(_findings(page, let_through)),
            len(page.rows),
        )
        if checked.findings and self._redact:
            page = _redacted(scanner, page, bad, allowed)
            page.redacted = len(checked.findings)
            return Vetted(page, (), checked.allowed)
        if self._mode == BLOCK:
            refuse(checked, doing, "--redact removes it from the page; ")
        return Vetted(page, checked.findings, checked.allowed)


def _look(
    scanner: Scanner,
    clean: Clean,
    form: ObjectFormat,
    page: Page,
    progress: Callable[[int], None] | None,
) -> Iterator[_Found]:
    """Yields the secrets of a page, row by row."""
    new: list[tuple[int, Row, _Piece, bytes | None]] = []
    for at, row in enumerate(_rows(page)):
        for piece in _pieces(row):
            strict = dotenv.is_dotenv(piece.path.encode())
            oid = None if strict else form.oid(BLOB, piece.text)
            if oid is None or oid not in clean:
                new.append((at, row, piece, oid))

    def begun(place: int) -> None:
        if progress is not None:
            progress(new[place][0])

    works = [Work(piece.text, piece.path.encode()) for _, _, piece, _ in new]
    found = scan_all(scanner, works, begun)
    for (_, row, piece, oid), hits in zip(new, found, strict=True):
        if not hits and oid is not None:
            clean.add(oid)
        yield from (_Found(row, piece, hit) for hit in hits)


def _rows(page: Page) -> list[Row]:
    """Returns the rows of a page, after one with the texts above all rows."""
    head = Row(id="", lane=0, at="", kind="save", trigger="", prompt=page.session)
    branches = [name for one in page.lanes for name in (one.session, one.branch)]
    head.note = "\n".join((page.project, *branches, *page.notes))
    return [head, *page.rows]


def _pieces(row: Row) -> Iterator[_Piece]:
    """Yields the texts of a row."""
    talk = [
        text
        for spoken in row.talk
        for text in (
            spoken.prompt or "",
            *(
                part
                for step in spoken.steps
                for part in (step.text, step.arg, step.out)
            ),
        )
        if text
    ]
    reasons = [
        text for one in row.reasons for text in (one.text, one.why, *one.paths) if text
    ]
    names = [row.prompt, row.note, row.label, row.agent, row.foreign, *row.notes]
    names += [name for file in row.files for name in (file.path, file.old, file.why)]
    for kind, texts in (
        ("conversation", talk),
        ("decisions", reasons),
        ("message", [text for text in names if text]),
    ):
        if texts:
            yield _Piece(kind, "\n".join(texts).encode())
    for file in row.files:
        yield from _sides(file)


def _sides(file: File) -> Iterator[_Piece]:
    """Yields both sides of a patch, as they are in the file."""
    if not file.patch:
        return
    sides: tuple[list[str], list[str]] = ([], [])
    numbers: tuple[list[int], list[int]] = ([], [])
    at = [0, 0]
    for line in file.patch.split("\n"):
        shown = line
        if line.startswith("@@ "):
            words = line.split(" ", 3)
            at = [int(word[1:].split(",")[0]) - 1 for word in words[1:3]]
            # git repeats the first line of a function there.
            shown = line.rpartition("@@")[2]
        for side, sign in enumerate("-+"):
            if shown[:1] in {" ", sign}:
                sides[side].append(shown[1:])
                numbers[side].append(at[side])
                at[side] += 1
    for texts, lines in zip(sides, numbers, strict=True):
        if texts:
            yield _Piece("file", "\n".join(texts).encode(), file.path, lines)


def _findings(page: Page, found: Sequence[_Found]) -> Iterator[Finding]:
    """Yields the findings, each secret once with its places."""
    by_name: dict[str, tuple[str, dict[Place, None]]] = {}
    names = {
        one.hit.value.decode("utf-8", "replace"): one.hit.fingerprint for one in found
    }

    def masked(name: str) -> str:
        for value, fingerprint in names.items():
            name = name.replace(value, f"[{fingerprint}]") if value else name
        return name

    for row, piece, hit in found:
        _, places = by_name.setdefault(hit.fingerprint, (hit.rule, {}))
        lane = page.lanes[row.lane] if row.id else None
        line = piece.lines[hit.line - 1] if hit.line <= len(piece.lines) else None
        place = Place(
            *(piece.kind, masked(piece.path).encode(), line, row.id, row.id or None),
            masked(lane.session if lane else page.session),
            masked(lane.branch) if lane else None,
            row.seq,
        )
        places[place] = None
    for fingerprint, (rule, places) in by_name.items():
        yield Finding(rule, fingerprint, tuple(places))


def _redacted(
    scanner: Scanner, page: Page, bad: Sequence[_Found], allowed: frozenset[str]
) -> Page:
    """Returns a page in which fingerprints replace secrets.

    If a secret is found again, because its notation cannot be replaced, the whole text around
    it is removed.
    """
    for _ in range(_ROUNDS):
        values = {one.hit.value: one.hit.fingerprint for one in bad if one.hit.value}
        eraser = Eraser(values.items())
        page = msgspec.json.decode(eraser.records(msgspec.json.encode(page)), type=Page)
        bad = _again(scanner, page, allowed)
        if not bad:
            return page
    for one in bad:
        _blank(one)
    if _again(scanner, page, allowed):
        raise SecretsFoundError(
            "the page cannot be written: a secret in it cannot be redacted",
            hint="use --prompts-only or --no-files to leave out more",
        )
    return page


def _again(scanner: Scanner, page: Page, allowed: frozenset[str]) -> list[_Found]:
    return [
        _Found(row, piece, hit)
        for row in _rows(page)
        for piece in _pieces(row)
        for hit in scanner.scan([piece.text], piece.path.encode())
        if hit.fingerprint not in allowed
    ]


def _blank(one: _Found) -> None:
    """Removes all texts of the kind that a secret is still in."""
    row, piece, _ = one
    match piece.kind:
        case "conversation":
            row.talk = []
            row.notes.append("the conversation is left out: it holds a secret")
        case "decisions":
            row.reasons = []
            row.notes.append("the reasons are left out: they hold a secret")
        case "file":
            for file in row.files:
                if file.path == piece.path:
                    file.patch, file.why = "", "left out: it holds a secret"
        case _:
            row.prompt = row.note = row.label = ""
