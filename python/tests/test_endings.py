"""Each program of endings.py once; `python tests/endings.py --times 8` runs 200."""

from endings import FAILING_PROGRAMS, PROGRAMS, run_all


def test_no_program_ends_with_a_signal():
    count, failed = run_all()
    assert count == len(PROGRAMS) + len(FAILING_PROGRAMS)
    assert not failed, "\n".join(failed)
