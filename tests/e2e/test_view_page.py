"""The page of `gitcp view` in a real browser: what it shows, and what it must not do."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitcp.view.document import File, Lane, Page, Reason, Row, Spoken, Step
from gitcp.view.live import Live, Source
from gitcp.view.page import written
from gitcp.view.rows import Wanted
from gitcp.view.served import serve
from tests.support.browser import chromium
from tests.support.gitrepo import commit_all, make_repo
from tests.support.inprocess import invoke
from tests.support.pages import Talker

ACT = "window.acted=1"
HOSTILE = (
    f"</script><script>{ACT}</script>",
    f"<img src=x onerror={ACT}>",
    f"<svg onload={ACT}><a href=javascript:{ACT}>x</a></svg>",
    f"[x](javascript:{ACT}) ![y](http://127.0.0.1:9/y.png)",
    f"<iframe srcdoc='<script>parent.{ACT}</script>'></iframe>",
    "<link rel=stylesheet href=http://127.0.0.1:9/s.css><base href=http://127.0.0.1:9/>",
    f"<style>@import 'http://127.0.0.1:9/i.css'</style><body onload={ACT}>",
    f"${{{ACT}}} {{{{constructor.constructor('{ACT}')()}}}} <!-- ]]> --!> \u2028",
    "%%script%% %%data%% &lt;b&gt; \\u003cscript>",
    "\u202egpj.exe \u2066hidden\u2069 \x1b]0;owned\x07 \x00\x08",
)
SELECTED = "document.querySelector('.turn.now .number')?.textContent"


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A session with turns, a fork, reasons and work by hand, as a page."""
    top = tmp_path_factory.mktemp("shop")
    repo, config = top / "repo", top / "claude"
    make_repo(repo)
    commit_all(repo)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(config))
        agent = Talker(repo, config)
        agent.took(
            "Add VAT",
            "Let me look.\n\nDone: `vat.py` has the **rates**.",
            ("Read", "nothing yet", {"file_path": "README.md"}),
            ("Bash", "Error: 1 failed", {"command": "pytest -q"}),
            files={"src/vat.py": "RATES = {'DE': 19}\n", "src/logo": "x\n"},
        )
        invoke(repo, "decide", "rates in a table", "--why", "they change by law",
               "--path", "src/vat.py")  # fmt: skip
        agent.took("Use cents", "Whole cents now.",
                   files={"src/vat.py": "RATES = {'DE': 19, 'FR': 20}\n"})  # fmt: skip
        invoke(repo, "fork", "2", "other", "--no-switch")
        (repo / "by-hand").write_text("mine\n")
        agent.took("Write a test", "There is one.", files={"test.py": "assert 1\n"})
        page = top / "page.html"
        done = invoke(repo, "view", "-o", page)
        assert done.returncode == 0, done.stderr
    return page


def test_it_opens_at_the_newest_turn_and_does_nothing_else(browser, shop):
    with browser.opened(shop) as seen:
        assert seen.page.inner_text(".turn.now .prompt") == "Write a test"
        assert "test.py" in seen.page.inner_text("#files")
        assert "rates in a table" in seen.page.inner_text("#reasons")
        assert (
            seen.page.locator("#axis .bar").count()
            == seen.page.locator(".turn").count()
        )
        assert seen.all_doings() == []


def test_the_columns_follow_a_click_on_the_axis_and_the_keys(browser, shop):
    with browser.opened(shop) as seen:
        newest = seen.now
        box = seen.page.locator("#axis .bar").first.bounding_box()
        seen.page.mouse.click(box["x"] + 2, box["y"] + 2)
        assert seen.now != newest
        assert seen.page.inner_text("#files .number") == seen.now
        oldest = seen.now
        seen.press("j")
        assert seen.now != oldest
        seen.press("k", "k")
        assert seen.now == oldest
        seen.press("G")
        assert seen.now == newest
        seen.press("g", "J")
        assert seen.page.locator("#files .file").count() > 0
        seen.page.locator("#talk .turn").last.click(position={"x": 5, "y": 5})
        assert seen.page.inner_text("#files .number") == seen.now
        assert seen.all_doings() == []


