"""A real browser that opens pages, and everything that it was made to do by them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# Told by the page itself: what its policy refused.
_WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation',
  (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


# Milliseconds: it waits for what comes, and this long only for what does not.
_PATIENCE = 20_000


class Opened:
    """A page in the browser; `doings` is all that no page of ours may do."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        self.doings: list[str] = []
        page.on("request", self._asked)
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self.doings.append(f"error {error}"))
        page.on("popup", lambda _: self.doings.append("popup"))
        page.on("download", lambda _: self.doings.append("download"))
        page.on("console", self._told)
        page.add_init_script(_WATCH)
        page.goto(url)
        page.wait_for_selector("body[data-ready]")
        assert page.evaluate("document.body.dataset.ready") == "yes"

    def _asked(self, request: Any) -> None:
        address = request.url.split("#")[0]
        ours = address == self.url.split("#")[0]
        if not ours and not address.startswith(self.url.split("#")[0] + "/"):
            self.doings.append(f"request {request.url}")

    def _dialog(self, dialog: Any) -> None:
        self.doings.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _told(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.doings.append(f"console {message.text}")

    def all_doings(self) -> list[str]:
        """What happened so far, with what the policy refused."""
        return [*self.doings, *self.page.evaluate("window.violations")]

    @property
    def now(self) -> str:
        """The number of the turn that is selected."""
        return str(self.page.inner_text(".turn.now .number"))

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def wait(self, condition: str) -> None:
        """Waits until something is true in the page."""
        # Playwright's own way to wait needs what the policy of the page refuses.
        until = time.monotonic() + _PATIENCE / 1000
        while not self.page.evaluate(condition):
            assert time.monotonic() < until, condition
            self.page.wait_for_timeout(20)


class Browser:
    """Chromium without a window."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    @contextmanager
    def opened(
        self,
        place: Path | str,
        fragment: str = "",
        *,
        width: int = 1440,
        height: int = 900,
        scheme: str = "light",
    ) -> Iterator[Opened]:
        """Opens a page in a context of its own."""
        url = place if isinstance(place, str) else place.as_uri()
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        try:
            context.set_default_timeout(_PATIENCE)
            yield Opened(context.new_page(), f"{url}{fragment}")
        finally:
            context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Starts Debian's chromium; skips where there is none."""
    api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium")
    # Its sandbox refuses to run as root.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=options)
        try:
            yield Browser(browser)
        finally:
            browser.close()
