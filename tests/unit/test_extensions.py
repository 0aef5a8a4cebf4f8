"""What features add to the core is found by name, so no import tells that it is there."""

import inspect

import pytest

from gitcp.checkpoints.restore_observer import RestoreObserver, restore_observer
from gitcp.project import extensions
from gitcp.steps import restores

# mypy checks that the module fulfils the protocol.
OBSERVER: RestoreObserver = restores


def test_the_observer_of_restores_is_found_by_name():
    assert restore_observer() is OBSERVER


@pytest.mark.parametrize("name", extensions.AFTER_SAVE)
def test_a_task_for_after_a_save_takes_the_workspace_and_the_checkpoint(name):
    task = extensions.load(name).after_save
    assert list(inspect.signature(task).parameters) == ["workspace", "tip"]