def test_what_a_restore_brings_back_is_listed_once(browser, repo, tmp_path):
    invoke(repo, "save")
    invoke(repo, "decide", "rates in a table")
    invoke(repo, "save", "--allow-empty")
    for number in ("1", "2", "1", "2"):
        assert invoke(repo, "restore", number, "-y").returncode == 0
    (repo / "new").touch()
    invoke(repo, "save")
    page = tmp_path / "page.html"
    assert invoke(repo, "view", "-o", page).returncode == 0
    with browser.opened(page) as seen:
        assert seen.page.locator("#reasons .entry").count() == 1
        assert seen.page.inner_text("#reasons .entry .number") == "#2"


def test_each_turn_has_a_link(browser, shop):
    with browser.opened(shop) as seen:
        seen.press("k")
        number = seen.now
        assert seen.page.url.endswith(f"#{number.removeprefix('#')}")
        with browser.opened(shop, seen.page.url.partition(".html")[2]) as again:
            assert again.now == number
            again.page.evaluate("location.hash = '#2'")
            again.wait(f"{SELECTED} === '#2'")


def test_search_finds_talk_files_and_reasons(browser, shop):
    with browser.opened(shop) as seen:
        seen.press("g")
        for words, where in (
            ("pytest -q", "talk"),
            ("'FR': 20", "files"),
            ("change by law", "reasons"),
        ):
            seen.press("/")
            seen.page.keyboard.type(words)
            hit = seen.page.locator("#hits .hit", has_text=words).first
            hit.wait_for()
            assert seen.page.inner_text("#found") == "1 turn"
            assert words in hit.inner_text()
            assert where in hit.inner_text()
            seen.press("Enter")
            number = hit.locator(".number").text_content()
            assert seen.now == number
            seen.press("Escape")
        seen.press("Escape")
        assert seen.page.input_value("#query") == ""
        assert seen.all_doings() == []


def test_how_much_of_the_talk_is_shown_can_be_chosen(browser, shop):
    with browser.opened(shop, "#2") as seen:
        turn = seen.page.locator(".turn.now")
        shown = [turn.locator(kind).first.is_visible
                 for kind in (".prompt", ".tool", ".answer")]  # fmt: skip
        assert "pytest -q" in turn.inner_text()
        assert "✕" in turn.inner_text()
        for mode, wanted in (
            ("Normal", [True, True, True]),
            ("Focused", [True, False, True]),
            ("Prompts", [True, False, False]),
        ):
            seen.page.click(f"#mode >> text={mode}")
            assert [is_visible() for is_visible in shown] == wanted
        seen.press("m")
        turn.locator(".tool", has_text="Bash").locator("summary").click()
        # What a tool printed is laid out once it is opened.
        turn.get_by_text("Error: 1 failed").wait_for()


def test_changes_are_shown_unified_or_side_by_side(browser, shop):
    with browser.opened(shop) as seen:
        seen.page.locator(".turn", has_text="Use cents").locator("time").click()
        assert seen.page.locator(".patch.unified .l.add").count() == 1
        seen.press("d")
        assert seen.page.locator(".patch.split .l.pair").count() >= 1
        assert seen.page.inner_text(".patch .code.add mark") == ", 'FR': 20"


def test_a_reason_leads_to_its_turn_and_marks_its_files(browser, shop):
    with browser.opened(shop) as seen:
        seen.page.click("#reasons .paths")
        assert seen.page.locator(".leaf.marked").inner_text().split()[1] == "vat.py"
        assert "Use cents" in seen.page.inner_text(".turn.now")


def test_a_command_can_be_copied_and_nothing_is_done(browser, shop):
    with browser.opened(shop, "#2") as seen:
        texts = seen.page.locator(".command").all_inner_texts()
        assert texts == ["gitcp show 2", "gitcp restore 2"]
        seen.page.locator(".command").first.click()
        assert seen.all_doings() == []


