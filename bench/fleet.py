"""Many agents in many clones push to one remote that limits how often it is pushed to.

    python bench/fleet.py [--clones 100] [--agents 1000] [--rounds 10] [--interval 10]

Each agent makes a checkpoint a minute; those of a clone are in one process, and no two
processes are in step. A minute is six push intervals, as the remote takes six pushes a minute
and refuses more: `--interval 2` compresses the time five times, for both.
Prints what the delay was from a checkpoint's acknowledgement to its arrival, and the
processor time of the pusher. Fails if a checkpoint did not arrive, or a branch is not linear.
"""

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from measure import run

_IN_A_MINUTE = 6
_LONGEST = 1800.0
_AGENT = """
import json, sys, time
import gitcp
top, names = sys.argv[1], sys.argv[2].split(",")
rounds, minute, start = map(float, sys.argv[3:])
project = gitcp.open(top)
for turn in range(int(rounds)):
    for at, name in enumerate(names):
        due = start + minute * (turn + at / len(names))
        time.sleep(max(0, due - time.time()))
        open(f"{top}/{name}.txt", "a").write(f"{turn}\\n")
        made = project.session(name).save()
        print(json.dumps([name, made.commit, time.time()]), flush=True)
"""
_LIMIT = """#!/bin/sh
now=$(date +%s%N)
cd "$(git rev-parse --absolute-git-dir)"
count=$(awk -v from=$((now - {window})) '$1 + 0 > from + 0' taken 2>/dev/null | wc -l)
if [ "$count" -ge {most} ]; then echo 'rate limit: try again later' >&2; exit 1; fi
echo $now >>taken
"""
_ARRIVED = """#!/bin/sh
now=$(date +%s.%N)
cd "$(git rev-parse --absolute-git-dir)"
while read old new ref; do echo "$now $new $ref"; done >>arrived
"""


class Made(NamedTuple):
    """A checkpoint that was acknowledged: its session, its commit, when."""

    session: str
    commit: str
    at: float


