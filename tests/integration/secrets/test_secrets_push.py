"""What is pushed is scanned first."""

import json
import os

import pytest

from tests.support.damage import empty, explode
from tests.support.gitrepo import git as run_git
from tests.support.gitrepo import git_line, make_repo, write_files
from tests.support.inprocess import fails, invoke, ok
from tests.support.sample_secrets import sample_secrets

CANARY = "k3J9dLq0" + "Xz7Yv3Wn5Bt1"


@pytest.fixture
def shared(tmp_path):
    """A project whose HEAD is on its remote."""
    repo = make_repo(tmp_path / "p", {"a.txt": b"a\n", ".gitignore": b".env*\n"})
    run_git(tmp_path, "init", "--quiet", "--bare", "r.git")
    run_git(repo, "remote", "add", "origin", str(tmp_path / "r.git"))
    run_git(repo, "push", "--quiet", "origin", "main")
    return repo


def refused(repo, *args):
    """The secrets a push is refused for; nothing of it arrives."""
    before = there(repo)
    done = invoke(repo, "push", "--json", *args)
    assert done.returncode == 24, done
    assert there(repo) == before
    return json.loads(done.stderr.splitlines()[-1])["error"]["secrets"]


def there(repo):
    return git_line(repo.parent / "r.git", "for-each-ref", "refs/gitcp")


def tool_said(text):
    inner = json.dumps({"stdout": f"$ env\n{text}\n"})
    return (
        json.dumps({"role": "user", "content": [{"content": inner}]}).encode() + b"\n"
    )


def test_a_value_of_an_env_file_that_a_tool_printed_blocks_the_push(shared):
    write_files(shared, {".env": f"API_TOKEN={CANARY}\n".encode()})
    clean = b'{"role": "user", "content": "hello"}\n'
    talk = clean + tool_said(f"the token is {CANARY}.")
    ok(shared, "save", "--messages", "-", input=talk)
    (secret,) = refused(shared)
    (place,) = secret["places"]
    assert (place["kind"], place["number"]) == ("conversation", 2)
    assert place["session"] == "main"
    assert there(shared) == ""


def test_a_value_of_the_environment_that_a_tool_printed_blocks_the_push(shared):
    ok(shared, "save", "--messages", "-", input=tool_said(f"it is {CANARY}"))
    done = invoke(shared, "push", env={"SERVICE_API_KEY": CANARY})
    assert done.returncode == 24
    assert CANARY.encode() not in done.stdout + done.stderr


@pytest.mark.parametrize("how", ["file", "conversation", "decision", "note", "path"])
def test_secrets_block_wherever_they_lie(shared, how):
    values = []
    for name, (value, line) in sample_secrets().items():
        values.append(value)
        session = f"s-{name}"
        if how == "file":
            write_files(shared, {"conf/settings.txt": line.encode() + b"\n"})
            ok(shared, "save", "-s", session)
        elif how == "conversation":
            ok(shared, "save", "-s", session, "--append", "-", input=tool_said(line))
        elif how == "decision":
            ok(shared, "save", "-s", session, "--decision", f"use {line}")
        elif how == "note":
            ok(shared, "save", "-s", session, "-m", line, "--allow-empty")
        else:
            path = line.replace("/", "_").replace("\n", " ")[:200] + ".txt"
            write_files(shared, {f"x/{path}": b"x\n"})
            ok(shared, "save", "-s", session)
            os.remove(shared / "x" / path)
    done = invoke(shared, "push", "--json")
    assert done.returncode == 24
    assert there(shared) == ""
    found = json.loads(done.stderr.splitlines()[-1])["error"]["secrets"]
    sessions = {place["session"] for one in found for place in one["places"]}
    # No file name and no first line of a note holds a key of many lines.
    assert len(sessions) >= 0.7 * 31
    said = done.stdout + done.stderr + invoke(shared, "push").stderr
    assert not [value for value in values if value.encode() in said]


def test_a_refusal_names_places_and_never_values(shared):
    value, line = sample_secrets()["github"]
    write_files(shared, {"deep/conf.ini": f"one\ntwo\n{line}\n".encode()})
    ok(shared, "save", "-m", "with a key")
    done = invoke(shared, "push")
    assert done.returncode == 24
    said = done.stderr.decode()
    assert "deep/conf.ini:3" in said
    assert "main/main:1" in said
    assert value not in said


