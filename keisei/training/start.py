"""Starting a training from the command line: a new run, or an old one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path

import psutil

from keisei.config_schema import AppConfig, load_config
from keisei.core.learner import choose_device
from keisei.errors import KeiseiError
from keisei.processes.machine import keep_freed_memory
from keisei.processes.shared_memory import layout_bytes
from keisei.runs.checkpoint import understanding
from keisei.runs.run import Run, is_training
from keisei.runs.trace import Trace, check_trace_file
from keisei.settings import to_yaml
from keisei.training.callbacks import Callback, RecordMetrics, Wandb
from keisei.training.display import make_display
from keisei.training.learning_curve import LearningCurve
from keisei.training.parallel.slots import slot_layout
from keisei.training.rating import RateCheckpoints
from keisei.training.trainer import Trainer
from keisei.training.training_loop_manager import TrainingLoopManager

log = logging.getLogger(__name__)


def start_training(
    config_file: Path | str | None,
    overrides: Sequence[str],
    name: str | None,
    resume: str | None,
    trace_file: Path | None = None,
) -> bool:
    """Train a new run, or resume one; returns whether it finished."""
    if resume and (name or config_file):
        raise KeiseiError(
            "--resume takes the run's own name and settings: leave out --name/--config"
        )
    check_trace_file(trace_file)
    keep_freed_memory()
    with contextlib.ExitStack() as open_things:
        trace = open_things.enter_context(contextlib.closing(Trace(trace_file)))
        if resume:
            run, config = open_run(resume, overrides)
            check_machine(config)
            join_cluster(config, open_things)
            return TrainingLoopManager(resume_trainer(run, config, trace)).run()
        config = join_cluster(load_config(config_file, overrides), open_things)
        check_machine(config)  # before there is a folder that has the run's name
        run = Run.create(Path(config.logging.runs_dir), name, to_yaml(config))
        return TrainingLoopManager(Trainer(config, run, make_callbacks(config), trace)).run()


def check_machine(config: AppConfig) -> None:
    """Refuse what this machine does not have: a device, or memory for the rollouts of an update."""
    choose_device(config.env.device)
    parallel = config.training.parallel
    rollouts = max(parallel.num_workers, -(-parallel.update_steps // parallel.rollout_steps))
    needed = layout_bytes(slot_layout(config, rollouts))
    there = psutil.virtual_memory().total
    if needed > there:
        raise KeiseiError(
            f"the rollouts of an update take {needed / 2**30:,.0f} GiB, and this machine has "
            f"{there / 2**30:,.0f}: lower training.parallel.rollout_length, num_envs_per_worker, "
            "num_workers or experience_batch_size"
        )


def join_cluster(config: AppConfig, open_things: contextlib.ExitStack) -> AppConfig:
    """With backend ray, connect for the whole run; returns settings that fit the cluster."""
    parallel = config.training.parallel
    if parallel.backend != "ray":
        return config
    from keisei.processes.ray_cluster import cluster
    from keisei.training.parallel.ray_sizing import fit_to_cluster, store_bytes

    open_things.enter_context(cluster(parallel.ray_address, store_bytes(config)))
    return fit_to_cluster(config)


def open_run(name: str, overrides: Sequence[str]) -> tuple[Run, AppConfig]:
    """An existing run and its settings."""
    defaults = load_config(overrides=[o for o in overrides if o.startswith("logging.runs_dir=")])
    run = Run.open(name, Path(defaults.logging.runs_dir))
    return run, load_config(run.config_path, overrides)


def resume_trainer(run: Run, config: AppConfig, trace: Trace | None = None) -> Trainer:
    """The trainer of an existing run, at its newest good checkpoint."""
    trainer = Trainer(config, run, make_callbacks(config), trace)
    if not trainer.checkpoints.paths():
        if not is_training(run.folder):  # else it does not start at all, and says why
            log.warning("%s has no checkpoint yet: it starts from the beginning", run.name)
        return trainer
    path, state = trainer.checkpoints.latest()
    with understanding(f"the settings do not fit the checkpoint {path}"):
        trainer.load_state_dict(state)
    if trainer.progress.finished and trainer.progress.last_match_done:
        raise KeiseiError(
            f"{run.name} has played its {trainer.progress.steps:,} moves ({path.name}); "
            f"for more, resume with -o training.total_timesteps=N"
        )
    return trainer


def make_callbacks(config: AppConfig) -> list[Callback]:
    """What watches a run; the display is last, so that it shows what the others have done."""
    callbacks: list[Callback] = [RecordMetrics()]
    if config.wandb.enabled:
        callbacks.append(Wandb())
    if config.evaluation.rate:
        callbacks.append(RateCheckpoints())
    return [*callbacks, LearningCurve(), make_display(config.display)]
