"""`gitcp trust`: lists and changes the trusted remotes."""

import click

from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command, reader
from gitcp.errors import UsageError


@command("trust")
@click.argument("remote", metavar="[REMOTE]", required=False)
@click.option("--remove", is_flag=True, help="Stop trusting it")
def trust_command(out: Output, remote: str | None, remove: bool) -> None:
    """Trust everything that is pulled from a remote.

    Without REMOTE it lists the addresses that you trust. They are in your own git
    configuration (gitcp.trust) and apply to all your repositories. You trust everyone who
    can push to that address: a restore then writes their files even if tools execute them,
    and puts their conversations where your agents find them. A pull from it removes here
    what was pruned there.
    """
    from gitcp.trust import trusted_remotes as trust

    repository = reader(out).repository
    changed, message = False, ""
    if remote is None and remove:
        raise UsageError("no remote was given", hint="`gitcp trust` lists them")
    if remote is not None and remove:
        url = trust.take(repository, remote)
        changed = True
        message = f"{url} is no longer trusted"
    elif remote is not None:
        url, changed = trust.give(repository, remote)
        message = f"{url} is trusted{' from now on' if changed else ' already'}"
    urls = trust.trusted(repository)
    if out.json:
        out.document({"schema": "gitcp.trust/1", "trusted": urls, "changed": changed})
    elif remote is not None:
        out.print(safe(message))
    else:
        for trusted_url in urls:
            out.print(f"  {safe(trusted_url)}")
        if not urls:
            out.note("no remote is trusted; `gitcp trust REMOTE` trusts one")
