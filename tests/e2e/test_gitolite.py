"""docs/how-to/gitolite.md, run as it stands: a real gitolite behind an sshd on loopback."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.support.gitolite import Gitolite, gitolite
from tests.support.page_scripts import Person, play

People = dict[str, Person]


@pytest.fixture
def host(tmp_path) -> Iterator[Gitolite]:
    with gitolite(tmp_path, "admin", "ann", "bob", "eve") as host:
        yield host


@pytest.fixture
def people(host) -> People:
    people = {name: host.client(name) for name in ("admin", "ann", "bob", "eve")}
    for key in host.home.glob("*.pub"):
        shutil.copy(key, people["admin"].directory)
    return {**people, "server": host.server()}


# gitolite 3.6 knows ids of SHA-1 only; the page says so.
@pytest.mark.sha1
def test_the_page_gives_each_user_what_it_says(people):
    told = play("gitolite.md", people)
    ann, bob, eve = (people[name] for name in ("ann", "bob", "eve"))
    assert "created      Add VAT/main" in told["ann"]
    assert "created      salaries/main" in told["ann"]
    assert "new          Add VAT/main" in told["eve"]
    assert "net prices" in told["eve"].split("created", 1)[1]

    # Eve reads, and may push anything but sessions.
    eve.run("echo 2 > a.py && git commit -q -a -m second && git push -q")
    eve.run("gitcp save -q -s mine -m 'Mine'")
    said = eve.run("gitcp push", status=3)
    assert "DENIED by refs/gitcp/" in said
    assert "hook declined to update" not in said
    assert "1 of 2 branches were not sent" in said

    # Of the second repository she learns nothing.
    eve.run("git remote add other gitolite3@git.example.org:project-sessions")
    said = eve.run("gitcp pull other", status=21)
    assert "other cannot be reached" in said
    assert "R any project-sessions eve DENIED by fallthru" in said

    # Bob continues what Ann began, and takes nothing away.
    bob.run(
        "git clone -q gitolite3@git.example.org:project bob && cd bob && gitcp pull"
    )
    bob.run("gitcp switch 'Add VAT' --restore --yes && echo 3 > a.py")
    bob.run("gitcp save -q -m 'Bob goes on'")
    assert "fast-forward Add VAT/main" in bob.run("gitcp push")
    ref = "refs/gitcp/s/%41dd%20%56%41%54/main"
    said = bob.run(f"git push origin :{ref}", status=1)
    assert "project bob DENIED by fallthru" in said

    # Ann's rights are not enough for that either; and her fork has a `~` in its name.
    said = ann.run(f"git push origin :{ref}", status=1)
    assert "is not deleted: sessions only grow" in said
    ann.run("gitcp switch 'Add VAT' && echo 4 > a.py && gitcp save -q -m 'Ann goes on'")
    ann.run("git config gitcp.remote origin")
    assert "has diverged" in ann.run("gitcp push origin 'Add VAT'", status=12)
    assert "created      Add VAT/main~ann" in ann.run(
        "gitcp push --fork origin 'Add VAT'"
    )
    assert "created" in bob.run("gitcp pull")
