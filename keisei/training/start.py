"""Starting a training, from the command line or from Python: a new run, or an old one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path

import psutil

from keisei.config_schema import AppConfig, load_config
from keisei.errors import KeiseiError
from keisei.processes.machine import choose_device, keep_freed_memory
from keisei.processes.shared_memory import layout_bytes
from keisei.runs.checkpoint import understanding
from keisei.runs.run import Run, is_training
from keisei.runs.trace import Trace, check_trace_file
from keisei.settings import to_yaml
from keisei.training.callbacks import Callback, RecordMetrics, Wandb
from keisei.training.display import make_display
from keisei.training.first_network import first_network
from keisei.training.learning_curve import LearningCurve
from keisei.training.parallel.slots import slot_layout
from keisei.training.rating import RateCheckpoints
from keisei.training.trainer import Trainer
from keisei.training.training_loop_manager import TrainingLoopManager

log = logging.getLogger(__name__)


def train(
    config: str | Path | None = None,
    overrides: Sequence[str] = (),
    *,
    name: str | None = None,
    resume: str | Path | Run | None = None,
    runs: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    trace: Path | None = None,
) -> Run:
    """Train a new run, or resume one, as `keisei train` does; Ctrl-C saves and returns.

    `config` is a name ("quick", "hour", "night") or a YAML file, and `overrides` change single
    settings. `runs` is the folder with all runs. Callbacks are called before Keisei's own: what one
    adds to `trainer.progress.metrics` in `on_update` is recorded and shown with the rest.

        run = keisei.train("quick", ["training.total_timesteps=131072"], callbacks=[Mine()])
        run.metrics("win_rate/random")
    """
    if resume and (name or config):
        raise KeiseiError(
            "a run that is resumed has its own name and settings: leave out --name and --config"
        )
    check_trace_file(trace)
    keep_freed_memory()
    with contextlib.ExitStack() as open_things:
        timeline = open_things.enter_context(contextlib.closing(Trace(trace)))
        if resume:
            run, settings = open_run(resume, overrides, runs)
            check_machine(settings)
            join_cluster(settings, open_things)
            trainer = resume_trainer(run, settings, timeline, callbacks)
        else:
            settings = _in_folder(load_config(config, overrides), runs)
            settings = join_cluster(settings, open_things)
            check_machine(settings)  # before there is a folder that has the run's name
            first_network(settings)
            run = Run.create(Path(settings.logging.runs_dir), name, to_yaml(settings))
            trainer = Trainer(settings, run, make_callbacks(settings, callbacks), timeline)
        TrainingLoopManager(trainer).run()
    return run


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


def open_run(
    name: str | Path | Run, overrides: Sequence[str], runs: str | Path | None = None
) -> tuple[Run, AppConfig]:
    """An existing run and its settings."""
    if isinstance(name, Run):
        return name, load_config(name.config_path, overrides)
    defaults = load_config(overrides=[o for o in overrides if o.startswith("logging.runs_dir=")])
    run = Run.open(name, Path(_in_folder(defaults, runs).logging.runs_dir))
    return run, _in_folder(load_config(run.config_path, overrides), runs)


def _in_folder(config: AppConfig, runs: str | Path | None) -> AppConfig:
    if runs is not None:
        config.logging.runs_dir = str(runs)
    return config


def resume_trainer(
    run: Run,
    config: AppConfig,
    trace: Trace | None = None,
    callbacks: Sequence[Callback] = (),
) -> Trainer:
    """The trainer of an existing run, at its newest good checkpoint."""
    trainer = Trainer(config, run, make_callbacks(config, callbacks), trace)
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


def make_callbacks(config: AppConfig, own: Sequence[Callback] = ()) -> list[Callback]:
    """What watches a run: the user's own first, so that the others record what they add.

    The display is last, so that it shows what the others have done.
    """
    callbacks: list[Callback] = [*own, RecordMetrics()]
    if config.wandb.enabled:
        callbacks.append(Wandb())
    if config.evaluation.rate:
        callbacks.append(RateCheckpoints())
    return [*callbacks, LearningCurve(), make_display(config.display)]