def test_light_and_dark(browser, shop):
    def back(seen):
        return seen.page.evaluate("getComputedStyle(document.body).backgroundColor")

    with browser.opened(shop, scheme="light") as light:
        bright = back(light)
        with browser.opened(shop, scheme="dark") as dark:
            assert back(dark) != bright
            dark.press("t")
            assert back(dark) == bright
        light.page.click("#theme")
        assert back(light) != bright
        assert light.all_doings() == []


def test_a_narrow_screen_has_one_column_and_no_part_beside_it(browser, shop):
    with browser.opened(shop, width=400, height=800) as seen:
        for tab in ("talk", "files", "reasons"):
            seen.page.click(f"#tabs >> [data-value={tab}]")
            visible = [name for name in ("talk", "files", "reasons")
                       if seen.page.is_visible(f"#{name}")]  # fmt: skip
            assert visible == [tab]
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= 400
        assert seen.all_doings() == []


def test_on_paper_is_every_turn(browser, shop):
    with browser.opened(shop) as seen:
        turns = seen.page.locator(".turn").count()
        seen.page.emulate_media(media="print")
        seen.wait(f"document.querySelectorAll('#paper article').length === {turns}")
        assert seen.page.is_visible("#paper")
        assert not seen.page.is_visible("#columns")


def hostile_page() -> Page:
    """A page with hostile text wherever text can be."""
    rows = [
        Row(
            id=f"{at:012x}", lane=at % 2, at="2026-11-01T10:00:00Z", kind="turn",
            trigger="turn-end", n=at + 1, up=at - 1 if at else None, prompt=text,
            note=text, label=text, agent=text, foreign=text, notes=[text],
            talk=[Spoken(text, steps=[
                Step(text), Step(f"```\n{text}\n```\n- {text}\n# {text}\n`{text}`"),
                Step(tool=text, arg=f"{text}\n{text}", out=text, size=len(text), failed=True),
            ])],
            files=[File(f"dir/{text}", "M", old=text, add=1, sub=1, why="",
                        patch=f"@@ -1,2 +1,2 @@ {text}\n {text}\n-{text}\n+{text}!")],
            reasons=[Reason(text, text, text, "", [text])],
        )
        for at, text in enumerate(HOSTILE)
    ]  # fmt: skip
    lanes = [Lane(text, text) for text in HOSTILE[:2]]
    return Page(
        schema="gitcp.page/1", project=HOSTILE[0], session=HOSTILE[1], made="",
        version="0", lanes=lanes, rows=rows, talk=True, files=True, reasons=True,
        notes=list(HOSTILE),
    )  # fmt: skip


