"""What the scanner sees and misses, and how long it takes: `python bench/secret_scan.py`.

The 31 synthetic secrets of the tests, by five seeds, as lines of a file and as what a tool
printed in a transcript; and Python's own library, which holds none.
"""

import json
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from gitcp.secrets import library
from gitcp.secrets.scanner import Fingerprints, Scanner
from tests.support.sample_secrets import sample_secrets

SEEDS = range(5)


def in_transcript(line: str) -> bytes:
    """A tool's output as an agent keeps it: JSON, in a string, in JSON."""
    inner = json.dumps({"stdout": f"ok\n{line}\nbye", "code": 0})
    return json.dumps({"message": {"content": [{"content": inner}]}}).encode() + b"\n"


def seen(scan: Scanner, form: Callable[[str], bytes]) -> str:
    """How many of 31, least to most, and the names of those ever missed."""
    counts, missed = [], set()
    for seed in SEEDS:
        lines = {name: line for name, (_, line) in sample_secrets(seed).items()}
        found = {name for name, line in lines.items() if scan.scan([form(line)])}
        counts.append(len(found))
        missed |= lines.keys() - found
    names = f" (missed at times: {', '.join(sorted(missed))})" if missed else ""
    return f"{min(counts)} - {max(counts)} of 31{names}"


def main() -> None:
    """Prints a row for each layer."""
    extra = library.library()
    layers = {"built-in": Scanner(Fingerprints(bytes(32)))}
    if extra is not None:
        layers["with the library"] = Scanner(Fingerprints(bytes(32)), extra=extra)
    standard = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    clean = [path for path in standard if "site-packages" not in path.parts]
    size = sum(path.stat().st_size for path in clean)
    for name, scan in layers.items():
        raw, told = seen(scan, str.encode), seen(scan, in_transcript)
        print(f"{name}: raw {raw}; in a transcript {told}")
        began = time.process_time()
        hits = [
            (path.name, hit.line, hit.rule)
            for path in clean
            for hit in scan.scan([path.read_bytes()], path.name.encode())
        ]
        took = time.process_time() - began
        rate = size / 1e6 / took
        print(
            f"  clean: {len(hits)} in {len(clean)} files, {size / 1e6:.1f} MB,"
            f" {took:.1f} s of processor time ({rate:.1f} MB/s)"
        )
        for hit in hits:
            print("   ", *hit)


if __name__ == "__main__":
    main()
