"""Examples for the help of each command: a line as the user types it, and its effect."""

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "save": (
        ('gitcp save -m "JWT works"', "Save files and decisions, with a note"),
        (
            'gitcp save --decision "JWT, not sessions" --why "two servers"',
            "Save, and add a decision and its reason to the log",
        ),
    ),
    "log": (
        ("gitcp log", "List the newest checkpoints of this work tree"),
        ("gitcp log --all", "List those of every session and branch"),
    ),
    "ui": (
        ("gitcp ui", "Browse the turns here, and choose one to go back to"),
        ("gitcp restore", "The same; without the extra `ui`, from a numbered list"),
    ),
    "show": (
        ("gitcp show", "Show the newest turn: prompt, tools, answer, files"),
        ("gitcp show 3 -p -- src", "Show the lines that #3 changed in a folder"),
        ("gitcp show HEAD", "Show the checkpoints that led to a commit"),
    ),
    "diff": (
        ("gitcp diff last", "Show what changed since the newest checkpoint"),
        ("gitcp diff 3..5 --stat src", "Count what changed below src from 3 to 5"),
    ),
    "restore": (
        ("gitcp restore 3", "Show what would change, ask, and go back to it"),
        ("gitcp restore 3 src/vat.py", "Bring back one file, and nothing else"),
    ),
    "undo": (
        ("gitcp undo", "Show what would change, ask, and undo the last restore"),
        ("gitcp undo --yes", "The same, without asking"),
    ),
    "rollback": (
        ("gitcp rollback", "Take back what changed since the newest checkpoint"),
        ("gitcp rollback --yes", "The same, without asking"),
    ),
    "status": (
        ("gitcp status", "Show where you are, and what a save would add"),
        ("gitcp status --json", "Print the same for a program"),
    ),
    "install": (
        ("gitcp install claude-code", "Save before each prompt and after each turn"),
        (
            "gitcp install git-hooks skill",
            "Link checkpoints to commits; teach agents to use gitcp",
        ),
    ),
    "uninstall": (
        ("gitcp uninstall claude-code", "Remove the hooks from Claude Code's settings"),
        (
            "gitcp uninstall --everything --dry-run",
            "Show everything of gitcp's in this project",
        ),
    ),
    "messages": (
        ("gitcp messages last", "Read the conversation, turn by turn"),
        ("gitcp messages 3 -o talk.jsonl", "Write it to a file, byte for byte"),
    ),
    "context": (
        ("gitcp context", "Print what the next conversation should know"),
        (
            "gitcp context 3 --window 100000",
            "Warn if the briefing and the conversation are too long",
        ),
    ),
    "resume": (
        ("gitcp resume", "Continue the newest conversation where it ended"),
        ("gitcp resume 3 --with codex", "Continue the conversation of #3 in Codex"),
    ),
    "view": (
        ("gitcp view", "Write this session to a page, and print its path"),
        (
            "gitcp view 3 -o talk.html --redact",
            "Write a page to share, without secrets, opened at #3",
        ),
        ("gitcp view --serve", "Watch the session grow in a browser"),
    ),
    "search": (
        (
            "gitcp search race sessions",
            "Find what was said, decided or written with both words",
        ),
        (
            "gitcp search '\"race in sessions\"' --in talk",
            "Find a phrase in an agent's answers",
        ),
    ),
    "why": (
        ("gitcp why src/vat.py", "Show which turn wrote each line, and why"),
        ("gitcp why src/vat.py:5-9", "The same, for some lines"),
    ),
    "decide": (
        (
            'gitcp decide "JWT, not sessions" --why "two servers"',
            "Record a decision and its reason",
        ),
        (
            'gitcp decide "lru_cache" --kind tried --path src/vat.py',
            "Record what did not work, and where",
        ),
    ),
    "decisions": (
        ("gitcp decisions", "List every decision so far"),
        ("gitcp decisions --kind tried --path src", "List what was tried below src"),
    ),
    "sessions": (
        ("gitcp sessions", "List all sessions with their first prompts, newest first"),
        ("gitcp sessions --json", "Print the same for a program"),
    ),
    "branches": (
        ("gitcp branches", "List the branches of the current session"),
        ("gitcp branches --session auth", "List those of the session auth"),
    ),
    "fork": (
        ("gitcp fork 3 try-hs256", "Go back to 3 and continue on a new branch"),
        (
            "gitcp fork 3 try-hs256 --worktree ../try",
            "The same in a new work tree, without changing this one",
        ),
    ),
    "switch": (
        ("gitcp switch auth/try-hs256", "Save to that branch from now on"),
        ("gitcp switch auth --restore", "Also restore its files"),
    ),
    "label": (
        ("gitcp label 3 green", "Name #3 `green`, and keep it from being pruned"),
        ("gitcp label green --remove", "Remove that label"),
    ),
    "files": (
        ("gitcp files 3", "List every file in a checkpoint"),
        ("gitcp files last src", "List the files below src"),
    ),
    "cat": (
        ("gitcp cat 3 src/vat.py", "Print a file as it was"),
        ("gitcp cat last data.bin > old.bin", "Write its exact bytes to a new file"),
    ),
    "watch": (
        ("gitcp watch", "Save every half hour, if something changed"),
        ("gitcp watch --minutes 5", "Save every five minutes, if something changed"),
    ),
    "acp": (
        ("gitcp acp -- gemini --acp", "Have the editor run this instead of the agent"),
        ("gitcp acp -- opencode acp", "The same for another agent"),
    ),
    "mcp": (
        ("gitcp mcp", "Have the client run this in the project"),
        ("gitcp mcp < /dev/null", "Check that it starts, and exit"),
    ),
    "run": (
        ("gitcp run -- make test", "Save, run it, and keep the output if it fails"),
        (
            "gitcp run --rollback-on-failure -- ./migrate.sh",
            "Restore the files if it fails",
        ),
    ),
    "steps": (
        ("gitcp steps", "List the durable steps of this branch"),
        ("gitcp steps answer send done", "Record that an interrupted step took effect"),
    ),
    "push": (
        ("gitcp push", "Send all sessions to the remote"),
        ("gitcp push --fork", "Send diverged branches under new names"),
        (
            "gitcp push --wait",
            "Send through the spool and wait, before a container ends",
        ),
    ),
    "pull": (
        ("gitcp pull", "Pull all sessions of the remote"),
        ("gitcp pull origin auth", "Pull one of them"),
    ),
    "remote-sessions": (
        ("gitcp remote-sessions", "List what the remote has"),
        ("gitcp remote-sessions backup", "List what another remote has"),
    ),
    "trust": (
        ("gitcp trust", "List the addresses that you trust"),
        ("gitcp trust origin", "Trust what you pull from this remote's address"),
    ),
    "export": (
        (
            "gitcp export last -o auth.bundle",
            "Export the session of the newest checkpoint",
        ),
        ("gitcp export auth:last -o auth.bundle --force", "Replace an older file"),
    ),
    "import-history": (
        ("gitcp import-history", "Import the conversations that agents have on disk"),
        (
            "gitcp import-history codex --since 30d",
            "Import those of Codex from the last thirty days",
        ),
    ),
    "import": (
        ("gitcp import auth.bundle", "Import an exported session"),
        ("gitcp import old.session", "Import a directory of another tool"),
    ),
    "scan": (
        ("gitcp scan", "Scan everything that no remote has yet"),
        ("gitcp scan auth", "Scan one session only"),
    ),
    "purge": (
        (
            "gitcp purge 3f2a9c1d --dry-run",
            "Show what would change without the secret of this fingerprint",
        ),
        ("gitcp purge secrets.env", "Remove a file from every checkpoint"),
    ),
    "doctor": (
        ("gitcp doctor", "Show what is wrong here, if anything"),
        ("gitcp doctor --json", "Print the same for a program"),
        (
            "gitcp doctor --test copilot",
            "Test whether a client's hook makes a checkpoint",
        ),
    ),
    "verify": (
        ("gitcp verify", "Read and check everything that is stored"),
        (
            "gitcp verify --repair",
            "Replace damaged objects of which a good copy exists",
        ),
    ),
    "du": (
        ("gitcp du", "Show how much disk space checkpoints use"),
        ("gitcp du --json", "Print the same in bytes, for a program"),
    ),
    "adopt": (
        ("gitcp adopt", "After `git init`: move this folder's checkpoints into it"),
        ("gitcp adopt 3f2a --yes", "Move those of another folder, without asking"),
    ),
    "folders": (
        ("gitcp folders", "List folders without git that have checkpoints"),
        ("gitcp folders --use 3f2a", "Use the checkpoints of a folder that was moved"),
    ),
    "prune": (
        ("gitcp prune --dry-run", "Show what would be removed: all but the last 10"),
        ("gitcp prune --keep-within 30d", "Also keep those of the last 30 days"),
    ),
    "gc": (
        ("gitcp gc", "Free the space of pruned checkpoints"),
        ("gitcp gc --json", "The same, with figures for a program"),
        ("gitcp gc --auto", "Do only what is due, within minutes: for cron"),
        (
            "gitcp gc --remote s3://bucket/team",
            "Remove what nothing needs from an object store",
        ),
    ),
    "config": (
        ("gitcp config", "List every setting with its meaning"),
        ("gitcp config maxFileSize 500m", "Capture files of up to 500 MiB here"),
    ),
    "completion": (
        ('eval "$(gitcp completion bash)"', "Complete commands in this shell"),
        (
            "gitcp completion fish > ~/.config/fish/completions/gitcp.fish",
            "Complete commands in every new fish shell",
        ),
    ),
    "demo": (
        ("gitcp demo", "Watch gitcp at work in a temporary project"),
        ("gitcp demo --keep", "Keep the project, to look at it"),
    ),
    "help": (
        ("gitcp help selectors", "Explain how to name a checkpoint"),
        ("gitcp help restore", "Explain a command"),
    ),
    "hook": (
        (
            "gitcp hook claude-code Stop < event.json",
            "Claude Code runs this at the end of a turn",
        ),
        ("GITCP_DISABLE=1 claude", "Start an agent whose hooks do nothing"),
    ),
    "pusher": (
        (
            "gitcp pusher 0123456789abcdef",
            "`gitcp push --spool` starts this in the background",
        ),
        ("gitcp pusher --quiet 0123456789abcdef", "The same, without output"),
    ),
    "git-hook": (
        ("gitcp git-hook post-commit", "git's hook runs this after a commit"),
        ("GITCP_DISABLE=1 git commit", "Commit without gitcp's hooks"),
    ),
}
