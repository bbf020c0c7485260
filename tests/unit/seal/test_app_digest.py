"""The digest of an app, against `printf 'assets/a.js %s\\nindex.html %s\\n' aaaa… 0b0b… | sha256sum`; the app's tests/app.test.ts has the same."""

import pytest

from trunkline_seal.app_digest import app_digest, manifest_digest
from trunkline_wire import TrunklineError

KNOWN = "668eae00cce7f112d9806bd6578b445ed37b420fb21199c67d828c2a2f511806"


def test_the_files_order_does_not_matter() -> None:
    assert app_digest({"index.html": "0b" * 32, "assets/a.js": "aa" * 32}).hex() == KNOWN


def test_a_manifest() -> None:
    text = f'{{"files": {{"assets/a.js": "{"aa" * 32}", "index.html": "{"0b" * 32}"}}}}'
    assert manifest_digest(text.encode()).hex() == KNOWN
    with pytest.raises(TrunklineError) as refused:
        manifest_digest(b"<html>")
    assert refused.value.code == "bad_params"
