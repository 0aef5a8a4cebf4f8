"""`gitcp pusher`: the process that sends queued sessions to a remote."""

import click

from gitcp.cli.emit import Output
from gitcp.cli.options import command


@command("pusher")
@click.argument("spool", metavar="SPOOL")
def pusher_command(out: Output, spool: str) -> None:
    """Send what is queued for a remote until the queue is empty.

    gitcp starts this in the background, once for each remote on a machine. SPOOL is the
    name of a directory in gitcp's state directory. If another process is already sending,
    the command exits at once.
    """
    from gitcp.errors import NotFoundError
    from gitcp.spool import entries, pusher

    found = next((one for one in entries.every_spool() if one.ident == spool), None)
    if found is None or found.route() is None:
        raise NotFoundError(
            f"there is no spool {spool!a}", hint="`gitcp push --spool` makes one"
        )
    if not pusher.serve(found):
        out.note("another process is sending it")
