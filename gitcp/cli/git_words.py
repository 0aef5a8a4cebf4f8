"""Maps words that users of git type to the gitcp command that they may mean."""

_FILE = (
    "`gitcp restore SEL PATH` restores a file, `gitcp restore SEL` restores everything"
)
_WHO = (
    "`gitcp why FILE:LINE` shows which turn wrote a line, and why; `gitcp log -- PATH` lists"
    " the turns that changed a file"
)
_NO_NEED = "you do not need it: `gitcp save` works in any git repository"

# git's command -> the hint to gitcp's.
POINTERS = {
    "add": _NO_NEED,
    "annotate": _WHO,
    "blame": _WHO,
    "branch": "`gitcp branches` lists branches, `gitcp fork SEL NAME` makes one",
    "checkout": _FILE,
    "cherry-pick": _FILE,
    "clone": "`git clone`, and then `gitcp pull`",
    "commit": "`gitcp save -m NOTE`",
    "fetch": "`gitcp pull` fetches, `gitcp remote-sessions` only lists",
    "history": "`gitcp log`",
    "init": _NO_NEED,
    "list": "`gitcp log` lists checkpoints, `gitcp sessions` sessions",
    "ls": "`gitcp log` lists checkpoints, `gitcp files SEL` the files of one",
    "merge": _FILE,
    "redo": "a second `gitcp undo` redoes it",
    "reflog": "`gitcp log --full` lists every checkpoint",
    "reset": f"{_FILE}; `gitcp undo` undoes that",
    "revert": f"{_FILE}; `gitcp undo` undoes that",
    "snapshot": "`gitcp save`",
    "stash": "`gitcp save` saves the present state, `gitcp restore SEL` restores it",
    "tag": "`gitcp label SEL NAME`",
    "worktree": "`gitcp fork SEL NAME --worktree DIR`",
}
