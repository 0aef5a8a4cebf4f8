"""Holds which records of a batch are done, as intervals: the position of the batch."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any


class DoneRecords:
    """Numbers of records, from 0, as intervals that neither overlap nor touch.

    Its position is `{"offset": n}`, where records 0 to n - 1 are done; if some after the
    first that is not done are done as well, `{"offset": n, "done": [[a, b], …]}`, where
    each pair stands for a to b - 1.
    """

    def __init__(self, intervals: Iterable[tuple[int, int]] = ()) -> None:
        self._intervals = list(intervals)
        self.count = sum(last - first for first, last in self._intervals)

    @classmethod
    def of(cls, position: Any) -> "DoneRecords":
        """Returns what a position says.

        Raises:
            ValueError: the value is not the position of a batch.
        """
        if position is None:
            return cls()
        if not isinstance(position, dict):
            raise ValueError(position)  # noqa: TRY004  it is a value that was read
        offset = position.get("offset", -1)
        if not _is_number(offset) or offset < 0:
            raise ValueError(position)
        intervals = [(0, offset)] if offset else []
        before = offset
        behind = position.get("done", [])
        if not isinstance(behind, list):
            raise ValueError(position)  # noqa: TRY004  it is a value that was read
        for interval in behind:
            if not isinstance(interval, list) or len(interval) != 2:  # noqa: PLR2004
                raise ValueError(position)
            first, last = interval
            if not (_is_number(first) and _is_number(last) and before < first < last):
                raise ValueError(position)
            intervals.append((first, last))
            before = last
        return cls(intervals)

    def copy(self) -> "DoneRecords":
        """Returns an independent copy."""
        return DoneRecords(self._intervals)

    @property
    def position(self) -> dict[str, Any]:
        """What is saved."""
        position: dict[str, Any] = {"offset": self.offset}
        behind = self._intervals[1:] if self.offset else self._intervals
        if behind:
            position["done"] = [list(interval) for interval in behind]
        return position

    @property
    def offset(self) -> int:
        """The number of the first record that is not done."""
        if self._intervals and self._intervals[0][0] == 0:
            return self._intervals[0][1]
        return 0

    @property
    def end(self) -> int:
        """The number after that of the last record that is done."""
        return self._intervals[-1][1] if self._intervals else 0

    def __contains__(self, number: int) -> bool:
        where = bisect_right(self._intervals, number, key=_first)
        return where > 0 and number < self._intervals[where - 1][1]

    def add(self, number: int) -> None:
        """Counts a record as done."""
        where = bisect_right(self._intervals, number, key=_first)
        first, last = number, number + 1
        from_, to = where, where
        if where and self._intervals[where - 1][1] >= number:
            first, before = self._intervals[where - 1]
            if before > number:
                return
            from_ -= 1
        if where < len(self._intervals) and self._intervals[where][0] == last:
            last = self._intervals[where][1]
            to += 1
        self._intervals[from_:to] = [(first, last)]
        self.count += 1


def _first(interval: tuple[int, int]) -> int:
    return interval[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
