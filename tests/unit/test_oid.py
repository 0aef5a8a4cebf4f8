"""Object ids of both hashes, as git computes them."""

import pytest

from gitcp.format.oid import SHA1, SHA256

EMPTY_BLOB = {
    SHA1: "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    SHA256: "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
}


@pytest.mark.parametrize("form", [SHA1, SHA256], ids=lambda form: form.name)
def test_an_id_is_as_git_computes_it(form):
    oid = form.oid("blob", b"")
    assert oid.hex() == EMPTY_BLOB[form]
    # msgspec encodes no subclass of bytes: a scan's state could not be kept.
    assert type(oid) is bytes
    assert (len(oid), len(oid.hex())) == (form.size, form.digits)
    digest = form.hasher("blob", 0)
    assert digest.digest() == oid
