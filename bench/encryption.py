"""What a remote gets of an encrypted session: pruned, encrypted again, and its steps.

python bench/encryption.py --gitcp VENV/bin/gitcp

It needs pyrage in the environment that runs it, and in that of gitcp.
"""

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyrage
from measure import run

_WORDS = 4000
_STEPS = """
import gitcp
session = gitcp.open(".").session("steps")
session.save(note="start")
for number in range({count}):
    session.step(f"step {{number}}", lambda: {{"text": "a result of it " * 8}})
session.flush()
"""


def main() -> None:
    """Runs every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--bytes", type=int, default=4000, help="of each turn")
    parser.add_argument("--steps", type=int, default=1000)
    given = parser.parse_args()
    gitcp = shutil.which(given.gitcp) or given.gitcp
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        people = keys(place)
        for session, fill in (("talk", turns), ("steps", steps)):
            ann = place / session
            git(place, "init", "-q", "-b", "main", str(ann))
            git(ann, "config", "user.name", "a")
            git(ann, "config", "user.email", "a@b")
            git(ann, "config", "gitcp.secrets", "off")
            git(ann, "commit", "-q", "--allow-empty", "-m", "first")
            fill(gitcp, ann, given)
            print(f"\n### {session}\n\n| case | plaintext | encrypted |\n|---|---|---|")
            remotes = [
                hub(place, ann, f"{session}-{kind}") for kind in ("plain", "enc")
            ]
            cases: list[list[str]] = [["push"]]
            if session == "talk":
                cases += [["prune"], ["push", "--pruned"], ["push", "--re-encrypt"]]
            for case in cases:
                if case == ["prune"]:
                    keep = str(given.turns // 2)
                    run([gitcp, "prune", "--keep-last", keep, "-y"], ann)
                    continue
                told = []
                for remote, to in zip(remotes, ([], people), strict=True):
                    recipients(ann, to)
                    if case[-1] == "--re-encrypt" and not to:
                        told.append("")
                    else:
                        told.append(sent(gitcp, ann, remote, *case))
                print(f"| `gitcp {' '.join(case)}` | {' | '.join(told)} |")
            for name in ("age", "rsa"):
                told = []
                for remote in remotes:
                    told.append(pulled(gitcp, ann, remote, place / name))
                print(f"| `gitcp pull` with the {name} key | {' | '.join(told)} |")


def keys(place: Path) -> list[str]:
    """Makes an age key and an rsa key; returns what to encrypt to."""
    identity = pyrage.x25519.Identity.generate()
    (place / "age").write_text(f"{identity}\n")
    rsa = ["ssh-keygen", "-q", "-t", "rsa", "-b", "3072", "-N", "", "-f"]
    subprocess.run([*rsa, place / "rsa"], check=True)
    return [str(identity.to_public()), (place / "rsa.pub").read_text().strip()]


def turns(gitcp: str, ann: Path, given: argparse.Namespace) -> None:
    """Saves a conversation that grows turn by turn."""
    chance = random.Random(1)
    words = [f"{chance.getrandbits(30):x}" for _ in range(_WORDS)]
    for number in range(given.turns):
        (ann / "a").write_text(str(number))
        text = " ".join(chance.choices(words, k=given.bytes // 8))
        line = f'{{"role":"user","content":"{text}"}}\n'.encode()
        command = [gitcp, "-q", "save", "-s", "talk", "--append", "-"]
        subprocess.run(command, cwd=ann, input=line, check=True, capture_output=True)


def steps(gitcp: str, ann: Path, given: argparse.Namespace) -> None:
    """Runs steps."""
    del gitcp
    program = _STEPS.format(count=given.steps)
    subprocess.run([sys.executable, "-c", program], cwd=ann, check=True)


def hub(place: Path, ann: Path, name: str) -> Path:
    """Makes a remote that keeps each push as a pack."""
    path = place / f"{name}.git"
    git(place, "clone", "-q", "--bare", str(ann), str(path))
    git(path, "config", "receive.unpackLimit", "1")
    git(ann, "remote", "add", name, str(path))
    return path


def recipients(ann: Path, to: list[str]) -> None:
    """Sets whom to encrypt to."""
    subprocess.run(
        ["git", "config", "--unset-all", "gitcp.encryptTo"], cwd=ann, check=False
    )
    for one in to:
        git(ann, "config", "--add", "gitcp.encryptTo", one)


def packs(path: Path) -> dict[Path, int]:
    """Returns the packs of a repository and their sizes."""
    found = (path / "objects" / "pack").glob("*.pack")
    return {pack: pack.stat().st_size for pack in found}


def sent(gitcp: str, ann: Path, remote: Path, *args: str) -> str:
    """Pushes; returns how much the remote got, and what it cost here."""
    before = packs(remote)
    began = spent()
    run([gitcp, args[0], remote.stem, *args[1:]], ann)
    took = spent() - began
    size = sum(packs(remote).values()) - sum(before.values())
    return f"{size / 1000:,.0f} kB, {took:.2f} s"


def pulled(gitcp: str, ann: Path, remote: Path, key: Path) -> str:
    """Pulls into a new clone; returns what it cost."""
    clone = ann.with_name(f"{remote.stem}-{key.name}")
    git(ann.parent, "clone", "-q", str(remote), str(clone))
    git(clone, "config", "gitcp.identity", str(key))
    began = spent()
    run([gitcp, "pull"], clone)
    return f"{spent() - began:.2f} s"


def spent() -> float:
    """Returns the processor time of all that was started so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def git(path: Path, *args: str) -> None:
    """Runs git."""
    subprocess.run(["git", *args], cwd=path, check=True, capture_output=True)


if __name__ == "__main__":
    main()
