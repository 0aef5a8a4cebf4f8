"""docs/how-to/team-server.md, run as it stands: a server over ssh, its backup and its restore."""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gitcp.git.versions import git_version
from tests.support.needs import knows_reftable
from tests.support.page_scripts import SOURCE, Person, scripts
from tests.support.servers import ssh_server

_PAGE = "team-server.md"
_ADVERTISES_BUNDLES = (2, 40)
_PROJECT = "git --git-dir=project.git"


@contextlib.contextmanager
def web(folder: Path) -> Iterator[str]:
    """A proxy that answers for every host with the files of a folder; yields its URL."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            return super().translate_path(path.removeprefix("http://git.example.org"))

        def log_message(self, *args: object) -> None:
            pass

    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Team:
    """The people of the page, and its blocks in their order."""

    def __init__(self, base: Path, url: str, ssh: str) -> None:
        self.server = Person("server", base)
        (self.server.directory / "gitcp").symlink_to(SOURCE)
        settings = {
            "core.sshCommand": ssh,
            f"url.{url}{self.server.directory}/.insteadOf": "git@git.example.org:",
        }
        self.ann = Person("ann", base, settings)
        self.bob = Person("bob", base, settings)
        self._blocks = scripts(_PAGE)

    def until(self, part: str) -> str:
        """Runs the blocks up to the first one that has `part`, and returns its output."""
        while True:
            role, script = self._blocks.pop(0)
            if not knows_reftable():
                # As the page says.
                script = script.replace(" --ref-format=reftable", "")
            said = getattr(self, role).run(script)
            if part in script:
                return said

    @property
    def is_done(self) -> bool:
        return not self._blocks


@pytest.fixture
def team(tmp_path) -> Iterator[Team]:
    with ssh_server(tmp_path) as (url, ssh):
        yield Team(tmp_path, url, ssh)


def test_a_team_shares_sessions_loses_its_server_and_goes_on(team):
    server, ann, bob = team.server, team.ann, team.bob
    assert "created      vat/main" in team.until("gitcp push")
    team.until("receive.maxInputSize")
    team.until("commit-graph write")
    assert server.run("ls project.git/objects/info/commit-graph")
    assert "refs/gitcp/s/vat/main" in team.until("for-each-ref --sort")
    team.until("--prune=2.weeks.ago")
    assert server.run(f"{_PROJECT} for-each-ref refs/gitcp") == ""
    assert "the remote had removed it" in team.until("gitcp push")

    team.until("bundle.project.uri")
    listed = server.run("git bundle list-heads www/project.bundle")
    assert "refs/heads/main" in listed
    assert "refs/gitcp" not in listed
    if git_version(Path("/"))[0] >= _ADVERTISES_BUNDLES:
        with web(server.directory / "www") as proxy:
            bob.run(
                f"GIT_TRACE2_EVENT=$PWD/trace git -c http.proxy={proxy}"
                " -c transfer.bundleURI=true clone git@git.example.org:project.git cold"
            )
        bob.run("git -C cold for-each-ref refs/bundles | grep -q main")

    # Bob pushes while the backup is made.
    bob.run("git clone -q git@git.example.org:project.git bob && cd bob && gitcp pull")
    pushes = (
        "for n in 1 2 3; do gitcp save -q -s live -m $n --allow-empty; gitcp push; done"
    )
    with ThreadPoolExecutor(1) as pool:
        pushed = pool.submit(bob.run, pushes)
        team.until("clone -q --mirror")
        team.until("backup/project.git fetch")
        assert pushed.result().count("live/main") == 3

    # What comes after the backup is lost with the server, and is in the clones.
    ann.run("echo 2 > a.py && gitcp save -q -m 'After the backup' && gitcp push")
    ann.run("git commit -q -a -m second && git push -q")
    bob.run("gitcp pull")
    team.until("mv project.git lost.git")
    assert server.run(f"{_PROJECT} config receive.maxInputSize") == "500m\n"
    assert "vat/main" in bob.run("gitcp pull origin vat")
    said = team.until("gitcp push")
    assert "the remote had rewound it" in said
    listed = team.until("{shard:x}")
    assert "created      vat/main" in listed
    assert "same         vat/main" in listed
    assert team.is_done
    ann.run("git config --unset gitcp.remote")
    assert "refs/gitcp/s/vat/main" in server.run(
        "git --git-dir=sessions-c.git for-each-ref"
    )
    bob.run("gitcp switch vat --restore --yes && gitcp save -q -m on --allow-empty")
    assert "fast-forward vat/main" in bob.run("gitcp push")
    ann.run("gitcp pull && gitcp verify")
    # The hook is there again.
    ref = "refs/gitcp/s/vat/main"
    assert "sessions only grow" in ann.run(f"git push origin :{ref}", status=1)
    lost, now = (
        server.run(f"git --git-dir={name}.git rev-parse --is-bare-repository")
        for name in ("lost", "project")
    )
    assert lost == now == "true\n"


def test_a_push_above_the_limit_names_it(team):
    team.until("gitcp push")
    server, ann = team.server, team.ann
    server.run(f"{_PROJECT} config receive.maxInputSize 100k")
    ann.run("head -c 300000 /dev/urandom > big && gitcp save -q -m big")
    assert "exceeds maximum allowed size" in ann.run("gitcp push", status=12)
