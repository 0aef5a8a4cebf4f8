"""An unseen set of credentials to measure the secret scanner with.

Kinds of credentials as vendors issue them in November 2026, and the forms in which
they get into files. How it was collected: from the vendors' public documentation of
their formats, looked up where a search found it (Cloudflare, GitHub, GitLab, Google,
Datadog, Confluent, Sentry, Heroku, Tailscale, Buildkite, Azure, age, Weights & Biases)
and from memory of it elsewhere; `source` names the page. `sure` is False where a
length or a checksum was not documented, only seen or assumed. Every value is made
from a seed: none was ever issued. Seed with the kind's name too: the same
seed gives kinds of one alphabet the same letters.

It was written before the scanner's rules were changed, by a person who did not see
them, nor their tests. It must not be edited to make a measurement better: the hash
that `python -m bench.secret_kinds --hash` prints is in the message of the commit that
added it.
"""

from bench.secret_kinds import ai, cloud, forge, keys, passwords, saas
from bench.secret_kinds.base import Kind
from bench.secret_kinds.forms import FORMS, Form

GROUPS = ("cloud", "forge", "ai", "saas", "key", "password")
KINDS: tuple[Kind, ...] = (
    *cloud.KINDS,
    *forge.KINDS,
    *ai.KINDS,
    *saas.KINDS,
    *keys.KINDS,
    *passwords.KINDS,
)

__all__ = ["FORMS", "GROUPS", "KINDS", "Form", "Kind"]
