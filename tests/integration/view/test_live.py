"""The server behind `gitcp view --serve`: whom it answers, and what."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

from gitcp.view.live import Live
from gitcp.view.rows import Wanted
from gitcp.view.served import serve
from tests.support.gitrepo import gitcp_argv, gitcp_environment
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def live(repo):
    invoke(repo, "save", "-m", "first words")
    source = serve(str(repo), None, Wanted(), bare=False).source
    with Live(source) as server:
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.02}
        )
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(live, path, method="GET", **headers):
    """The status, headers and body of an answer; a header None is not sent."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", live.server_address[1], timeout=20
    )
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"Host": live.host, **headers}.items():
            if value is not None:
                connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_it_serves_the_page_its_data_and_its_state(live, repo):
    status, headers, body = ask(live, f"/{live.token}/")
    assert status == 200
    assert body.startswith(b"<!doctype html>")
    assert "connect-src 'self'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    _, _, before = ask(live, f"/{live.token}/state")
    assert b'data-live="%s"' % before in body
    invoke(repo, "save", "-m", "second words", "--allow-empty")
    _, _, after = ask(live, f"/{live.token}/state")
    assert before != after
    _, _, data = ask(live, f"/{live.token}/data")
    notes = [row["note"] for row in json.loads(gzip.decompress(data))["rows"]]
    assert notes == ["first words", "second words"]


def test_it_listens_to_this_machine_only(live):
    assert live.server_address[0] == "127.0.0.1"
    assert len(live.token) >= 40


@pytest.mark.parametrize(
    "host",
    [None, "evil.example", "evil.example:{port}", "localhost:{port}", "127.0.0.1"],
)
def test_another_host_is_refused(live, host):
    port = live.server_address[1]
    name = host and host.format(port=port)
    assert ask(live, f"/{live.token}/", Host=name)[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://{host}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_another_site_is_refused(live, headers):
    given = {name: value.format(host=live.host) for name, value in headers.items()}
    status, _, body = ask(live, f"/{live.token}/data", **given)
    assert (status, body) == (403, b"")


def test_its_own_origin_is_not(live):
    own = {"Origin": f"http://{live.host}", "Sec_Fetch_Site": "same-origin"}
    assert ask(live, f"/{live.token}/data", **own)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/data",
        "/x/data",
        "/{token}x/",
        "/{short}/",
        "/%00/",
    ],
)
def test_without_the_token_there_is_nothing(live, path):
    shown = path.format(token=live.token, short=live.token[:-1])
    status, _, body = ask(live, shown)
    assert (status, body) == (404, b"")


@pytest.mark.parametrize("name", ["../etc/passwd", "state/x", "config", "data/"])
def test_there_is_nothing_else(live, name):
    assert ask(live, f"/{live.token}/{name}")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_can_only_be_read(live, method):
    assert ask(live, f"/{live.token}/", method)[0] == 501


def test_head_has_no_body(live):
    status, headers, body = ask(live, f"/{live.token}/", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 1000


def test_a_session_that_is_gone_is_no_reason_to_end(live, repo):
    ask(live, f"/{live.token}/")
    refs = repo / ".git" / "refs" / "gitcp" / "s"
    subprocess.run(["rm", "-rf", refs], check=True)
    assert ask(live, f"/{live.token}/state")[0] == 200
    assert ask(live, f"/{live.token}/data")[0] in {200, 503}
    assert ask(live, f"/{live.token}/state")[0] == 200


def test_options_about_a_file_are_refused(repo):
    invoke(repo, "save", "-m", "x")
    for words in (["-o", "x.html"], ["--redact"], ["--allow", "0" * 12]):
        assert "--serve" in fails(repo, 2, "view", "--serve", *words)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it(repo, how):
    ok(repo, "save", "-m", "x")
    process = subprocess.Popen(
        gitcp_argv("view", "--serve", "--json"),
        cwd=repo,
        env=gitcp_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # In the background of a shell the tests themselves ignore the first of the two.
        preexec_fn=lambda: signal.signal(how, signal.SIG_DFL),  # noqa: PLW1509
    )
    with process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        assert url.startswith("http://127.0.0.1:")
        os.kill(process.pid, how)
        try:
            _, told = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode in {130, -how}
    assert b"Traceback" not in told


@pytest.mark.parametrize("path", ["*", "x", "?", "\x1b[2J"])
def test_a_path_without_a_slash_is_not_found(live, capfd, path):
    """Each user of this machine can ask, but not print to the terminal of the server."""
    request = f"GET {path} HTTP/1.1\r\nHost: {live.host}\r\n\r\n".encode()
    with socket.create_connection(live.server_address) as connection:
        connection.sendall(request)
        assert b" 404 " in connection.makefile("rb").readline()
    assert capfd.readouterr() == ("", "")


def test_a_client_that_goes_away_is_not_told_of(live, capfd):
    for _ in range(3):
        connection = http.client.HTTPConnection(
            "127.0.0.1", live.server_address[1], timeout=20
        )
        connection.putrequest("GET", f"/{live.token}/", skip_host=True)
        connection.putheader("Host", live.host)
        connection.endheaders()
        connection.close()
    time.sleep(0.2)
    assert ask(live, f"/{live.token}/state")[0] == 200
    assert capfd.readouterr().err == ""
