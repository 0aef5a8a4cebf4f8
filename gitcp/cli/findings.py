"""Prints findings by place and fingerprint, never by value."""

from collections.abc import Callable, Iterable
from typing import Any

from gitcp.cli.documents import path_fields
from gitcp.cli.emit import Output, safe, safe_path
from gitcp.secrets.findings import Finding, Place

_SHOWN = 4
_OBJECTS = 500
_WORDS = {
    "file": "",
    "checkpoint": "",
    "conversation": "the conversation",
    "decisions": "the decision log",
    "steps": "the steps",
    "message": "the message of the commit",
    "name": "a name",
    "ledger": "its step ledger",
}


def documents(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Returns secrets by rule, fingerprint and places; never with their values."""
    return [
        {
            "fingerprint": finding.fingerprint,
            "rule": finding.rule,
            "places": [
                {
                    "kind": place.kind,
                    **path_fields(place.path),
                    "number": place.number,
                    "commit": place.commit,
                    "checkpoint": place.checkpoint,
                    "session": place.session,
                    "branch": place.branch,
                    "seq": place.seq,
                }
                for place in finding.places
            ],
        }
        for finding in findings
    ]


def show(out: Output, findings: Iterable[Finding]) -> None:
    """Prints the places of secrets to stderr."""
    for finding in findings:
        name = out.style(finding.fingerprint, fg="yellow", bold=True)
        out.tell(f"  {name}  {safe(finding.rule)}")
        for place in finding.places[:_SHOWN]:
            out.tell(f"    {safe(_place(place))}")
        more = len(finding.places) - _SHOWN
        if more > 0:
            out.tell(f"    … and in {more} more places")


def _place(place: Place) -> str:
    where = f"{place.session}/{place.branch}:{place.seq} {place.checkpoint}"
    if place.checkpoint is None:
        where = f"commit {place.commit[:12]}"
    if place.kind == "ledger":
        where = f"{place.session}"
    what = _WORDS.get(place.kind, place.kind)
    if place.kind in {"file", "checkpoint"}:
        what = f"{safe_path(place.path)}:{place.number}"
    elif place.kind == "name":
        what = f"the name {safe_path(place.path)}"
    elif place.number is not None and place.kind != "message":
        what += f", record {place.number}"
    return f"{where}  {what}"


def progress(out: Output) -> Callable[[int], None]:
    """Returns a callback that shows the number of scanned objects."""

    def show_count(done: int) -> None:
        if done % _OBJECTS == 0:
            out.transient(f"looking for secrets: {done:,} objects")

    return show_count
