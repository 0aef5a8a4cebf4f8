"""Recognises shell commands that change no file: gitcp makes no checkpoint before them.

A command that is not known to be harmless counts as one that may change files. A wrong
answer costs a checkpoint too many or too few, but never permits or forbids a command.
"""

import re
import shlex


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Programs that only read, whatever their arguments.
_READ = _words(
    "[ basename cat cd cksum cmp column comm cut diff dirname du df echo egrep expr false"
    " fgrep grep groups head id jq less ls md5sum more nl od paste printenv printf ps pwd"
    " readlink realpath rev seq sha1sum sha256sum sleep stat strings sum tac tail test tr"
    " true tty type uname uptime wc whereis which whoami"
)
# Programs that only read unless an argument matches.
_READ_UNLESS = {
    "date": re.compile("-[^-]*s|--s"),
    "file": re.compile("-[^-]*C|--compile"),
    "find": re.compile("-delete|-exec|-ok|-fls|-fprint"),
    "rg": re.compile("--pre"),
    "sort": re.compile("-[^-]*o|--o|--compress"),
    "tree": re.compile("-[^-]*o"),
    # `--output`, programs that the configuration names, and a pager.
    "git": re.compile("--output|--ext-diff|--textconv|--open-files|-O"),
    # `messages -o` writes any file.
    "gitcp": re.compile("-[^-]*o|--o"),
}
_GIT = _words(
    "blame cat-file describe diff log ls-files ls-tree merge-base rev-list rev-parse"
    " shortlog show status"
)
# These write below the git directory at most.
_GITCP = _words(
    "context decide decisions diff help label log messages sessions show status"
)
_SUBCOMMANDS = {"git": _GIT, "gitcp": _GITCP}
_SEPARATORS = frozenset({";", "&&", "||", "|", "|&"})
# Output that is discarded, or joined with other output.
_DISCARDED = re.compile(r"(?:[012]|&)?>{1,2}\s*(?:/dev/null(?![^\s;|&])|&[12]\b)")
# Syntax that runs, assigns or writes something that the words do not show.
_HIDDEN = ("`", "$(", "<(", ">(", "${", "\\\n")
_LONGEST = 4_096


def only_reads(command: str) -> bool:
    """Whether every program in a command line is known to change nothing."""
    if len(command) > _LONGEST or any(sign in command for sign in _HIDDEN):
        return False
    plain = _DISCARDED.sub(" ", command)
    lexer = shlex.shlex(plain.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    part: list[str] = []
    found = False
    try:
        for word in lexer:
            if word in _SEPARATORS or not word.strip(";"):
                if part and not _reads(part):
                    return False
                found = found or bool(part)
                part = []
            elif set(word) <= set("();<>|&"):
                return False
            else:
                part.append(word)
    except ValueError:
        return False
    return _reads(part) if part else found


def _reads(words: list[str]) -> bool:
    program, *arguments = words
    # Options before git's subcommand can change the programs that git runs.
    known = _SUBCOMMANDS.get(program)
    if known is not None and (not arguments or arguments[0] not in known):
        return False
    unless = _READ_UNLESS.get(program)
    if unless is None:
        return program in _READ or known is not None
    return not any(unless.match(argument) for argument in arguments)
