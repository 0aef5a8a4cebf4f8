"""Finds tracked files that the user's index names and no listing finds.

Git tracks files and submodules though they are ignored, or lie in a directory that has
become a repository of its own, or are left out by a sparse checkout.
"""

import os
from collections.abc import Collection, Iterable, Iterator

from gitcp.format import tree as trees
from gitcp.format.tree import GITLINK
from gitcp.worktree.listing import UNSETTLED, Found, Listing, ScanPlace
from gitcp.worktree.names import folded, no_place, parents
from gitcp.worktree.sparse import Sparse
from gitcp.worktree.state import ScanState, Signature
from gitcp.worktree.tracked_names import TrackedNames

# Paths for one command line.
_AT_ONCE = 200
_GITLINK = f"{GITLINK:o} ".encode()


class Tracked:
    """Brings `forced`, `submodules`, `sparse` and `hidden` of a state up to date."""

    def __init__(
        self, context: ScanPlace, state: ScanState, result: Found, listing: Listing
    ) -> None:
        self._place = context
        self._state = state
        self._found = result
        self._listing = listing
        self._git = context.repository.git
        self.sparse = Sparse(context, state, listing)
        self._names = TrackedNames(
            context.repository, context.private.directory, state, context.is_there
        )
        self._forced_before = set(state.forced)
        self._sparse_before = set(state.sparse)
        self._nested_before = set(state.nested)
        self._skipped_before = set(state.skipped)
        self._index: Signature | None = None
        self._index_changed = True

    def look(self) -> None:
        """Looks at the user's index; ignore files that only it has count from now on."""
        state = self._state
        try:
            status = os.stat(self._place.repository.git_dir / "index")
            self._index = self._place.settled(status)
        except FileNotFoundError:
            self._index = None
        self._index_changed = (
            self._index != state.user_index
            or self._index == UNSETTLED
            or self.sparse.is_outdated()
        )
        if self._index_changed:
            if self._index is not None:
                self._names.start()
            self.sparse.learn()

    def close(self) -> None:
        """Ends what runs in the background."""
        self._names.close()

    def look_again(self) -> None:
        """Learns what a sparse checkout leaves out, where listings show a change."""
        if self.sparse.came():
            self._index_changed = True
            self.sparse.learn()

    def unsure(self) -> set[bytes]:
        """Returns files that a listing is to lead to, though the last tree has them."""
        state = self._state
        return {*state.forced, *state.sparse, *self._sparse_before}

    def learn(self, *, whole: bool, listed: frozenset[bytes] = frozenset()) -> None:
        """Notes what is tracked though no listing leads to it.

        `listed` are paths to which a listing of this scan led.
        """
        state = self._state
        result = self._found
        came = not result.look.isdisjoint(state.sparse)
        # What is tracked below one that went is found by listings again.
        came_or_left = state.nested.keys() != self._nested_before
        away = {*result.gone, *state.hidden, *self._skipped_before}
        replaced = any(
            path not in self._forced_before and self._place.is_there(path)
            for path in state.submodules
        )
        if not (whole or came or came_or_left or replaced or self._index_changed):
            self._find_submodules(away.intersection(state.forced))
            return
        state.user_index = self._index
        if came:
            self.sparse.learn()
        files, submodules = (
            self._ignored(whole=whole) if self._index is not None else ([], [])
        )
        # Their directories are not listed: nothing else notices that git stopped tracking them.
        for path in state.nested.keys() & (set(state.submodules) - set(submodules)):
            del state.nested[path]
            result.gone.add(path)
        state.submodules = submodules
        unchanged = set() if whole else self._forced_before - away
        self._find_submodules(set(self._present(files)) - unchanged)
        if self._index is not None:
            files += self._inside(sorted(state.nested))
        state.hidden = sorted({*state.hidden, *(state.sparse.keys() & set(files))})
        state.forced = sorted(set(self._present(files)))
        result.gone -= state.sparse.keys()
        forced = set(state.forced)
        result.look |= forced - self._forced_before
        released = self._forced_before - forced
        back = self._sparse_before - state.sparse.keys()
        if whole:
            # What a sparse checkout brought back has no stat to compare with yet.
            result.look |= back
        else:
            released |= back - forced - listed
            # Git no longer tracks these files: a change of one is not a reason to capture it.
            result.look -= released - listed
            walked = self._listing.walked()
            for path in released & state.skipped.keys():
                if path.rpartition(b"/")[0] not in walked:
                    del state.skipped[path]
        result.gone |= released

    def _ignored(self, *, whole: bool) -> tuple[list[bytes], list[bytes]]:
        """Returns the files and the submodules that git tracks though it ignores them.

        A file in place of a submodule is both: it may become one again. What a
        sparse checkout leaves out counts as a file.
        """
        files: list[bytes] = []
        submodules: list[bytes] = []
        for line in self._names.ignored(whole=whole).split(b"\0"):
            path = line.partition(b"\t")[2]
            is_file = path in self._state.sparse or not line.startswith(_GITLINK)
            (files if is_file else submodules).append(path)
        submodules = sorted(self._present(submodules))
        files += [path for path in submodules if self._place.is_there(path)]
        return files, submodules

    def _present(self, paths: Iterable[bytes]) -> Iterator[bytes]:
        """Yields paths as the disk spells them, without what a sparse checkout omits."""
        for path in paths:
            if path and path not in self._state.sparse:
                yield self._listing.spelling(path)

    def _find_submodules(self, files: Iterable[bytes]) -> None:
        """Adds the ignored submodules that are checked out to the nested repositories.

        A repository in place of one of `files`, which are tracked, is one of them:
        git records its HEAD at the next `git add --update`.
        """
        nested = self._state.nested
        submodules = set(self._state.submodules)
        for path in sorted(submodules.union(files)):
            if (
                path not in nested
                and nested.keys().isdisjoint(parents(path))
                and self._place.stat(path + b"/.git") is not None
            ):
                nested[path] = None
                submodules.add(path)
        self._state.submodules = sorted(submodules)

    def _inside(self, nested: list[bytes]) -> Iterator[bytes]:
        """Yields what this repository tracks below others."""
        if self._listing.folds or not b"".join(nested).isascii():
            yield from self._inside_by_any_name(nested)
            return
        for at in range(0, len(nested), _AT_ONCE):
            some = nested[at : at + _AT_ONCE]
            listed = self._git(
                "--literal-pathspecs", "ls-files", "-z", "--cached", "--", *some
            )
            # Of a submodule that is the submodule itself.
            yield from set(listed.split(b"\0")).difference(some)

    def _inside_by_any_name(self, nested: list[bytes]) -> Iterator[bytes]:
        """Does the same where the index may have other names than the disk."""
        keys = {folded(path) for path in nested}
        known: dict[bytes, bool] = {b"": False}

        def is_inside(directory: bytes) -> bool:
            if directory not in known:
                above = is_inside(directory.rpartition(b"/")[0])
                known[directory] = above or folded(directory) in keys
            return known[directory]

        for path in self._git("ls-files", "-z", "--cached").split(b"\0"):
            if is_inside(path.rpartition(b"/")[0]):
                yield path

    def learn_hidden(self, *, everything: bool) -> None:
        """Looks for such files that were away: no listing shows them when they come.

        Deleted ones are looked for each time, others when a place opens or closes.
        """
        state = self._state
        result = self._found
        forced = set(state.forced)
        # A pipe in place of one may become a file again, and no listing shows that.
        waiting = self._skipped_before.union(state.hidden)
        again = forced if everything else forced & waiting
        previous = self._place.previous.entry
        result.look |= {
            path
            for path in again
            if not is_leaf(previous(path)) or not result.gone.isdisjoint(parents(path))
        }
        # The last tree may have one of them that a sparse checkout left out then.
        away = forced if everything else (result.look | result.gone) & forced
        state.hidden = sorted(
            {path for path in away if not self._place.is_there(path)}
            | (state.sparse.keys() & set(state.hidden))
        )
        self._respell(again | self._gone_by_name(forced))

    def _gone_by_name(self, forced: set[bytes]) -> set[bytes]:
        """Returns those of some files whose name is gone, by itself or with a parent.

        The disk may list them under another name, and the ignore rules hide that one.
        """
        gone = self._found.gone
        if not gone:
            return set()
        return {path for path in forced if not gone.isdisjoint((path, *parents(path)))}

    def _respell(self, paths: Iterable[bytes]) -> None:
        """Gives files that came back the name that the disk lists."""
        names = {path: self._listing.spelling(path) for path in paths}
        names = {path: name for path, name in names.items() if name != path}
        if names:
            forced = set(self._state.forced) - names.keys()
            self._state.forced = sorted(forced.union(names.values()))
            # A directory in place of a file that is away may be what has another name.
            self._state.hidden = sorted(
                names.get(path, path) for path in self._state.hidden
            )
            self._found.look.difference_update(names)
            self._found.look.update(names.values())

    def drop_what_is_closed(self, listed: Collection[bytes]) -> None:
        """Takes out what lies in nested repositories and other places never entered.

        Git may list such paths: `gitcp.include` names them. What this repository
        tracks is its own, in a nested repository too. `listed` are paths that a listing of
        this scan led to; their names were judged there.
        """
        result = self._found
        state = self._state
        shut = closed(state)
        own = {*state.forced, *state.sparse}

        git = self._place.repository.own_paths

        def is_open(path: bytes) -> bool:
            if no_place(path) is not None:
                return False
            if git and not git.isdisjoint((path, *parents(path))):
                return False
            if not shut or shut.isdisjoint(parents(path)):
                return True
            return (
                path in own and shut.intersection(parents(path)) <= state.nested.keys()
            )

        paths = result.look | (result.wanted or set())
        shut_out = {
            path
            for path in (paths if shut else paths.difference(listed))
            if not is_open(path)
        }
        result.look -= shut_out
        if result.wanted is not None:
            result.wanted -= shut_out
            result.gone -= result.wanted


def closed(state: ScanState) -> set[bytes]:
    """Returns the directories that are not entered."""
    skipped = state.skipped.items()
    unreadable = {path for path, why in skipped if why == "unreadable"}
    return unreadable | state.nested.keys()


def is_leaf(entry: trees.Entry | None) -> bool:
    """Whether an entry of a tree is a file or a link."""
    return entry is not None and entry.mode not in {trees.DIRECTORY, trees.GITLINK}
