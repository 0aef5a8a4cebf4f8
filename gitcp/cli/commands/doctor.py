"""`gitcp doctor`: prints what keeps gitcp from working here."""

from pathlib import Path

from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command
from gitcp.githooks.health import git_hooks
from gitcp.maintenance.doctor import doctor


@command("doctor")
def doctor_command(out: Output) -> int:
    """Look for whatever could keep gitcp from working here.

    Exits with 1 if something is not well. Nothing is changed, except that what killed
    processes left is cleared away.
    """
    checks = list(doctor(Path(out.directory), [git_hooks]))
    ok = all(check.ok for check in checks)
    if out.json:
        out.document(
            {
                "schema": "gitcp.doctor/1",
                "ok": ok,
                "checks": [check._asdict() for check in checks],
            }
        )
        return 0 if ok else 1
    for check in checks:
        word, color = ("ok", "green") if check.ok else ("!!", "red")
        mark = out.style(word, fg=color, bold=not check.ok)
        out.print(f"{mark}  {check.name:<11} {safe(check.detail)}")
        if check.hint:
            out.print(f"{'':15} {safe(check.hint)}")
    return 0 if ok else 1
