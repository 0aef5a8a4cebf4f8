"""Lines of the picker: which file a line of a patch is of, and that styles are all they have."""

from __future__ import annotations

from gitcp.cli.emit import Output, spans
from gitcp.cli.picker.lines import Part, Place, columns
from gitcp.cli.picker.patches import places_of

PATCH = rb"""diff --git a/with space b/with space
index 1..2 100644
--- a/with space\t
+++ b/with space\t
@@ -1,2 +1,2 @@
--- a/no header
+++ b/no header
 same
@@ -9 +9 @@ diff --git a/x b/y
-old
+new
diff --git "a/t\\303\\244b\\n" "b/t\\303\\244b\\n"
new file mode 100644
--- /dev/null
+++ "b/t\\303\\244b\\n"
@@ -0,0 +1 @@
+x
\\ No newline at end of file
diff --git a/gone b/gone
deleted file mode 100644
Binary files a/gone and /dev/null differ
""".replace(rb"\t", b"\t").replace(b"\\\\", b"\\")


def test_each_line_of_a_patch_has_its_file_and_hunk():
    found = places_of(PATCH.split(b"\n")[:-1])
    first, second, third = b"with space", "t\u00e4b\n".encode(), b"gone"
    assert found == [
        *[Place(first)] * 4,
        *[Place(first, 0)] * 4,
        *[Place(first, 1)] * 3,
        *[Place(second)] * 4,
        *[Place(second, 0)] * 3,
        *[Place(third)] * 3,
    ]


def test_only_styles_of_our_own_are_styles():
    out = Output()
    out.color = True
    text = f"a\x1b[2J {out.style('b', fg='red')} \u202ec\n"
    found = list(spans(text))
    assert found == [("", "a\\x1b[2J "), ("\x1b[31m", "b"), ("", " \\u202ec\\n")]


def test_columns_are_cut_and_filled_by_their_width():
    parts = [Part("日本語"), Part("abc", "bold")]
    assert columns(parts, 8) == (Part("日本語"), Part("a…", "bold"))
    assert columns(parts, 5) == (Part("日本…"),)
    assert columns(parts, 11)[-1] == Part("  ")
    assert columns(parts, 0) == ()
