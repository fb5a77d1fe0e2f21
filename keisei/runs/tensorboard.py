"""A copy of a run's scalars for TensorBoard."""

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)


class TensorBoardWriter:
    """A copy of the scalars for TensorBoard; if it fails, it says so once and the run goes on.

    It writes tensorboardX's records by itself. `tensorboardX.SummaryWriter` hands them to a thread
    through a queue of ten: when a full disk ends that thread, the eleventh event, and the end of
    the program, wait for ever.
    """

    def __init__(self, folder: Path, resumed_at: int | None = None) -> None:
        """Write into `folder`; of a run that was resumed, TensorBoard hides what was later."""
        self._folder = folder
        self._file: Any = None
        with self._never_failing():
            from tensorboardX.proto.event_pb2 import SessionLog
            from tensorboardX.record_writer import RecordWriter

            folder.mkdir(parents=True, exist_ok=True)
            # TensorBoard reads every file whose name has "tfevents" in it, in order of name.
            self._file = RecordWriter(str(folder / f"events.out.tfevents.{time.time_ns()}"))
            self._write(file_version="brain.Event:2")
            if resumed_at is not None:
                start = SessionLog(status=SessionLog.START)
                self._write(step=resumed_at + 1, session_log=start)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values of several metrics at `step`."""
        if self._file is None:
            return
        with self._never_failing():
            from tensorboardX.summary import scalar

            for name, value in values.items():
                self._write(step=step, summary=scalar(name, float(value)))
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            with self._never_failing():
                self._file.close()
            self._file = None

    def _write(self, **fields: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._file.write(Event(wall_time=time.time(), **fields).SerializeToString())

    @contextlib.contextmanager
    def _never_failing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            _log.warning("TensorBoard events in %s end here: %s", self._folder, error)
            if self._file is not None:
                with contextlib.suppress(Exception):
                    self._file.close()
            self._file = None
