"""The result of one check of `gitcp doctor`."""

from typing import NamedTuple


class DoctorCheck(NamedTuple):
    """The result of one check; `hint` says what to do if it failed."""

    name: str
    ok: bool
    detail: str
    hint: str | None = None