def test_hostile_text_stays_text_everywhere(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(written(hostile_page()))
    with browser.opened(path) as seen:
        seen.press("g")
        for at, text in enumerate(HOSTILE):
            seen.press("1", "d", "d")
            for summary in seen.page.locator(".turn.now summary").all():
                summary.click()
            shown = seen.page.locator(".turn.now .prompt").text_content()
            if text.isprintable():
                assert shown == text, at
            else:
                assert "U+" in shown
                assert not {"\u202e", "\u2066", "\x1b"} & set(shown)
            seen.press("j")
        seen.press("/")
        seen.page.keyboard.type("onload=")
        seen.page.wait_for_selector("#hits .hit")
        seen.press("Enter", "Enter", "?", "Escape")
        seen.page.emulate_media(media="print")
        seen.wait("document.querySelectorAll('#paper article').length")
        made = seen.page.evaluate(
            "[...document.querySelectorAll("
            "'script, style, link, base, img, iframe, a[href^=java]')]"
            ".map((one) => one.localName)"
        )
        assert made == ["style", "script", "script"]
        assert seen.page.evaluate("window.acted") is None
        assert seen.all_doings() == []


def test_hostile_text_comes_through_a_transcript_and_files(
    browser, tmp_path, repo, monkeypatch
):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    agent = Talker(repo, tmp_path / "claude")
    for at, text in enumerate(HOSTILE):
        invoke(repo, "decide", text.replace("\x00", ""))
        agent.took(text, text, (text, text, {"command": text}),
                   files={f"<img src=x onerror={ACT}>{at}\n": f"{text}\n"})  # fmt: skip
    path = tmp_path / "page.html"
    done = invoke(repo, "view", "-o", path)
    assert done.returncode == 0, done.stderr
    with browser.opened(path) as seen:
        for _ in HOSTILE:
            seen.press("k")
        assert "\\n" in seen.page.inner_text(".leaf .name")
        assert seen.page.evaluate("window.acted") is None
        assert seen.all_doings() == []


def test_a_line_of_a_megabyte_and_five_thousand_turns(browser, tmp_path):
    words = "many words " * 20
    rows = [
        Row(
            id=f"{at:012x}", lane=0, at=f"2026-11-01T{at // 3600:02}:{at // 60 % 60:02}:00Z",
            kind="turn", trigger="turn-end", n=at + 1, up=at - 1 if at else None,
            prompt=f"turn {at}", changed=(0, 1, 0),
            talk=[Spoken(f"turn {at}", steps=[Step(words), Step(tool="Bash", out=words)])],
            files=[File("a.txt", "M", add=1, sub=0, patch=f"@@ -0,0 +1 @@\n+{at}")],
        )
        for at in range(5000)
    ]  # fmt: skip
    line = "x" * 1_000_000
    rows[2500].talk = [
        Spoken(line, steps=[Step(line), Step(tool="Bash", arg=line, out=line)])
    ]
    rows[2500].files = [
        File("a.txt", "M", add=1, sub=0, patch=f"@@ -0,0 +1 @@\n+{line}")
    ]
    page = Page(
        schema="gitcp.page/1", project="p", session="s", made="", version="0",
        lanes=[Lane("s", "main")], rows=rows, talk=True, files=True, reasons=True,
    )  # fmt: skip
    path = tmp_path / "page.html"
    path.write_bytes(written(page))
    with browser.opened(path, "#2501") as seen:
        assert seen.now == "#2501"
        assert len(seen.page.locator(".turn.now").text_content()) < 100_000
        # Of its length it is closed.
        seen.page.locator("#files summary").click()
        for place in (".turn.now .more", "#files .more"):
            seen.page.locator(place).first.click()
        seen.press("G", "j", "g", "j")
        assert seen.now == "#2"
        # Only what is near was built.
        assert seen.page.locator(".turn[data-full]").count() < 500
        # A browser's own search finds each prompt.
        seen.wait("document.querySelectorAll('.turn .prompt').length >= 5000")
        assert seen.all_doings() == []


@pytest.fixture
def agent(tmp_path, repo, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    agent = Talker(repo, tmp_path / "claude")
    agent.took("first", "fine")
    return agent


@contextmanager
def shown_live(browser, source):
    with Live(source) as live:
        thread = threading.Thread(
            target=live.serve_forever, kwargs={"poll_interval": 0.02}
        )
        thread.start()
        try:
            with browser.opened(live.url.rstrip("/") + "/") as seen:
                yield seen
        finally:
            live.shutdown()
            thread.join()


SECOND = "document.querySelector('.turn.now .prompt')?.textContent === 'second'"


def test_a_served_page_follows_the_session(browser, repo, agent):
    source = serve(str(repo), None, Wanted(), bare=False).source
    with shown_live(browser, source) as seen:
        assert seen.page.inner_text(".turn.now .prompt") == "first"
        seen.wait("document.body.dataset.live === 'on'")
        agent.took("second", "fine", files={"new": "1\n"})
        seen.wait(SECOND)
        assert seen.page.evaluate("window.violations") == []


def test_a_served_page_shows_what_came_while_it_was_made(browser, repo, agent):
    source = serve(str(repo), None, Wanted(), bare=False).source
    later = iter(["second"])

    def page():
        made = source.page()
        for prompt in later:
            agent.took(prompt, "fine")
        return made

    with shown_live(browser, Source(source.version, page)) as seen:
        seen.wait(SECOND)


def test_the_page_is_in_the_package():
    import gitcp.view

    assets = Path(gitcp.view.__file__).parent / "assets"
    assert {"page.html", "page.css", "main.js"} <= {
        path.name for path in assets.iterdir()
    }
    for path in assets.glob("*.js"):
        text = path.read_text("utf-8")
        assert "</" not in text, path
        assert "innerHTML" not in text, path
