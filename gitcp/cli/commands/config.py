"""`gitcp config`: lists, sets and unsets settings."""

import click

from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command
from gitcp.errors import UsageError
from gitcp.project import config
from gitcp.project.settings import KNOWN


@command("config")
@click.argument("key", required=False, metavar="[KEY")
@click.argument("value", required=False, metavar="[VALUE]]")
@click.option(
    "--add", is_flag=True, help="Add a value to a setting that can have several"
)
@click.option("--unset", is_flag=True, help="Go back to the default")
def config_command(
    out: Output, key: str | None, value: str | None, add: bool, unset: bool
) -> None:
    """List, read or change settings.

    Settings are git configuration in the section `gitcp`. An environment variable such
    as GITCP_MAX_FILE_SIZE overrides the setting of that name. This command writes to the
    repository's own configuration. To change a setting for all your repositories, use
    `git config --global gitcp.KEY VALUE`.
    """
    # Do not open the whole workspace: users must be able to repair an invalid setting.
    repository = config.repository_around(out.directory)
    if key is None:
        _print(out, [config.get(repository, name) for name in KNOWN], whole=True)
        return
    name = config.known(key)
    if unset and (value is not None or add):
        raise UsageError("--unset takes no value", hint=f"gitcp config {name} --unset")
    if unset:
        config.unset(repository, name)
    elif value is not None:
        config.put(repository, name, value, add=add)
    else:
        _print(out, [config.get(repository, name)], whole=False)
        return
    if out.json:
        repository = config.repository_around(out.directory)
        _print(out, [config.get(repository, name)], whole=False)


def _print(out: Output, shown: list[config.Setting], *, whole: bool) -> None:
    if out.json:
        settings = [setting._asdict() for setting in shown]
        out.document({"schema": "gitcp.config/1", "settings": settings})
        return
    if not whole:
        for value in shown[0].values:
            out.print(safe(value), whole=True)
        return
    width = max(len(setting.name) for setting in shown)
    for setting in shown:
        values = safe(", ".join(setting.values)) or "(none)"
        name = out.style(f"{setting.name:<{width}}", fg="cyan")
        origin = ""
        if setting.origin != "default":
            origin = f"  [{setting.origin}; default {setting.default or 'none'}]"
        out.print(f"{name}  {values}{origin}")
        out.print(f"{'':{width}}  {setting.meaning}")
