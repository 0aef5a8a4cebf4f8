"""docs/json.md shows the documents that the command line makes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_json_documents_is_up_to_date():
    spec = importlib.util.spec_from_file_location("json_page", DOCS / "documents.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    hint = "run `python docs/documents.py`"
    assert (DOCS / "json.md").read_text("utf-8") == module.page(), hint
