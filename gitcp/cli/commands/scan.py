"""`gitcp scan`: scans what a push would send for secrets."""

import click

from gitcp.cli import findings
from gitcp.cli.emit import Output
from gitcp.cli.options import command, reader
from gitcp.cli.render import count
from gitcp.errors import GitcpError, PartialError, SecretsFoundError


@command("scan")
@click.argument("sessions", metavar="[SESSION[/BRANCH]]...", nargs=-1)
def scan_command(out: Output, sessions: tuple[str, ...]) -> int:
    """Scan checkpoints for secrets, as push does.

    Scans files, conversations, decision logs, names and messages of all sessions, or of
    those that you name. It skips what a remote already has. Exits with 24 if it finds a
    secret, otherwise with 3 if it could not read something.
    """
    from gitcp.secrets import policy as ops
    from gitcp.secrets.outgoing import ANY
    from gitcp.sync.push import chosen

    workspace = reader(out)
    tips = chosen(workspace, sessions)
    unreadable: dict[str, str] = {}

    def note(commit: str, why: GitcpError) -> None:
        unreadable.setdefault(commit, why.message)

    checked = ops.scan(
        workspace,
        tips.values(),
        remote=ANY,
        progress=findings.progress(out),
        unreadable=note,
    )
    left = [f"{commit[:12]}: {message}" for commit, message in unreadable.items()]
    if out.json:
        out.document(
            {
                "schema": "gitcp.scan/1",
                "scanned": checked.scanned,
                "secrets": findings.documents(checked.findings),
                "allowed": findings.documents(checked.allowed),
                "unreadable": left,
            }
        )
    else:
        looked = f"{count(checked.scanned, 'new object')} scanned"
        if checked.findings:
            out.print(f"{looked}: {count(len(checked.findings), 'secret')}")
            findings.show(out, checked.findings)
            out.note("`gitcp purge FINGERPRINT` removes one from all checkpoints")
        else:
            out.print(f"{looked}: no secret")
    for line in left:
        out.warn(f"not scanned: {line}")
    if checked.findings:
        return SecretsFoundError.exit_status
    return PartialError.exit_status if left else 0
