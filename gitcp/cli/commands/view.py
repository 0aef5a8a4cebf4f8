"""`gitcp view`: writes a session as a page to look at, or serves it."""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitcp.cli.emit import Output, safe_path
from gitcp.cli.options import command, left_out, reader
from gitcp.cli.render import count, size
from gitcp.durable import replace_from, storage
from gitcp.errors import UsageError, WouldOverwriteError
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    from gitcp.view.chosen import Chosen
    from gitcp.view.rows import Wanted
    from gitcp.view.vetting import Vetted

# The beginning of a page: gitcp may replace an existing file that begins so.
_OWN = b"<!doctype html>\n<!-- A page of gitcp:"


@command("view")
@click.argument("selector", metavar="[SEL|SESSION]", required=False)
@click.option("-o", "--output", "file", metavar="FILE", help="Write the page to FILE")
@click.option("--redact", is_flag=True, help="Replace secrets by their fingerprints")
@click.option(
    "--allow",
    multiple=True,
    metavar="FINGERPRINT",
    help="Let this secret pass this once (repeatable)",
)
@click.option(
    "--prompts-only", is_flag=True, help="Leave out answers, files and reasons"
)
@click.option("--no-files", is_flag=True, help="Leave out changes to files")
@click.option(
    "--serve", is_flag=True, help="Serve the page live to this machine, until Ctrl-C"
)
def view_command(
    out: Output,
    selector: str | None,
    file: str | None,
    redact: bool,
    allow: tuple[str, ...],
    prompts_only: bool,
    no_files: bool,
    serve: bool,
) -> int:
    """Show a session in a browser: conversation, files and reasons by turn.

    The page is one file that needs no network. Without SEL it shows the session of the
    newest checkpoint. Without -o gitcp writes it to the temporary directory, readable for
    you only. As with an export, gitcp first scans the page for secrets. It does not scan
    what `--serve` shows, because that does not leave this machine.
    """
    from gitcp.view.chosen import choose
    from gitcp.view.rows import Wanted

    wanted = Wanted(prompts_only, files=not no_files)
    if serve:
        _refuse_beside_serve(file, redact=redact, allow=allow)
        _serve(out, selector, wanted)
        return 0
    if out.json and file == "-":
        raise UsageError(
            "--json and -o - both print to stdout", hint="name a file for the page"
        )
    path = None if file in {None, "-"} else Path(out.directory, str(file))
    if path is not None:
        _check_target(path)
    workspace = reader(out)
    chosen = choose(workspace, selector)
    doing = f"the page of {chosen.session}"
    made = _vetted(out, workspace, chosen, wanted, doing, allow, redact=redact)
    _write(out, path, made, to_stdout=file == "-")
    return left_out(out, made.page.notes)


def write_page(out: Output, workspace: Workspace, selector: str) -> None:
    """Writes the page of a session to the temporary directory, as `gitcp view SEL` does.

    Raises:
        SecretsFoundError: the session holds secrets.
    """
    from gitcp.view.chosen import choose
    from gitcp.view.rows import Wanted

    chosen = choose(workspace, selector)
    doing = f"the page of {chosen.session}"
    made = _vetted(out, workspace, chosen, Wanted(), doing, (), redact=False)
    _write(out, None, made, to_stdout=False)


def _refuse_beside_serve(
    file: str | None, *, redact: bool, allow: tuple[str, ...]
) -> None:
    """Refuses options that concern a file.

    Raises:
        UsageError: an option that concerns a file was given.
    """
    if file is not None or redact or allow:
        raise UsageError(
            "--serve writes no file: it takes neither -o nor --redact nor --allow",
            hint="remove --serve to write a file",
        )


def _check_target(path: Path) -> None:
    """Refuses to replace a file that is not a page.

    Raises:
        WouldOverwriteError: the path is a file that is not a page.
        UsageError: the path is a directory, or its directory is missing.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a directory", hint="name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is not a directory", hint="create it first")
    if not path.is_file():
        return
    with storage(f"reading {path}"), path.open("rb") as there:
        begins = there.read(len(_OWN))
    if begins and begins != _OWN:
        raise WouldOverwriteError(
            f"{path} exists and was not written by `gitcp view`",
            paths=[str(path)],
            hint="name another file",
        )


def _vetted(
    out: Output,
    workspace: Workspace,
    chosen: "Chosen",
    wanted: "Wanted",
    doing: str,
    allow: tuple[str, ...],
    *,
    redact: bool,
) -> "Vetted":
    from gitcp.cli import findings
    from gitcp.view.rows import page_of
    from gitcp.view.vetting import Vetting

    shown = 0

    def show_count(done: int) -> None:
        nonlocal shown
        # Other processes scan most of the turns between.
        if done >= shown + _TURNS:
            shown = done
            out.transient(f"looking for secrets: {done:,} turns")

    vetting = Vetting(workspace, allow=allow, redact=redact)
    page = page_of(workspace, chosen, wanted, now=time.time)
    made = vetting.vet(page, doing, show_count)
    if made.findings:
        out.warn("it holds secrets (allowed, because gitcp.secrets is `warn`):")
        findings.show(out, made.findings)
    return made


_TURNS = 20


def _write(out: Output, path: Path | None, made: "Vetted", *, to_stdout: bool) -> None:
    from gitcp.view.page import written

    data = written(made.page)
    if to_stdout:
        out.raw(data)
        return
    shown = _put(path, data)
    page = made.page
    if out.json:
        out.document(_document(page.session, made, shown, len(data), None))
        return
    out.print(safe_path(os.fspath(shown)), whole=True)
    secrets = f", {count(page.redacted, 'secret')} redacted" if page.redacted else ""
    out.note(f"{count(len(page.rows), 'row')}, {size(len(data))}{secrets}")


def _document(
    session: str,
    made: "Vetted | None",
    file: Path | None,
    size_of: int | None,
    url: str | None,
) -> dict[str, Any]:
    from gitcp.cli import findings

    secrets = [*made.findings, *made.allowed] if made is not None else []
    return {
        "schema": "gitcp.view/1",
        "session": session,
        "file": os.fspath(file) if file is not None else None,
        "bytes": size_of,
        "rows": len(made.page.rows) if made is not None else None,
        "redacted": made.page.redacted if made is not None else None,
        "secrets": findings.documents(secrets),
        "unreadable": made.page.notes if made is not None else [],
        "url": url,
    }


def _put(path: Path | None, data: bytes) -> Path:
    """Writes the page and returns its path; by default a new file, readable by the user only."""
    if path is not None:
        with storage(f"writing {path}"):
            if path.exists() and not path.is_file():
                # A file in place of /dev/null would break every program on the machine.
                with path.open("wb") as device:
                    device.write(data)
            else:
                replace_from(path.resolve(), (data,))
        return path
    with storage("writing the page"):
        descriptor, name = tempfile.mkstemp(prefix="gitcp-", suffix=".html")
        try:
            with os.fdopen(descriptor, "wb") as new:
                new.write(data)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
    return Path(name)


def _serve(out: Output, selector: str | None, wanted: "Wanted") -> None:
    """Serves the page until the user interrupts it."""
    from gitcp.view.live import Live
    from gitcp.view.served import serve

    bare = out.directory != "."
    served = serve(out.directory, selector, wanted, bare=bare)
    with Live(served.source) as live:
        if out.json:
            session = served.chosen.session
            out.document(_document(session, None, None, None, live.url))
        else:
            out.print(live.url, whole=True)
        out.note("Only this machine can open it; Ctrl-C stops it")
        live.serve_forever()
