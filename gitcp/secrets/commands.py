"""Finds passwords in command lines."""

import re
from collections.abc import Iterable, Iterator

from gitcp.secrets import examples, heuristics
from gitcp.secrets.runs import Spend
from gitcp.secrets.text import Text, Words
from gitcp.secrets.tokens import Token, trie

_COMMANDS = re.compile(
    rb"(?:"
    rb"\bcurl\b[^\r\n]{0,400}?[ \t](?:-u|--user|--proxy-user"
    rb"|-U)[ =]?[\"']?[^\s:\"']{1,100}:(?P<curl>[^\s\"']{4,200})"
    rb"|\bsshpass[ \t]+-p[ \t]?[\"']?(?P<sshpass>[^\s\"']{4,200})"
    rb"|\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump"
    rb"|mycli)\b[^\r\n|;]{0,300}?[ \t]-p[\"']?(?P<mysql>[^\s\"'-][^\s\"']{4,200})"
    rb"|\bredis-cli\b[^\r\n|;]{0,200}?[ \t](?:-a"
    rb"|--pass)[ \t]+[\"']?(?P<redis>[^\s\"']{5,200})"
    rb"|\b(?:docker|podman|helm|oc|az|skopeo|buildah|crane|oras"
    rb"|nerdctl)[ \t][^\r\n|;]{0,60}?\blogin\b[^\r\n|;]{0,200}?"
    rb"[ \t](?:-p|-P)[ \t=]?[\"']?(?P<login>[^\s\"']{5,400})"
    rb"|\b(?:mongo|mongosh|mongodump|mongorestore|clickhouse-client|influx|sqlplus"
    rb"|exp|imp|kinit|xfreerdp|rdesktop|winexe|"
    rb"evil-winrm|crackmapexec|nxc|smbmap|ldapsearch|ldapadd|ldapmodify|sqlcmd|bcp"
    rb"|isql|vncviewer|lftp|ftp)\b[^\r\n|;]{0,300}?"
    rb"[ \t](?:-p|-P|-w|-Passwd|/p:|--password)[ \t=]?[\"']?"
    rb"(?P<client>[^\s\"'-][^\s\"']{5,200})"
    rb"|\b(?:smbclient|rpcclient"
    rb"|net)\b[^\r\n|;]{0,200}?[ \t]-U[ \t]?[\"']?[^\s%\"']{1,80}%"
    rb"(?P<smb>[^\s\"']{5,200})"
    rb"|\bpass(?:in|out|word)?[ \t=]{1,3}pass:(?P<openssl>[^\s\"']{5,200})"
    rb"|-(?:storepass|keypass|srcstorepass|deststorepass|srckeypass"
    rb"|destkeypass)[ \t]+[\"']?(?P<keytool>[^\s\"']{5,200})"
    rb"|\bhtpasswd[ \t]+-\w*b\w*[ \t]+(?:\S{1,100}[ \t]+)?\S{1,60}[ \t]+[\"']?"
    rb"(?P<htpasswd>[^\s\"']{5,200})"
    rb"|\brabbitmqctl[ \t]+(?:add_user|change_password)[ \t]+\S{1,60}[ \t]+[\"']?"
    rb"(?P<rabbit>[^\s\"']{5,200})"
    rb"|\becho[ \t]+(?:-n[ \t]+)?[\"']?(?P<echo>[^\s\"'$]{6,200})[\"']?[ \t]*\|[ \t]*"
    rb"(?:sudo[ \t]+-S|docker[ \t]+login|gh[ \t]+auth|passwd|su\b|kinit|cryptsetup"
    rb"|helm|podman|az\b|glab|gpg)"
    rb"|\becho[ \t]+[\"']?[\w.-]{1,40}:(?P<chpasswd>[^\s\"'$]{6,200})"
    rb"[\"']?[ \t]*\|[ \t]*(?:sudo[ \t]+)?chpasswd"
    rb"|\bConvertTo-SecureString[ \t]+(?:-String[ \t]+)?[\"']"
    rb"(?P<secure>[^\"'\r\n$]{5,200})[\"'][^\r\n]{0,40}-AsPlainText"
    rb"|\bidentified[ \t]+(?:with[ \t]+[\w']{1,40}[ \t]+)?by[ \t]+[\"']"
    rb"(?P<sql>[^\"'\r\n]{5,200})[\"']"
    rb"|\bnet[ \t]+use\b[^\r\n]{0,120}?/user:\S{1,60}[ \t]+[\"']?"
    rb"(?P<netuse>[^\s\"'/]{5,200})"
    rb"|\bauthn?[ \t]+(?:-p[ \t]+)?login[ \t]+\S{1,60}[ \t]+(?P<auth>[^\s\"']{8,200})"
    rb"|(?<![^\r\n])[ \t]*auth[ \t]+[\"']?(?P<redisauth>[^\s\"':=(]{8,200})[\"']?[ \t]*(?![^\r\n])"
    rb")",
    re.IGNORECASE,
)
_COMMAND_WORD = re.compile(
    rb"(?:"
    + trie(
        "curl sshpass mysql mariadb redis-cli login mongo sqlplus kinit freerdp ldap sqlcmd"
        " bcp clickhouse- influx smbclient pass: storepass keypass htpasswd rabbitmqctl sudo"
        " chpasswd securestring identified net\0use cryptsetup lftp auth\0 mycli isql winrm"
        " winexe rpcclient smbmap rdesktop nxc crackmapexec".replace("\0", "\t").split(
            " "
        )
    )
    .replace("\\\t", "[ \\t]")
    .encode()
    + rb")"
)
_LONGEST_LINE = 1_000
_LINE_END = re.compile(rb"[\r\n]")
# One of these precedes a password in a command, and occurs in few other lines. Commands'
# names are common words, and too many to search for each.
_FLAGS = (
    re.compile(rb"-(?<=[ \t]-)(?=[-a-z/])"),
    re.compile(rb"/(?<=[ \t]/)(?=[-a-z/])"),
)
_TAKES = Words(
    *(b"pass:", b"storepass", b"keypass", b"rabbitmqctl", b"identified"),
    *(b"chpasswd", b"auth", b"echo ", b"/user:", b"/p:"),
)


def commands(text: Text, spend: Spend) -> Iterator[Token]:
    """Yields the passwords in lines of commands that take a password."""
    data, lower = text.data, text.lower
    taken = sorted({*_TAKES.starts(text), *_flags(text)})
    for low, high in _lines_at(lower, taken):
        named = len(_COMMAND_WORD.findall(lower, low, high))
        if not named:
            continue
        # Each search goes from the command's name to the end of the line.
        spend(named * (high - low) // 2)
        for match in _COMMANDS.finditer(data, low, high):
            group = match.lastgroup
            assert group is not None
            value, at = match[group], match.start(group)
            if heuristics.spoken(value) and not examples.made_up(
                text, value, at, spend
            ):
                yield Token("command-password", value, at)


def _flags(text: Text) -> Iterator[int]:
    """Yields the positions of blanks before flags of commands, grouped by sort of flag."""
    for pattern in _FLAGS:
        for match in pattern.finditer(text.lower):
            yield match.start() - 1


def _lines_at(data: bytes, taken: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yields the lines that hold some places, which come in order; omits too long lines."""
    done = 0
    for at in taken:
        if at < done:
            continue
        near = data[max(done, at - _LONGEST_LINE) : at]
        low = at - len(near) + max(near.rfind(b"\n"), near.rfind(b"\r")) + 1
        end = _LINE_END.search(data, at, at + _LONGEST_LINE)
        done = end.start() if end is not None else min(len(data), at + _LONGEST_LINE)
        yield low, done