def test_what_is_allowed_passes_once_or_for_good(shared):
    write_files(shared, {"conf.ini": sample_secrets()["github"][1].encode()})
    ok(shared, "save")
    (secret,) = refused(shared)
    name = secret["fingerprint"]
    refused(shared, "--allow", "0" * 12)
    sent = ok(shared, "push", "--allow", name)
    assert [one["fingerprint"] for one in sent["secrets"]] == [name]
    write_files(
        shared, {"copy.ini": b"again: " + sample_secrets()["github"][1].encode()}
    )
    ok(shared, "save")
    assert [one["fingerprint"] for one in refused(shared)] == [name]
    assert invoke(shared, "config", "--add", "allowSecrets", name).returncode == 0
    assert ok(shared, "push")["branches"][0]["result"] == "fast-forward"


def test_a_fingerprint_that_is_none_is_refused(shared):
    ok(shared, "save")
    assert invoke(shared, "push", "--allow", "nonsense").returncode == 2


def test_the_setting_warns_or_turns_it_off(shared):
    write_files(shared, {"conf.ini": sample_secrets()["github"][1].encode()})
    ok(shared, "save")
    refused(shared)
    done = invoke(shared, "push", env={"GITCP_SECRETS": "warn"})
    assert done.returncode == 0
    assert b"conf.ini:1" in done.stderr
    write_files(shared, {"more.ini": sample_secrets(8)["github"][1].encode()})
    ok(shared, "save")
    done = invoke(shared, "push", env={"GITCP_SECRETS": "off"})
    assert (done.returncode, b"more.ini" in done.stderr) == (0, False)


def test_what_the_remote_has_is_not_looked_at_again(shared):
    write_files(shared, {"conf.ini": sample_secrets()["github"][1].encode()})
    ok(shared, "save")
    assert invoke(shared, "push", env={"GITCP_SECRETS": "off"}).returncode == 0
    write_files(shared, {"a.txt": b"changed\n"})
    ok(shared, "save")
    assert ok(shared, "push")["secrets"] == []


def test_what_was_found_clean_is_not_read_again(shared, monkeypatch):
    write_files(shared, {f"f{n}.txt": b"%d\n" % n for n in range(30)})
    ok(shared, "save")
    first = ok(shared, "scan")
    assert first["scanned"] >= 30
    assert ok(shared, "scan")["scanned"] == 0
    # Another known value makes everything unknown again.
    write_files(shared, {".env": f"API_TOKEN={CANARY}\n".encode()})
    assert ok(shared, "scan")["scanned"] == first["scanned"]


def test_what_was_clean_by_another_name_is_looked_at_as_an_env_file(shared):
    """The values are not known from the files here, as it is gone by then."""
    write_files(shared, {"settings.txt": b"SIGNING_SALT=horse-Battery7staple\n"})
    ok(shared, "save")
    (shared / "settings.txt").rename(shared / "prod.env")
    ok(shared, "save")
    (shared / "prod.env").unlink()
    ok(shared, "save")
    (secret,) = refused(shared)
    assert [place["path"] for place in secret["places"]] == ["prod.env"]
    assert ok(shared, "purge", secret["fingerprint"], "--yes")["checkpoints"]
    ok(shared, "push")


def test_a_project_the_remote_never_saw_is_scanned_whole(shared, tmp_path):
    write_files(shared, {"old.ini": sample_secrets()["github"][1].encode()})
    run_git(shared, "add", "--all")
    run_git(shared, "commit", "--quiet", "-m", "oops")
    (shared / "old.ini").unlink()
    run_git(shared, "commit", "--quiet", "-am", "gone")
    run_git(shared, "push", "--quiet", "origin", "main")
    run_git(tmp_path, "init", "--quiet", "--bare", "other.git")
    run_git(shared, "remote", "add", "other", str(tmp_path / "other.git"))
    ok(shared, "save")
    ok(shared, "push")
    (secret,) = refused(shared, "other")
    assert secret["places"][0]["path"] == "old.ini"
    assert secret["places"][0]["checkpoint"] is None


def test_scan_exits_with_24_and_names_what_it_found(shared):
    ok(shared, "scan")
    write_files(shared, {"conf.ini": sample_secrets()["npm"][1].encode()})
    ok(shared, "save")
    done = invoke(shared, "scan", "--json")
    assert done.returncode == 24
    assert json.loads(done.stdout)["secrets"][0]["rule"] == "npm-token"


@pytest.fixture
def told(shared):
    """A project with a secret in its history that its remote has already."""
    write_files(shared, {"conf.ini": sample_secrets()["github"][1].encode()})
    run_git(shared, "add", ".")
    run_git(shared, "commit", "-qm", "leak")
    run_git(shared, "rm", "-q", "conf.ini")
    run_git(shared, "commit", "-qm", "gone")
    run_git(shared, "push", "-q", "origin", "main")
    ok(shared, "save")
    ok(shared, "push")
    run_git(shared.parent, "init", "--quiet", "--bare", "public.git")
    return shared


