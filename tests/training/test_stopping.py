"""A stop that is asked for is a stop, wherever the signal arrives."""

import signal

import pytest

from keisei.runs.stopping import Stopper, StopRequested


def interrupted_in_c_code():
    """What Python makes of C code that returns although the handler has raised in it."""
    try:
        signal.raise_signal(signal.SIGINT)
    except StopRequested as stop:
        raise SystemError("wait returned a result with an exception set") from stop


def test_a_stop_in_the_middle_of_rays_c_code_is_a_stop():
    with Stopper() as stopper, pytest.raises(StopRequested), stopper.interruptible():
        interrupted_in_c_code()


def test_other_errors_of_c_code_are_errors():
    with Stopper() as stopper, pytest.raises(SystemError), stopper.interruptible():
        raise SystemError("something else")
