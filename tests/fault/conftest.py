"""Assertions in the harness speak as those in the tests do."""

import pytest

pytest.register_assert_rewrite("tests.fault.harness")
pytest.register_assert_rewrite("tests.fault.sweep")
