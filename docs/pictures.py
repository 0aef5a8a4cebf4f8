"""Makes the pictures of the page and of the picker: `python docs/pictures.py`.

They show a session of the real Claude Code, with a model that answers from a script, in a
temporary project. Needs the extras `claude`, `ui` and `test`, and chromium.
"""

# ruff: noqa: INP001  a script, not a package
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.browser import Browser, chromium  # noqa: E402
from tests.support.claude_code import ClaudeCode, running  # noqa: E402
from tests.support.gitrepo import make_repo  # noqa: E402
from tests.support.picker import Driven, drive  # noqa: E402
from tests.support.stand_in import say, use  # noqa: E402

IMAGES = ROOT / "docs" / "images"
FILES = {
    "README.md": b"# shop\n",
    "docs/terms.md": b"# Terms\n",
    "src/invoice.py": b"def total(net):\n    return net\n",
}
VAT = """RATE = 0.19


def gross(net):
    return net * (1 + RATE)
"""
CENTS = """from decimal import ROUND_HALF_UP, Decimal

RATE = Decimal("0.19")


def gross(net):
    return (net * (1 + RATE)).quantize(Decimal("0.01"), ROUND_HALF_UP)
"""
TEST = """from decimal import Decimal

from src.vat import gross


def test_a_cent_is_not_lost():
    assert gross(Decimal("0.50")) == Decimal("0.60")
"""


def story(top: Path) -> dict[str, Any]:
    """Returns what the model does when it is asked for these things."""

    def write(path: str, content: str) -> Any:
        return use("Write", file_path=str(top / path), content=content)

    def shell(command: str) -> Any:
        return use("Bash", command=command, description="does it")

    return {
        "Add VAT to the invoice total": [
            [use("Read", file_path=str(top / "src/invoice.py"))],
            [write("src/vat.py", VAT)],
            [
                use(
                    "Edit",
                    file_path=str(top / "src/invoice.py"),
                    old_string="def total(net):\n    return net",
                    new_string="from src.vat import gross\n\n\n"
                    "def total(net):\n    return gross(net)",
                )
            ],
            [
                shell(
                    "gitcp decide 'the rate stands in one place: src/vat.py'"
                    " --why 'it changes by law' --path src/vat.py"
                )
            ],
            [say("The total has VAT now. The rate is in `src/vat.py`.")],
        ],
        "It is off by a cent": [
            [shell("python3 -c 'print(round(0.5 * 1.19, 2))'")],
            [
                shell(
                    "gitcp decide 'round() on floats' --kind tried"
                    " --why 'half a cent goes to the even side' --path src/vat.py"
                )
            ],
            [write("src/vat.py", CENTS)],
            [
                shell(
                    "gitcp decide 'Decimal, rounded half up' --why 'as the tax office"
                    " does' --path src/vat.py"
                )
            ],
            [
                say(
                    "Floats were a dead end: half a cent went to the even side. Amounts"
                    " are `Decimal` now, rounded half up."
                )
            ],
        ],
        "Write a test": [
            [write("tests/test_vat.py", TEST)],
            [shell("gitcp decide 'test negative amounts' --kind next")],
            [say("`tests/test_vat.py` has the case that was off.")],
        ],
        "Clean up": [
            [shell("rm -rf src docs && echo '# Shop' > README.md")],
            [say("I removed what looked unused.")],
        ],
    }


def play(claude: ClaudeCode, top: Path) -> None:
    """Plays the session: four turns, of which the last one is taken back."""
    claude.gitcp(top, "install", "claude-code")
    prompts = list(story(top))
    session = claude.ask(prompts[0], cwd=top)
    for prompt in prompts[1:]:
        claude.ask(prompt, cwd=top, resume=session)
    rows = claude.gitcp(top, "log")["checkpoints"]
    before = next(
        row for row in rows if row.get("turn", {}).get("prompt") == prompts[2]
    )
    claude.gitcp(top, "restore", f"#{before['number']}", "--yes")
    claude.gitcp(top, "label", f"#{before['number']}", "tested")


def page(claude: ClaudeCode, top: Path, browser: Browser) -> None:
    """Takes the picture of the page, at the turn that has most to show."""
    written = top.parent / "page.html"
    rows = claude.gitcp(top, "log")["checkpoints"]
    shown = next(
        row
        for row in rows
        if row.get("turn", {}).get("prompt") == "It is off by a cent"
    )
    claude.gitcp(top, "view", f"#{shown['number']}", "-o", str(written))
    with browser.opened(written, width=1280, height=720) as opened:
        opened.page.screenshot(path=IMAGES / "page.png")


def draw(top: Path, drawn: Path) -> None:
    """Draws the picker at the same turn, as Textual does."""
    drawings: list[str] = []

    async def steps(driven: Driven) -> None:
        while "off by a cent" not in driven.selected:
            await driven.press("j")
        await driven.settled()
        drawings.append(driven.app.export_screenshot(title="gitcp ui"))

    drive(top, steps, (110, 30))
    drawn.write_text(drawings[0])


def picker(drawn: Path, browser: Browser) -> None:
    """Takes the picture of the drawing, without the fonts that it names on the network."""
    svg = drawn.read_text().replace("https://", "file:///dev/null/")
    shown = drawn.with_suffix(".html")
    shown.write_text(
        f'<!doctype html><body style="margin:0" data-ready="yes">{svg}</body>'
    )
    with browser.opened(shown, width=1280, height=720) as opened:
        opened.page.locator("svg").screenshot(path=IMAGES / "picker.png")


def main() -> None:
    """Makes both pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        top = make_repo(place / "shop", FILES)
        subprocess.run(["git", "add", "-A"], cwd=top, check=True)
        drawn = place / "picker.svg"
        with running(place / "home", story(top)) as claude:
            play(claude, top)
            os.environ.update(HOME=str(claude.home), GIT_CONFIG_NOSYSTEM="1")
            draw(top, drawn)
            with chromium() as browser:
                page(claude, top, browser)
                picker(drawn, browser)


if __name__ == "__main__":
    main()