def leaves_for(repo, public):
    """The places of what a push to another address is refused for."""
    done = invoke(repo, "push", "--json")
    assert done.returncode == 24, done
    assert git_line(public, "count-objects") == "0 objects, 0 kilobytes"
    (secret,) = json.loads(done.stderr.splitlines()[-1])["error"]["secrets"]
    return [(place["kind"], place["path"]) for place in secret["places"]]


def test_what_a_remote_had_by_another_address_is_not_what_this_one_has(told):
    """`origin/main` still says what the old address had."""
    public = told.parent / "public.git"
    run_git(told, "remote", "set-url", "origin", str(public))
    assert leaves_for(told, public) == [("file", "conf.ini")]
    run_git(told, "remote", "set-url", "origin", str(told.parent / "r.git"))
    ok(told, "save", "--allow-empty")
    ok(told, "push")


def test_another_push_to_the_branch_meanwhile_changes_nothing(told, tmp_path):
    run_git(tmp_path, "clone", "-q", "-b", "main", "r.git", "other")
    write_files(tmp_path / "other", {"b.txt": b"b\n"})
    run_git(tmp_path / "other", "add", ".")
    run_git(tmp_path / "other", "commit", "-qm", "more")
    run_git(tmp_path / "other", "push", "-q", "origin", "main")
    ok(told, "save", "-s", "new")
    ok(told, "push")


def test_it_is_the_address_pushed_to_that_counts(told):
    public = told.parent / "public.git"
    run_git(told, "remote", "set-url", "--push", "origin", str(public))
    ok(told, "save", "--allow-empty")
    assert leaves_for(told, public) == [("file", "conf.ini")]
    run_git(told, "push", "-q", "origin", "main")
    assert ok(told, "push")["branches"][0]["result"] == "created"
    ok(told, "save", "--allow-empty")
    assert ok(told, "push")["branches"][0]["result"] == "fast-forward"
    assert {one["result"] for one in ok(told, "push")["branches"]} == {"up-to-date"}
    tips = [
        git_line(one, "rev-parse", "refs/gitcp/s/main/main") for one in (told, public)
    ]
    assert tips[0] == tips[1]


def test_of_several_addresses_none_is_left_behind_unsaid(told):
    """git sends to each; what only one of them has counts for none."""
    public = told.parent / "public.git"
    for address in (told.parent / "r.git", public):
        run_git(told, "config", "--add", "remote.origin.pushurl", str(address))
    # One has the session, the other has nothing of it, and would get a secret.
    fails(told, 24, "push")
    assert not run_git(public, "for-each-ref", "refs/gitcp/")
    ok(told, "save", "-s", "new")
    done = invoke(told, "push", "origin", "new", "--json")
    assert done.returncode == 24, done
    run_git(told, "push", "-q", str(public), "main", "refs/gitcp/s/main/main")
    ok(told, "push")
    tips = [
        git_line(one, "rev-parse", "refs/gitcp/s/new/main") for one in (told, public)
    ]
    assert tips[0] == tips[1]
    assert ok(told, "push")["branches"][0]["result"] == "up-to-date"


@pytest.mark.parametrize("lost", ["blob", "commit"])
def test_a_scan_looks_through_what_is_left_beside_damage(shared, lost):
    write_files(shared, {"b.txt": b"damaged\n"})
    ok(shared, "save", "-s", "one")
    write_files(
        shared, {"c.txt": f"aws_secret_access_key={CANARY}{CANARY[::-1]}\n".encode()}
    )
    ok(shared, "save", "-s", "two")
    explode(shared)
    tip = "refs/gitcp/s/one/main"
    empty(
        shared, git_line(shared, "rev-parse", f"{tip}:b.txt" if lost == "blob" else tip)
    )
    done = invoke(shared, "scan", "--json")
    assert done.returncode == 24, done
    found = json.loads(done.stdout)
    (secret,) = found["secrets"]
    assert secret["places"][0]["path"] == "c.txt"
    # The last is what git says of a commit.
    words = ("damaged", "corrupt", "bad object")
    assert any(word in one for word in words for one in found["unreadable"])
    assert "not scanned: " in done.stderr.decode()
    # Nothing leaves that was not fully scanned.
    assert invoke(shared, "push", "origin", "one").returncode != 0
    assert there(shared) == ""
