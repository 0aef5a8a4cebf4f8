"""Print the hash of the set and its size: python -m bench.secret_kinds --hash."""

import argparse
import hashlib
from collections import Counter
from pathlib import Path

from bench.secret_kinds import FORMS, GROUPS, KINDS


def set_hash():
    """Hash the names and contents of the package's files, in the order of names."""
    whole = hashlib.sha256()
    for path in sorted(Path(__file__).parent.iterdir()):
        if path.suffix in {".py", ".gz"}:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{content}  {path.name}\n".encode())
    return whole.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hash", action="store_true", help="print hash and counts")
    if not parser.parse_args().hash:
        parser.error("nothing to do: give --hash")
    print(f"sha256 {set_hash()}")
    groups = Counter(kind.group for kind in KINDS)
    for group in GROUPS:
        print(f"{group} {groups[group]}")
    bare = sum(kind.bare for kind in KINDS)
    unsure = sum(not kind.sure for kind in KINDS)
    print(f"kinds {len(KINDS)}, bare {bare}, unsure {unsure}, forms {len(FORMS)}")


if __name__ == "__main__":
    main()
