"""Which commands of an agent need no checkpoint before them."""

from __future__ import annotations

import pytest

from gitcp.clients.read_only import only_reads


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cat a | grep b | sort -r | head -3",
        "cd src && ls; pwd",
        "ls missing 2>/dev/null || echo none",
        "grep -rn 'a > b; rm' . 2>&1 | head",
        "git status && git log --oneline -3",
        "find . -name '*.py' -newer x",
        "rg --files",
        "echo one\necho two",
        "date +%s",
        "gitcp decide 'round half up' --why 'a cent was off'",
        "gitcp messages 3",
    ],
)
def test_what_only_reads_needs_none(command):
    assert only_reads(command)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf src",
        "gitcp restore 3 --yes",
        "gitcp -C elsewhere decide x",
        "gitcp messages 3 -o src/vat.py",
        "gitcp messages 3 --output=src/vat.py",
        "ls; rm x",
        "ls\nrm x",
        "ls & rm x",
        "ls | tee x",
        "ls | xargs rm",
        "echo hi > file",
        "echo hi>file",
        "ls >/dev/nullx",
        "ls > /dev/null2",
        "cat < a > b",
        "echo $(rm x)",
        'echo "$(rm x)"',
        "echo `rm x`",
        "cat <(rm x)",
        "(rm x)",
        "{ rm x; }",
        "PATH=. ls",
        "./ls",
        "'r''m' x",
        "env rm x",
        "sudo ls",
        "git checkout .",
        "git -c alias.status='!rm x' status",
        "git diff --output=x",
        "find . -delete",
        "find . -exec rm {} +",
        "sort -o x x",
        "sort -ro x x",
        "sort --output=x x",
        "rg --pre ./rm x",
        "ls 'unbalanced",
        "ls \\\n; rm x",
        "make",
        "",
        "   ",
        "ls " + "x" * 5000,
    ],
)
def test_all_else_does(command):
    assert not only_reads(command)
