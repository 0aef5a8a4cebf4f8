"""What users of git type, and which command of gitcp they may mean."""

_FILE = "`gitcp restore SEL PATH` brings a file back, `gitcp restore SEL` everything"
_WHO = (
    "`gitcp why FILE:LINE` shows which turn wrote a line, and why; `gitcp log -- PATH` lists"
    " the turns that changed a file"
)
_NO_NEED = "there is no need for it: gitcp saves what is there, in any git repository"

# By the command of git.
POINTERS = {
    "add": _NO_NEED,
    "annotate": _WHO,
    "blame": _WHO,
    "branch": "`gitcp branches` lists branches, `gitcp fork SEL NAME` makes one",
    "checkout": _FILE,
    "cherry-pick": _FILE,
    "clone": "`git clone`, and then `gitcp pull`",
    "commit": "`gitcp save -m NOTE`",
    "fetch": "`gitcp pull`; `gitcp remote-sessions` only looks",
    "history": "`gitcp log`",
    "init": _NO_NEED,
    "list": "`gitcp log` lists checkpoints, `gitcp sessions` sessions",
    "ls": "`gitcp log` lists checkpoints, `gitcp files SEL` the files of one",
    "merge": _FILE,
    "redo": "`gitcp undo` again brings back what the first one took away",
    "reflog": "`gitcp log --full` lists every checkpoint",
    "reset": f"{_FILE}; `gitcp undo` takes that back",
    "revert": f"{_FILE}; `gitcp undo` takes that back",
    "snapshot": "`gitcp save`",
    "stash": "`gitcp save` keeps what is there, `gitcp restore SEL` brings it back",
    "tag": "`gitcp label SEL NAME`",
    "worktree": "`gitcp fork SEL NAME --worktree DIR`",
}
