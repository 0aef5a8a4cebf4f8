"""Completion scripts for bash, zsh and fish, and how candidates are passed to each.

click's own scripts show no descriptions in bash, cut them at a comma in fish, and break
words at a colon, which selectors contain.
"""

import os
from typing import Any

import click
from click import shell_completion as base
from click.shell_completion import CompletionItem

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' type value about width=0 line
    local -a values=() abouts=()
    local response
    response=$(COMP_LINE="${COMP_LINE:0:COMP_POINT}" \
COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete "$1" 2>/dev/null)
    COMPREPLY=()
    while IFS=$'\\t' read -r type value about; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                values+=("$value")
                abouts+=("$about")
                (( ${#value} > width )) && width=${#value}
                [[ $value == */ || $value == *: ]] && compopt -o nospace
                ;;
        esac
    done <<< "$response"
    # 63 and 33: the candidates are listed. What is inserted has no description.
    if (( ${#values[@]} > 1 )) && [[ $COMP_TYPE == 63 || $COMP_TYPE == 33 ]]; then
        for line in "${!values[@]}"; do
            if [[ -n ${abouts[line]} ]]; then
                printf -v value '%%-*s  %%s' "$width" "${values[line]}" "${abouts[line]}"
            else
                value=${values[line]}
            fi
            # As wide as the terminal: one on each line.
            printf -v value '%%-*s' "$((${COLUMNS:-80} - 1))" "$value"
            COMPREPLY+=("${value:0:${COLUMNS:-80} - 1}")
        done
    else
        COMPREPLY=("${values[@]}")
    fi
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a values abouts shown open
    local type value about width=0 i
    (( ! $+commands[%(prog_name)s] )) && return 1
    env COMP_LINE="${(j: :)words[1,CURRENT]}" %(complete_var)s=zsh_complete \
%(prog_name)s 2>/dev/null | while IFS=$'\\t' read -r type value about; do
        case $type in
            dir) _path_files -/ ;;
            file) _path_files ;;
            plain)
                values+=("$value")
                abouts+=("$about")
                (( $#value > width )) && width=$#value
                [[ $value == */ || $value == *: ]] && open=(-S '')
                ;;
        esac
    done
    for (( i = 1; i <= $#values; i++ )); do
        shown+=("${(r:width:)values[i]}${abouts[i]:+  $abouts[i]}")
    done
    (( $#values )) && compadd -U -V gitcp -l "${open[@]}" -d shown -a values
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = """\
function %(complete_func)s
    set -l response (env COMP_LINE=(commandline -cp) \
%(complete_var)s=fish_complete %(prog_name)s 2>/dev/null)
    for line in $response
        set -l fields (string split -m 2 \\t -- $line)
        switch $fields[1]
            case dir
                __fish_complete_directories $fields[2]
            case file
                __fish_complete_path $fields[2]
            case plain
                printf '%%s\\t%%s\\n' $fields[2] "$fields[3]"
        end
    end
end

complete --no-files --keep-order --command %(prog_name)s --arguments \
"(%(complete_func)s)"
"""


class _Values(base.ShellComplete):
    """Completes values as well as commands and options."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Returns the words before the cursor, and the one at it."""
        from gitcp.cli.completing import words_of

        if "COMP_LINE" in os.environ:
            return words_of(os.environ["COMP_LINE"])
        # This shell still uses the script of an older gitcp.
        words = base.split_arg_string(os.environ["COMP_WORDS"])
        at = os.environ["COMP_CWORD"]
        if at.isdigit():
            return words[1 : int(at)], "".join(words[int(at) : int(at) + 1])
        return [word for word in words[1:] if word != at], at

    def get_completions(
        self, args: list[str], incomplete: str
    ) -> list[CompletionItem[str]]:
        """Returns the candidates."""
        from gitcp.cli.completing import complete

        context = base._resolve_context(  # noqa: SLF001  click has no other way
            self.cli, self.ctx_args, self.prog_name, args
        )
        found, incomplete = base._resolve_incomplete(context, args, incomplete)  # noqa: SLF001
        if isinstance(found, click.Parameter):
            items = complete(context, found, incomplete)
            if items is not None:
                return items
        return found.shell_complete(context, incomplete)

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Returns a line with type, value and description, separated by tabs."""
        about = " ".join((item.help or "").split())
        if "COMP_LINE" not in os.environ:
            return f"{item.type},{item.value}"
        return f"{item.type}\t{item.value}\t{about}"


class Bash(_Values):
    """For bash 4.4 and newer."""

    name = "bash"
    source_template = _BASH

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Returns a line whose value lacks the part up to the last colon, which bash keeps."""
        line = os.environ.get("COMP_LINE", "")
        word = self.get_completion_args()[1]
        if ":" in word and ":" in os.environ.get("COMP_WORDBREAKS", ":") and line:
            kept = word[: word.rindex(":") + 1]
            item.value = item.value.removeprefix(kept)
        return super().format_completion(item)


class Zsh(_Values):
    """For zsh."""

    name = "zsh"
    source_template = _ZSH


class Fish(_Values):
    """For fish."""

    name = "fish"
    source_template = _FISH


SHELLS: dict[str, type[_Values]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def register() -> None:
    """Makes click use these scripts instead of its own."""
    for shell in SHELLS.values():
        base.add_completion_class(shell)
