"""Examples for the help of each command: a line as it is typed, and what it does."""

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "save": (
        ('gitcp save -m "JWT works"', "Save files and decisions, with a note"),
        (
            'gitcp save --decision "JWT, not sessions" --why "two servers"',
            "Save, and add a decision and its reason to the log",
        ),
    ),
    "log": (
        ("gitcp log", "The newest checkpoints"),
        ("gitcp log --all", "Those of every session and branch"),
    ),
    "ui": (
        ("gitcp ui", "Look at the turns here, and choose one to go back to"),
        ("gitcp restore", "The same; without the extra `ui` a numbered list"),
    ),
    "show": (
        ("gitcp show", "The newest turn: prompt, tools, answer, files"),
        ("gitcp show 3 -p -- src", "The lines that #3 changed in a folder"),
        ("gitcp show HEAD", "The checkpoints that a commit was made from"),
    ),
    "diff": (
        ("gitcp diff last", "What has changed since the newest checkpoint"),
        ("gitcp diff 3..5 --stat src", "What changed below src from 3 to 5, counted"),
    ),
    "restore": (
        ("gitcp restore 3", "Show what would change, ask, and go back to it"),
        ("gitcp restore 3 src/vat.py", "Bring back one file, and nothing else"),
    ),
    "undo": (
        ("gitcp undo", "Take the last restore back, after a question"),
        ("gitcp undo --yes", "The same without one; again, and it is restored"),
    ),
    "rollback": (
        ("gitcp rollback", "Drop what changed since the newest checkpoint"),
        ("gitcp rollback --yes", "The same without a question"),
    ),
    "status": (
        ("gitcp status", "Where you are, and what a save would add"),
        ("gitcp status --json", "The same for a program"),
    ),
    "install": (
        ("gitcp install claude-code", "Save before each prompt and after each turn"),
        ("gitcp install git-hooks skill", "Know the commits; teach agents gitcp"),
    ),
    "uninstall": (
        ("gitcp uninstall claude-code", "Remove the hooks from Claude Code's settings"),
        ("gitcp uninstall --everything --dry-run", "Show all that gitcp has put here"),
    ),
    "messages": (
        ("gitcp messages last", "Read the conversation, turn by turn"),
        ("gitcp messages 3 -o talk.jsonl", "Write it to a file, byte for byte"),
    ),
    "context": (
        ("gitcp context", "What the next conversation should know"),
        ("gitcp context 3 --window 100000", "Warn if that and the talk are too long"),
    ),
    "resume": (
        ("gitcp resume", "Continue the newest conversation where it ended"),
        ("gitcp resume 3 --with codex", "Continue the one of #3 in Codex"),
    ),
    "view": (
        ("gitcp view", "Write this session as a page, and say where"),
        ("gitcp view 3 -o talk.html --redact", "One to hand on, opened at #3"),
        ("gitcp view --serve", "Watch the session grow in a browser"),
    ),
    "search": (
        (
            "gitcp search race sessions",
            "What was said, decided or written with both words",
        ),
        (
            "gitcp search '\"race in sessions\"' --in talk",
            "A phrase that an agent said",
        ),
    ),
    "why": (
        ("gitcp why src/vat.py", "Which turn wrote each line, and why"),
        ("gitcp why src/vat.py:5-9", "The same of some lines"),
    ),
    "decide": (
        (
            'gitcp decide "JWT, not sessions" --why "two servers"',
            "Note a decision and its reason for the next save",
        ),
        (
            'gitcp decide "lru_cache" --kind tried --path src/vat.py',
            "Note what did not work, and where",
        ),
    ),
    "decisions": (
        ("gitcp decisions", "Every decision up to now"),
        ("gitcp decisions --kind tried --path src", "What was tried below src"),
    ),
    "sessions": (
        ("gitcp sessions", "All sessions, the newest first, by what they began with"),
        ("gitcp sessions --json", "The same for a program"),
    ),
    "branches": (
        ("gitcp branches", "Those of the current session"),
        ("gitcp branches --session auth", "Those of the session auth"),
    ),
    "fork": (
        ("gitcp fork 3 try-hs256", "Go back to 3 and continue on a new branch"),
        (
            "gitcp fork 3 try-hs256 --worktree ../try",
            "The same in a new work tree; this one stays as it is",
        ),
    ),
    "switch": (
        ("gitcp switch auth/try-hs256", "Save to that branch from now on"),
        ("gitcp switch auth --restore", "And bring its files"),
    ),
    "label": (
        ("gitcp label 3 green", "Name it: `green` selects it, and no prune takes it"),
        ("gitcp label green --remove", "Take the name from it"),
    ),
    "files": (
        ("gitcp files 3", "Every file in a checkpoint"),
        ("gitcp files last src", "Those below src"),
    ),
    "cat": (
        ("gitcp cat 3 src/vat.py", "Print a file as it was"),
        ("gitcp cat last data.bin > old.bin", "Every byte as it is"),
    ),
    "watch": (
        ("gitcp watch", "Save every half hour, if something changed"),
        ("gitcp watch --minutes 5", "Every five minutes"),
    ),
    "acp": (
        ("gitcp acp -- gemini --acp", "What the editor starts instead of the agent"),
        ("gitcp acp -- opencode acp", "The same for another agent"),
    ),
    "mcp": (
        ("gitcp mcp", "What a client starts in the project"),
        ("gitcp mcp < /dev/null", "See whether it starts, and end"),
    ),
    "run": (
        ("gitcp run -- make test", "Save, run it, and keep the output if it fails"),
        (
            "gitcp run --rollback-on-failure -- ./migrate.sh",
            "If it fails, put the files back as they were",
        ),
    ),
    "steps": (
        ("gitcp steps", "The durable steps of this branch"),
        ("gitcp steps answer send done", "Say that an interrupted step took effect"),
    ),
    "push": (
        ("gitcp push", "Send all sessions to the remote"),
        ("gitcp push --fork", "What has diverged goes as a branch of its own"),
        ("gitcp push --wait", "With those of other clones, as a container ends"),
    ),
    "pull": (
        ("gitcp pull", "Take in all sessions of the remote"),
        ("gitcp pull origin auth", "Take in one of them"),
    ),
    "remote-sessions": (
        ("gitcp remote-sessions", "What the remote has"),
        ("gitcp remote-sessions backup", "What another remote has"),
    ),
    "trust": (
        ("gitcp trust", "The addresses that you trust"),
        ("gitcp trust origin", "Trust what is pulled from this remote's address"),
    ),
    "export": (
        ("gitcp export last -o auth.bundle", "The session of the newest checkpoint"),
        ("gitcp export auth:last -o auth.bundle --force", "Replace an older file"),
    ),
    "import-history": (
        ("gitcp import-history", "Take in the conversations that agents have on disk"),
        ("gitcp import-history codex --since 30d", "Codex's, of the last thirty days"),
    ),
    "import": (
        ("gitcp import auth.bundle", "Take in a session that was exported"),
        ("gitcp import old.session", "Take in a directory of another tool"),
    ),
    "scan": (
        ("gitcp scan", "Look through all that no remote has"),
        ("gitcp scan auth", "One session only"),
    ),
    "purge": (
        ("gitcp purge 3f2a9c1d --dry-run", "What would change, by a fingerprint"),
        ("gitcp purge secrets.env", "Take a file out of every checkpoint"),
    ),
    "doctor": (
        ("gitcp doctor", "What is wrong here, if anything"),
        ("gitcp doctor --json", "The same for a program"),
        ("gitcp doctor --test copilot", "Whether a client's hook makes a checkpoint"),
    ),
    "verify": (
        ("gitcp verify", "Read and check all that is stored"),
        ("gitcp verify --repair", "Put back what has a good copy somewhere"),
    ),
    "du": (
        ("gitcp du", "What checkpoints take on disk"),
        ("gitcp du --json", "The same in bytes, for a program"),
    ),
    "adopt": (
        ("gitcp adopt", "After `git init`: move this folder's checkpoints into it"),
        ("gitcp adopt 3f2a --yes", "Move those of another folder, without a question"),
    ),
    "folders": (
        ("gitcp folders", "Folders without git that have checkpoints"),
        ("gitcp folders --use 3f2a", "Go on with those of a folder that was moved"),
    ),
    "prune": (
        ("gitcp prune --dry-run", "What would go: all but the last 10"),
        ("gitcp prune --keep-within 30d", "Keep those of the last 30 days as well"),
    ),
    "gc": (
        ("gitcp gc", "Give back the space of pruned checkpoints"),
        ("gitcp gc --json", "The same, with the numbers for a program"),
        ("gitcp gc --auto", "Only what is due, within minutes: for cron"),
        ("gitcp gc --remote s3://bucket/team", "What nothing needs in an object store"),
    ),
    "config": (
        ("gitcp config", "Every setting with its meaning"),
        ("gitcp config maxFileSize 500m", "Capture files of up to 500 MiB here"),
    ),
    "completion": (
        ('eval "$(gitcp completion bash)"', "Complete in this shell"),
        (
            "gitcp completion fish > ~/.config/fish/completions/gitcp.fish",
            "Complete in every fish from now on",
        ),
    ),
    "demo": (
        ("gitcp demo", "Two minutes in a project that is thrown away"),
        ("gitcp demo --keep", "Leave the project there to look at"),
    ),
    "help": (
        ("gitcp help selectors", "How to name a checkpoint"),
        ("gitcp help restore", "The help of a command"),
    ),
    "hook": (
        ("gitcp hook claude-code Stop < event.json", "What Claude Code calls"),
        ("GITCP_DISABLE=1 claude", "Start an agent whose hooks do nothing"),
    ),
    "pusher": (
        (
            "gitcp pusher 0123456789abcdef",
            "What `gitcp push --spool` starts in the background",
        ),
        ("gitcp pusher --quiet 0123456789abcdef", "The same, without a word"),
    ),
    "git-hook": (
        ("gitcp git-hook post-commit", "What git calls after a commit"),
        ("GITCP_DISABLE=1 git commit", "A commit without gitcp"),
    ),
}
