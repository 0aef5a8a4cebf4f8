"""`gitcp demo`: shows a save, a wreck and a restore on a throw-away project."""

import shutil
import tempfile
import time
from pathlib import Path

import click

from gitcp.checkpoints.demo import Command, DemoCheck, Remark, Title, demo
from gitcp.cli.emit import Output
from gitcp.cli.options import command


@command("demo")
@click.option("--keep", is_flag=True, help="Keep the project, to look at it")
def demo_command(out: Output, keep: bool) -> int:
    """Show what gitcp does, in a temporary project.

    The demo neither reads nor writes your files: its project, home and git configuration
    are temporary. It checks each step, and exits with 1 if a check fails.
    """
    started = time.monotonic()
    checks: list[DemoCheck] = []
    directory = Path(tempfile.mkdtemp(prefix="gitcp-demo-"))
    try:
        for event in demo(directory, color=out.color):
            if isinstance(event, DemoCheck):
                checks.append(event)
            if not out.json:
                _show(out, event)
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)
    failed = [check for check in checks if not check.passed]
    if out.json:
        out.document(
            {
                "schema": "gitcp.demo/1",
                "ok": not failed,
                "checks": [{"check": item.text, "ok": item.passed} for item in checks],
                "kept": str(directory / "shop") if keep else None,
            }
        )
        return 1 if failed else 0
    seconds = time.monotonic() - started
    out.print()
    if failed:
        count = f"{len(failed)} of {len(checks)} checks failed"
        out.print(out.style(count, fg="red", bold=True))
        for check in failed:
            out.print(f"  {check.text}")
    else:
        count = f"all {len(checks)} checks passed"
        out.print(f"{out.style(count, fg='green', bold=True)} in {seconds:.1f} s")
    if keep:
        out.print(f"the project is in {directory / 'shop'}")
    else:
        out.print("the project was removed; `gitcp demo --keep` keeps it")
    if not failed:
        out.print("next: run `gitcp save -m 'it works'` in a project of your own")
    return 1 if failed else 0


def _show(out: Output, event: Title | Remark | Command | DemoCheck) -> None:
    match event:
        case Title(text):
            out.print(f"\n{out.style(text, bold=True, underline=True)}")
        case Remark(text):
            if text.startswith("user:"):
                out.print()
            out.print(f"  {out.style(text, fg='cyan')}")
        case DemoCheck(text, passed):
            mark = (
                out.style("ok  ", fg="green") if passed else out.style("FAIL", fg="red")
            )
            out.print(f"  {mark}  {text}")
        case Command(line, done):
            for number, part in enumerate(line.split("\n")):
                sign = "$" if number == 0 else ">"
                out.print(f"  {out.style(f'{sign} {part}', bold=True)}")
            # This is our own output, with colours, of a project that we wrote ourselves.
            for said in done.output.splitlines():
                out.raw(b"    " + said + b"\n")
            if done.status:
                out.print(f"    {out.style(f'exit status {done.status}', fg='red')}")
