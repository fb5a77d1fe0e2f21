"""The faults of `make mutants` still fit the code; whether tests notice them, it says itself."""

from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.faults import FAULTS, SURVIVES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_a_fault_changes_occurs_once_and_its_tests_are_there(fault):
    code = (ROOT / "keisei" / fault.file).read_text(encoding="utf-8")
    assert code.count(fault.old) == 1
    compile(code.replace(fault.old, fault.new), fault.file, "exec")
    for test in fault.tests.split():
        file, _, name = test.partition("::")
        assert f"def {name or 'test_'}" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_there_are_at_least_sixty_of_them_in_all_parts():
    assert len(FAULTS) >= 60
    names = Counter(fault.name for fault in FAULTS)
    assert max(names.values()) == 1
    assert set(SURVIVES) <= set(names)
    parts = {fault.file.partition("/")[0] for fault in FAULTS}
    assert parts >= {"core", "training", "selfplay", "worlds", "search", "runs", "shogi"}