def main() -> None:
    """Runs the fleet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clones", type=int, default=100)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--interval", type=float, default=10.0)
    parser.add_argument("--kill", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--away", type=float, default=0.0, metavar="SECONDS")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gitcp-fleet-") as base:
        os.environ["XDG_STATE_HOME"] = str(Path(base, "state"))
        os.environ["GITCP_BACKGROUND"] = "false"
        os.environ["GITCP_AUTO_PUSH"] = "save"
        os.environ["GITCP_PUSH_INTERVAL"] = f"{given.interval}s"
        Fleet(Path(base), given).run()


class Fleet:
    """The clones, the remote, and the process that sends."""

    def __init__(self, base: Path, given: argparse.Namespace) -> None:
        self._base = base
        self._given = given
        self._hub = base / "hub.git"
        self._over = threading.Event()
        self._cpu = 0.0
        self._kills = 0
        self._made: list[Made] = []

    def run(self) -> None:
        """Runs it, and prints what it was like."""
        given = self._given
        self._make_hub()
        clones = [self._clone(number) for number in range(given.clones)]
        agents = self._start_agents(clones)
        sending = threading.Thread(target=self._send, daemon=True)
        sending.start()
        away = threading.Thread(target=self._go_away, daemon=True)
        away.start()
        # Each is read at its end: what it prints fits into a pipe.
        for agent in agents:
            out, _ = agent.communicate()
            if agent.returncode:
                sys.exit("an agent failed")
            self._made += [Made(*json.loads(line)) for line in out.splitlines()]
        away.join()
        ended = time.time() + _LONGEST
        missing = self._missing()
        while missing and time.time() < ended:
            time.sleep(0.5)
            missing = self._missing()
        self._over.set()
        sending.join()
        self._tell(missing)

    def _make_hub(self) -> None:
        seed = self._base / "seed"
        seed.mkdir()
        run(["git", "init", "-q", "-b", "main"], seed)
        (seed / "a.py").write_text("1\n")
        run(["git", "add", "."], seed)
        who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        run(["git", *who, "commit", "-qm", "x"], seed)
        run(["git", "clone", "-q", "--bare", seed, self._hub], self._base)
        window = int(self._given.interval * _IN_A_MINUTE * 1e9)
        hooks = {
            # A clock that ticks between two starts of the hook is not held against it.
            "pre-receive": _LIMIT.format(window=window, most=_IN_A_MINUTE + 1),
            "post-receive": _ARRIVED,
        }
        for name, text in hooks.items():
            path = self._hub / "hooks" / name
            path.write_text(text)
            path.chmod(0o755)
        run(["git", "config", "receive.autogc", "false"], self._hub)

    def _clone(self, number: int) -> Path:
        top = self._base / f"clone-{number}"
        run(["git", "clone", "-q", self._hub, top], self._base)
        return top

    def _start_agents(self, clones: list[Path]) -> "list[subprocess.Popen[str]]":
        given = self._given
        each = given.agents // given.clones
        minute = given.interval * _IN_A_MINUTE
        # Some seconds to start in; then no two of them are in step.
        start = time.time() + given.clones / 10
        return [
            subprocess.Popen(
                [
                    *(sys.executable, "-c", _AGENT, str(top)),
                    ",".join(f"agent-{at}-{number}" for number in range(each)),
                    *(str(given.rounds), str(minute)),
                    str(start + minute / each * at / given.clones),
                ],
                stdout=subprocess.PIPE,
                text=True,
                cwd=top,
            )
            for at, top in enumerate(clones)
        ]

    def _send(self) -> None:
        """Keeps a pusher at work, as each save does; kills it now and then."""
        spools = self._base / "state" / "gitcp" / "spool"
        while not self._over.is_set():
            found = list(spools.glob("*/route.json"))
            if not found:
                time.sleep(0.1)
                continue
            started = subprocess.Popen(
                [sys.executable, "-m", "gitcp", "-q", "pusher", found[0].parent.name],
                start_new_session=True,
            )
            until = time.monotonic() + (self._given.kill or _LONGEST)
            while True:
                pid, _, used = os.wait4(started.pid, os.WNOHANG)
                if pid:
                    break
                if self._given.kill and time.monotonic() > until:
                    os.killpg(started.pid, signal.SIGKILL)
                    self._kills += 1
                    until += _LONGEST
                time.sleep(0.1)
            self._cpu += used.ru_utime + used.ru_stime

    def _go_away(self) -> None:
        """Takes the remote away for a while, a third of the way through."""
        given = self._given
        if not given.away:
            return
        time.sleep(given.interval * _IN_A_MINUTE * given.rounds / 3)
        elsewhere = self._hub.with_name("away.git")
        self._hub.rename(elsewhere)
        time.sleep(given.away)
        elsewhere.rename(self._hub)

    def _arrived(self) -> dict[str, tuple[str, float]]:
        """Returns the session and the time of each commit that a push brought as a tip."""
        log = self._hub / "arrived"
        found = {}
        for line in log.read_text().splitlines() if log.exists() else ():
            at, commit, ref = line.split()
            found.setdefault(commit, (ref.split("/")[3], float(at)))
        return found

    def _delays(self) -> tuple[list[float], list[Made]]:
        """Returns the delay of each checkpoint that arrived, and those that did not."""
        arrived = self._arrived()
        delays, missing = [], []
        later: dict[str, float] = {}
        for made in reversed(self._made):
            if made.commit in arrived:
                later[made.session] = arrived[made.commit][1]
            if made.session in later:
                delays.append(later[made.session] - made.at)
            else:
                missing.append(made)
        return delays, missing

    def _missing(self) -> list[Made]:
        return self._delays()[1]

    def _tell(self, missing: list[Made]) -> None:
        delays, _ = self._delays()
        taken = [int(line) / 1e9 for line in (self._hub / "taken").read_text().split()]
        gaps = [after - before for before, after in itertools.pairwise(taken)] or [0.0]
        count, interval = len(self._made), self._given.interval
        late = statistics.quantiles(delays, n=20)[-1] if len(delays) > 1 else 0.0
        print(
            f"checkpoints: {count}; arrived: {count - len(missing)};"
            f" pushes: {len(taken)}, {statistics.median(gaps):.1f} s after each other"
            f" in the median, {max(gaps):.1f} s at most"
        )
        print(f"kills: {self._kills}; load: {os.getloadavg()[0]:.1f}")
        print(
            f"delay: median {statistics.median(delays):.1f} s, 95th percentile {late:.1f} s"
            f" = {late / interval:.2f} intervals of {interval:g} s"
        )
        # Of one that was killed only it counts, not what it had started.
        print(f"processor time of the pusher: {self._cpu / count * 1000:.1f} ms each")
        if missing:
            sys.exit(f"{len(missing)} checkpoints did not arrive")
        self._check_lines()

    def _check_lines(self) -> None:
        """Fails unless each branch holds the checkpoints of its agent, one after the other."""
        made: dict[str, list[str]] = {}
        for one in self._made:
            made.setdefault(one.session, []).append(one.commit)
        for session, commits in made.items():
            ref = f"refs/gitcp/s/{session}/main"
            out = run(
                ["git", "rev-list", "--reverse", f"-{len(commits)}", ref], self._hub
            )
            if out.split() != commits:
                sys.exit(f"{ref} is not the line that was saved")
        run(["git", "fsck", "--connectivity-only"], self._hub)


if __name__ == "__main__":
    main()
