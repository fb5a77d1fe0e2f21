"""What other programs take is told apart from what the benchmark's own processes take."""

import resource
import subprocess
import sys
import time

import psutil

from keisei.benchmarks.report import OtherLoad

BURN = "import time\nwhile time.process_time() < 0.5: pass"


def busy() -> float:
    """Seconds that the cores were busy since the machine started, whoever used them."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0.0)


def of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_children_that_have_ended_are_not_other_programs():
    all_before, own_before, start = busy(), of_children(), time.perf_counter()
    with OtherLoad() as others:
        subprocess.run([sys.executable, "-c", BURN], check=True, timeout=60)
    others_took = others.cores * (time.perf_counter() - start)
    children_took = of_children() - own_before
    assert children_took >= 0.5
    # The kernel counts in hundredths of a second, for each core and each kind of use.
    assert others_took <= busy() - all_before - 0.8 * children_took + 0.1
