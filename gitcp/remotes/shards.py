"""Many git repositories as one remote: the name of a session selects its repository.

A session's branches and ledger are in one repository. So push and pull see one remote, and
gitcp asks only the repositories that the sessions in question can be in.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gitcp.errors import TransferError
from gitcp.format import layout
from gitcp.git.remote import Advertised, Answer, Update
from gitcp.git.shard_pattern import ShardPattern
from gitcp.git.transport import Limits, Look
from gitcp.git.unreachable import NoRepositoryError
from gitcp.remotes.remote import Remote

# How many sessions one request can name, to a pattern and to one of its repositories; how
# many repositories are asked at once.
_NAMED = 5_000
_NAMED_OF_ONE = 100
_AT_ONCE = 8
# So few pushes at once, because each packs objects in memory.
_PUSHES = 4
_ALL = (layout.SESSIONS, layout.EFFECTS)

# Opens the repository at an address; the flag says whether git may ask the user something.
Opener = Callable[[str, bool], Remote]


class ShardedRemote:
    """A remote that is a pattern over git repositories."""

    named: int | None = _NAMED
    lists_all = False

    def __init__(
        self, pattern: ShardPattern, open_at: Opener, *, interactive: bool
    ) -> None:
        """`open_at` opens each repository of the pattern."""
        self._pattern = pattern
        self._open_at = open_at
        self._interactive = interactive
        self._failed: dict[int, TransferError] = {}
        self._holders: dict[str, int] = {}

    # --- what is there --------------------------------------------------------------

    def advertised(self, prefixes: Sequence[str]) -> Advertised:
        """Asks the repositories of the sessions that the prefixes name, or all repositories.

        Branches of the project are not listed, because each repository may have others. If
        a repository does not answer, it has no refs here; `why_not` and `silent` report it.

        Raises:
            TransferError: no repository can be reached.
        """
        asked = self._asked(prefixes)
        listed = self._ask(asked)
        for number in asked:
            self._failed.pop(number, None)
        self._failed |= {
            number: one
            for number, one in listed.items()
            if isinstance(one, TransferError)
        }
        self._refuse_all_failed(asked)
        refs: dict[str, str] = {}
        strange: set[str] = set()
        for number, one in listed.items():
            if isinstance(one, TransferError):
                continue
            for ref, oid in one.refs.items():
                if self._number(ref) != number or ref in one.symbolic:
                    strange.add(ref)
                else:
                    refs[ref] = oid
                    self._holders[oid] = number
            strange |= one.symbolic
        # A ref counts as valid if the repository that its name selects has it.
        return Advertised(refs, frozenset(strange - refs.keys()))

    def _asked(self, prefixes: Sequence[str]) -> dict[int, list[str]]:
        """Returns the prefixes to ask for, by repository."""
        asked: dict[int, list[str]] = {}
        for prefix in prefixes:
            if prefix in _ALL:
                return {number: [*_ALL] for number in range(self._pattern.repositories)}
            number = self._number(prefix)
            if number is not None:
                asked.setdefault(number, []).append(prefix)
        return {
            number: some if len(some) <= _NAMED_OF_ONE else [*_ALL]
            for number, some in sorted(asked.items())
        }

    def _ask(
        self, asked: Mapping[int, Sequence[str]]
    ) -> dict[int, Advertised | TransferError]:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            answers = threads.map(
                lambda item: self._ask_one(*item, interactive=False), asked.items()
            )
            found = dict(zip(asked, answers, strict=True))
        if not self._interactive:
            return found
        for number, answer in found.items():
            if not isinstance(answer, TransferError) or _is_missing(answer):
                continue
            # Two repositories at once cannot ask for a password at one terminal. After the
            # first, a credential helper may know it. If it is wrong, stop asking.
            found[number] = self._ask_one(number, asked[number], interactive=True)
            if isinstance(found[number], TransferError):
                break
        return found

    def _ask_one(
        self, number: int, prefixes: Sequence[str], *, interactive: bool
    ) -> Advertised | TransferError:
        remote = self._open_at(self._pattern.address(number), interactive)
        try:
            return remote.advertised(prefixes)
        except TransferError as exc:
            return exc

    def _refuse_all_failed(self, asked: Mapping[int, object]) -> None:
        failed = [self._failed[number] for number in asked if number in self._failed]
        if not failed or len(failed) < len(asked):
            return
        unreachable = [one for one in failed if not _is_missing(one)]
        if unreachable:
            raise unreachable[0]
        if len(asked) == self._pattern.repositories:
            raise TransferError(
                f"none of the {len(asked)} repositories of {self._pattern.text} is there:"
                f" {failed[0].message}",
                hint="create them, or check the pattern",
            )

    def why_not(self, ref: str) -> TransferError | None:
        """Returns why the repository of a ref did not answer when it was last asked."""
        number = self._number(ref)
        return None if number is None else self._failed.get(number)

    def silent(self) -> list[str]:
        """Returns why repositories that may exist did not answer."""
        return [one.message for one in self._failed.values() if not _is_missing(one)]

    def project(self, tips: Iterable[str]) -> frozenset[str]:
        """Returns none: a repository that has only sessions advertises no branch."""
        del tips
        return frozenset()

    # --- moving ---------------------------------------------------------------------

    def send(
        self,
        updates: Sequence[Update],
        *,
        replaces: bool = False,
        elsewhere: Collection[str] = (),
    ) -> Mapping[str, Answer]:
        """Makes git push to each repository once; if one fails, only its refs are refused."""
        del elsewhere
        parts: dict[int, list[Update]] = {}
        for update in updates:
            number = self._number(update.ref)
            assert number is not None
            parts.setdefault(number, []).append(update)

        def send_to(number: int) -> Mapping[str, Answer]:
            try:
                return self._open(number).send(parts[number], replaces=replaces)
            except TransferError as exc:
                return {one.ref: Answer("!", exc.message) for one in parts[number]}

        with ThreadPoolExecutor(1 if self._interactive else _PUSHES) as threads:
            answers = list(threads.map(send_to, sorted(parts)))
        return {ref: answer for each in answers for ref, answer in each.items()}

    def fetch_into(
        self,
        objects: Path,
        wanted: Sequence[str],
        *,
        near: Sequence[str],
        limits: Limits,
        look: Look | None,
    ) -> None:
        """Makes git fetch from each repository the commits that it advertised."""
        parts: dict[int, list[str]] = {}
        for oid in wanted:
            parts.setdefault(self._holders[oid], []).append(oid)
        for number, part in sorted(parts.items()):
            self._open(number).fetch_into(
                objects, part, near=near, limits=limits, look=look
            )

    def _open(self, number: int) -> Remote:
        return self._open_at(self._pattern.address(number), self._interactive)

    def _number(self, ref: str) -> int | None:
        """Returns the repository of a ref, or of a prefix that ends in a session's name."""
        for prefix in _ALL:
            session = ref.removeprefix(prefix).partition("/")[0]
            if ref.startswith(prefix) and session:
                return self._pattern.number(session)
        return None


def _is_missing(error: TransferError) -> bool:
    return isinstance(error, NoRepositoryError)
