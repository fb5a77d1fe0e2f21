# ruff: noqa: E501  # code and names of tests as they are
"""Faults that tests should notice: `make mutants` puts them into a copy of the code, one by one.

A fault is a piece of code that occurs once in its file, what stands there instead, and the tests
that should fail then. `SURVIVES` names those that none notices, and why that is so.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    name: str
    file: str  # below keisei/
    old: str
    new: str
    tests: str  # paths below tests/, of which one must fail


GAE, BUFFER, PPO = "core/gae.py", "core/experience_buffer.py", "core/ppo_agent.py"
SHARD, PLAN, RULES = "selfplay/shard.py", "selfplay/plan.py", "shogi/rules.py"
COLLECTOR, SERIAL = (
    "training/parallel/experience_collector.py",
    "training/parallel/serial_manager.py",
)
SYNC, SUPERVISOR = "training/parallel/model_sync.py", "training/parallel/supervisor.py"
CHECKPOINT, FILES, LOOP = "runs/checkpoint.py", "files.py", "training/training_loop_manager.py"
TREE, NODE, SEARCH = "search/tree.py", "search/node.py", "search/search.py"
RECORDS, VECTOR, MOVING = "shogi/records.py", "shogi/vector_shogi.py", "shogi/moving.py"
METRICS, RUN, PROGRESS = "runs/metrics.py", "runs/run.py", "training/progress.py"
MEMORY, STACK, DQN, WORLD_PPO = (
    "worlds/memory.py",
    "worlds/stack.py",
    "worlds/double_dqn.py",
    "worlds/ppo.py",
)
ENVIRONMENT, LEARNING = "worlds/environment.py", "worlds/learning.py"

FAULTS = [
    # -- what was once not noticed --------------------------------------------------------------
    Fault(
        "advantages leak over the seam between two workers",
        BUFFER,
        "zero_sum_gae(r.rewards, r.values, r.dones, r.last_values,",
        "zero_sum_gae(r.rewards, r.values, r.dones, self.rollouts[-1].last_values,",
        "core/test_experience.py",
    ),
    Fault(
        "last values are those of another game of the shard",
        SHARD,
        ".values\n        rollout.version = version",
        ".values[::-1]\n        rollout.version = version",
        "core/test_experience.py",
    ),
    Fault(
        "an opponent never plays its own policy",
        SHARD,
        "        if not len(games):\n            return log_probs\n",
        "        if games is not None:\n            return log_probs\n",
        "parallel/test_opponents.py::test_the_opponents_moves_are_drawn_from_its_own_policy",
    ),
    Fault(
        "checkpoints are due by the remainder of the step",
        LOOP,
        "self.trainer.progress.steps - last >= interval",
        "self.trainer.progress.steps % interval == 0",
        "training/test_training_run.py::test_what_is_due_by_an_interval_does_not_depend_on_where_updates_end",
    ),
    Fault(
        "a file is not synced before it is renamed",
        FILES,
        "            os.fsync(file.fileno())\n",
        "",
        "config/test_files.py::test_the_data_is_synced_before_the_rename_and_the_folder_after_it training/test_checkpoint.py::test_a_checkpoint_and_its_name_in_the_folder_are_synced",
    ),
    Fault(
        "the folder is not synced after the rename",
        FILES,
        "        _sync_folder(path.parent)\n",
        "",
        "config/test_files.py::test_the_data_is_synced_before_the_rename_and_the_folder_after_it training/test_checkpoint.py::test_a_checkpoint_and_its_name_in_the_folder_are_synced",
    ),
    Fault(
        "a checkpoint is written in place",
        CHECKPOINT,
        "        replace_file(path, data)\n",
        "        path.write_bytes(data)\n",
        "training/test_checkpoint.py::test_a_checkpoint_and_its_name_in_the_folder_are_synced",
    ),
    Fault(
        "the entropy bonus has the wrong sign",
        PPO,
        "value_loss - entropy_coef * entropy",
        "value_loss + entropy_coef * entropy",
        "core/test_ppo_agent.py::test_the_entropy_bonus_keeps_the_policy_open",
    ),
    Fault(
        "a rollout is lost when some are taken",
        COLLECTOR,
        "        del self.waiting[:count]\n",
        "        del self.waiting[: count + 1]\n",
        "training/test_collector.py",
    ),
    Fault(
        "a thread trains the weights that act",
        LEARNING,
        "arguments = (clone(state), batches, self._answer)",
        "arguments = (state, batches, self._answer)",
        "worlds/test_independence.py",
    ),
    Fault(
        "rewards are swapped between agents",
        ENVIRONMENT,
        "self.agents, states, actions, rewards, dones, truncated, strict=True",
        "self.agents, states, actions, rewards[::-1], dones, truncated, strict=True",
        "worlds/test_independence.py",
    ),
    # -- core ----------------------------------------------------------------------------------
    Fault(
        "the sign does not turn in the bootstrapped value",
        GAE,
        "delta = rewards[t] - goes_on * next_values",
        "delta = rewards[t] + goes_on * next_values",
        "core/test_gae.py",
    ),
    Fault(
        "the sign does not turn in the trace",
        GAE,
        "trace = delta - goes_on",
        "trace = delta + goes_on",
        "core/test_gae.py",
    ),
    Fault(
        "advantages cross the end of a game",
        GAE,
        "np.where(dones[t], np.float32(0), np.float32(gamma))",
        "np.float32(gamma)",
        "core/test_gae.py",
    ),
    Fault(
        "a game that is cut does not bootstrap",
        GAE,
        "next_values, trace = last_values,",
        "next_values, trace = np.zeros_like(last_values),",
        "core/test_gae.py",
    ),
    Fault(
        "a return is the advantage alone",
        GAE,
        "return advantages, advantages + values",
        "return advantages, advantages",
        "core/test_gae.py",
    ),
    Fault(
        "an opponent's moves are learned from",
        BUFFER,
        "        if not learned.all():",
        "        if learned is None:",
        "parallel/test_opponents.py::test_the_learners_log_probs_are_its_own_and_what_the_opponent_does_counts_for_them",
    ),
    Fault(
        "legal actions of the second rollout begin where those of the first do",
        "shogi/positions.py",
        "part.offsets[:-1] + end for",
        "part.offsets[:-1] for",
        "core/test_experience.py",
    ),
    Fault(
        "a step is drawn twice and another never",
        BUFFER,
        "order = rng.permutation(len(self))",
        "order = rng.integers(0, len(self), len(self))",
        "core/test_experience.py",
    ),
    Fault(
        "an empty buffer is false",
        BUFFER,
        '# `if buffer:` must not mean "if it is not empty": that once cost a project its data.\n        return True',
        "return len(self) > 0",
        "core/test_experience.py",
    ),
    Fault(
        "the policy moves away from what was good",
        PPO,
        "policy_loss = -(weights * torch.min(",
        "policy_loss = (weights * torch.min(",
        "training/test_reference.py",
    ),
    Fault(
        "the ratio is not clipped",
        PPO,
        "clipped = ratio.clamp(1 - settings.clip_epsilon, 1 + settings.clip_epsilon)",
        "clipped = ratio",
        "core/test_ppo_agent.py::test_a_policy_that_has_moved_far_enough_is_not_pushed_further",
    ),
    Fault(
        "the value is not clipped",
        PPO,
        "error = torch.max(error, (held - returns).square())",
        "error = error",
        "core/test_ppo_agent.py::test_a_value_that_has_moved_too_far_is_charged_for_what_it_was_allowed",
    ),
    Fault(
        "gradients that are no numbers are taken",
        "core/learner.py",
        "        if not torch.isfinite(norm):",
        "        if norm is None:",
        "core/test_ppo_agent.py::test_a_diverged_network_is_named_and_not_saved_over",
    ),
    Fault(
        "the version does not grow",
        "core/learner.py",
        "        self.version += 1\n",
        "",
        "core/test_ppo_agent.py::test_an_update_changes_the_weights_and_the_version_and_reports_finite_numbers",
    ),
    Fault(
        "the optimiser is not part of the state",
        "core/learner.py",
        '        self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))',
        '        copy.deepcopy(state["optimizer"])',
        "core/test_ppo_agent.py::test_learning_goes_on_exactly_from_a_saved_state",
    ),
    # -- training ------------------------------------------------------------------------------
    Fault(
        "material gained is charged",
        SHARD,
        "gain = -material(self.games.observations) - had",
        "gain = material(self.games.observations) + had",
        "training/test_reference.py",
    ),
    Fault(
        "the last move of a game is rewarded for the next game's material",
        SHARD,
        "        gain[result.dones] = 0\n",
        "",
        "training/test_reference.py",
    ),
    Fault(
        "a game at the move limit counts for who has less",
        SHARD,
        "np.clip(had[end.game] / self.adjudicate, -1, 1)",
        "np.clip(-had[end.game] / self.adjudicate, -1, 1)",
        "core/test_experience.py::test_a_game_at_the_move_limit_counts_for_who_has_more_material",
    ),
    Fault(
        "steps drawn by surprise are not weighed",
        "core/experience_buffer.py",
        "(1 / (len(order) * chances[picks]))",
        "np.ones(len(picks))",
        "core/test_experience.py::test_a_share_of_the_steps_is_drawn_by_surprise_and_stands_for_all_of_them",
    ),
    Fault(
        "the learner keeps its side against an opponent",
        SHARD,
        "            self.sides[end.game] ^= 1\n",
        "",
        "parallel/test_opponents.py::test_the_learner_changes_sides_after_each_game",
    ),
    Fault(
        "all shards play the same games",
        SHARD,
        "first_stream=index * parallel.num_envs_per_worker",
        "first_stream=0",
        "training/test_reference.py",
    ),
    Fault(
        "new games are the old ones again",
        SHARD,
        "first_stream + (incarnation << 40)",
        "first_stream",
        "parallel/test_failures.py::test_games_in_which_a_worker_crashes_twice_are_given_up_and_never_come_back",
    ),
    Fault(
        "who is quicker plays more",
        PLAN,
        "if have[shard] < share or must_end_games:",
        "if True:",
        "training/test_plan.py",
    ),
    Fault(
        "an update does not wait for what is being played",
        PLAN,
        "return not self.to_begin(playing, tally) and not tally.in_work.total()",
        "return not self.to_begin(playing, tally)",
        "training/test_plan.py",
    ),
    Fault(
        "games that crash are never given up",
        PLAN,
        "return blames_games and self._in_a_row[shard] >= MAX_SAME_GAMES",
        "return False",
        "training/test_plan.py",
    ),
    Fault(
        "a rollout that was finished does not excuse a failure before it",
        PLAN,
        "        self._in_a_row[shard] = 0\n",
        "        self._in_a_row[shard] += 0\n",
        "training/test_plan.py",
    ),
    Fault(
        "what a stop cut short counts as done",
        LOOP,
        "                self.trainer.load_state_dict(self._boundary)\n                self._save()",
        "                self._save()",
        "training/test_training_run.py::test_a_stop_in_the_middle_of_an_update_saves_the_state_from_before_it",
    ),
    Fault(
        "the random state is not resumed",
        "core/learner.py",
        '        self.rng.bit_generator.state = state["rng"]\n',
        "",
        "core/test_ppo_agent.py::test_learning_goes_on_exactly_from_a_saved_state",
    ),
    Fault(
        "the goal of a run is the old one after a resume",
        PROGRESS,
        '& state.keys() - {"total_timesteps"}:',
        "& state.keys():",
        "training/test_resuming.py::test_a_longer_goal_is_the_goal",
    ),
    # -- parallel ------------------------------------------------------------------------------
    Fault(
        "rollouts that are too old are learned from",
        COLLECTOR,
        "version - one.rollout.version > self._max_lag",
        "version - one.rollout.version > self._max_lag + 1",
        "training/test_collector.py",
    ),
    Fault(
        "rollouts come in the order of who was quicker",
        COLLECTOR,
        "taken = sorted(self.waiting[:count], key=lambda one: (one.number, one.worker))",
        "taken = self.waiting[:count]",
        "training/test_collector.py",
    ),
    Fault(
        "the slots of the learner are free while it learns",
        COLLECTOR,
        "        self._held += [one.slot for one in taken if one.slot is not None]\n",
        "        self.free += [one.slot for one in taken if one.slot is not None]\n",
        "parallel/test_parallel_manager.py::test_statistics_tell_what_every_worker_does_and_where_the_rollouts_are",
    ),
    Fault(
        "a torn copy of the weights is taken",
        SYNC,
        'return unchanged and _checksum(self._private) == int(self._shared["checksum"][current])',
        "return True",
        "parallel/test_model_sync.py::test_weights_that_never_become_whole_are_an_error parallel/test_model_sync.py::test_readers_see_whole_versions_only_while_the_learner_writes_without_pause",
    ),
    Fault(
        "weights are written into the copy that is being read",
        SYNC,
        'spare = 1 - int(shared["current"][0])',
        'spare = int(shared["current"][0])',
        "parallel/test_model_sync.py::test_a_new_version_leaves_the_one_before_it_whole_for_those_who_are_reading_it",
    ),
    Fault(
        "the replacement of a worker begins new games",
        SUPERVISOR,
        "            self.shards.get(line.index) or None,\n",
        "            None,\n",
        "parallel/test_failures.py::test_killed_workers_are_replaced_and_the_rollouts_are_the_same_as_without",
    ),
    Fault(
        "games are to blame when somebody kills their worker",
        SUPERVISOR,
        "why, by_itself = describe_exit(code), not was_killed(code)",
        "why, by_itself = describe_exit(code), True",
        "parallel/test_failures.py::test_games_go_on_however_often_their_worker_is_killed_while_it_plays_them",
    ),
    Fault(
        "a worker that hangs is waited for",
        SUPERVISOR,
        "if silence <= self.parallel.worker_timeout:",
        "if silence <= 9999:",
        "parallel/test_failures.py::test_a_worker_that_hangs_is_replaced_after_its_timeout",
    ),
    Fault(
        "shards in one process go on with nothing",
        SERIAL,
        "shard = make_shard(self.config, index, self._shards.get(index))",
        "shard = make_shard(self.config, index)",
        "training/test_training_run.py::test_an_error_loses_no_update_that_was_done",
    ),
    # -- worlds --------------------------------------------------------------------------------
    Fault(
        "what follows the end of an episode counts for it",
        DQN,
        "self.settings.gamma * steps.goes_on * future",
        "self.settings.gamma * future",
        "worlds/test_algorithms.py",
    ),
    Fault(
        "the target network never moves",
        DQN,
        '            state[f"target.{name}"].lerp_(state[name], step)',
        "            pass",
        "worlds/test_algorithms.py",
    ),
    Fault(
        "the network that chooses also judges",
        DQN,
        'last(state, steps.slow, "target.")',
        "last(state, steps.after)",
        "worlds/test_algorithms.py",
    ),
    Fault(
        "PPO of worlds goes away from what was good",
        WORLD_PPO,
        "policy = -torch.minimum(",
        "policy = torch.minimum(",
        "worlds/test_algorithms.py",
    ),
    Fault(
        "PPO of worlds learns from a return without its value",
        WORLD_PPO,
        '"return": advantages + data["value"]',
        '"return": advantages',
        "worlds/test_algorithms.py",
    ),
    Fault(
        "a memory forgets nothing of what an episode's end means",
        WORLD_PPO,
        "goes_on = np.where(dones[turn], np.float32(0), np.float32(gamma))",
        "goes_on = np.float32(gamma)",
        "worlds/test_algorithms.py",
    ),
    Fault(
        "the newest turn is drawn with the oldest after it",
        MEMORY,
        "rows = np.arange(self.idx - self.size, self.idx - 1)",
        "rows = np.arange(self.idx - self.size, self.idx)",
        "worlds/test_memory.py",
    ),
    Fault(
        "the next state is the same state",
        MEMORY,
        'self.arrays["state"][(turn + 1) % self.capacity, copy]',
        'self.arrays["state"][turn, copy]',
        "worlds/test_memory.py",
    ),
    Fault(
        "what time cuts off counts as an end",
        ENVIRONMENT,
        "                agent.cut_memory(state, cut)",
        "                pass",
        "worlds/test_ends.py",
    ),
    Fault(
        "gradients are clipped for all agents together",
        STACK,
        "norms = torch.stack([grad.flatten(1).norm(dim=1) for grad in grads]).norm(dim=0)",
        "norms = torch.stack([grad.flatten(1).norm(dim=1) for grad in grads]).norm(dim=0).max().expand(len(loss))",
        "worlds/test_independence.py",
    ),
    Fault(
        "steps that are no numbers are taken",
        STACK,
        "        if finite.all():",
        "        if True:",
        "worlds/test_algorithms.py",
    ),
    # -- search --------------------------------------------------------------------------------
    Fault(
        "a value keeps its sign on the way up",
        TREE,
        "        value = -value\n",
        "",
        "search/test_search.py",
    ),
    Fault(
        "visits under way do not count as lost",
        NODE,
        "        child.total -= 1.0\n",
        "        child.total -= 0.0\n",
        "search/test_search.py",
    ),
    Fault(
        "a position is lost as soon as one move is refuted",
        NODE,
        "if not self.open_moves and self.mate is None:",
        "if self.mate is None:",
        "search/test_search.py",
    ),
    Fault(
        "the slowest mate is played",
        NODE,
        "return (2, child.mate, 0.0) if child.mate <= 0",
        "return (2, -child.mate, 0.0) if child.mate <= 0",
        "search/test_node.py",
    ),
    Fault(
        "moves are tried in the order of their worth alone",
        NODE,
        "self.q + self.u * (exploration * self.visits**0.5)",
        "self.q + self.u * 0",
        "search/test_node.py",
    ),
    Fault(
        "a visit that was cancelled counts",
        TREE,
        "    path[0][0].visits -= 1\n",
        "",
        "search/test_node.py",
    ),
    # -- checkpoint ----------------------------------------------------------------------------
    Fault(
        "a checkpoint's bytes are not checked",
        CHECKPOINT,
        "if digest.hexdigest().encode() != seal[2]:",
        "if False:",
        "training/test_checkpoint.py::test_every_flipped_bit_is_noticed",
    ),
    Fault(
        "a checkpoint may bring code",
        CHECKPOINT,
        'map_location="cpu", weights_only=True)',
        'map_location="cpu", weights_only=False)',
        "training/test_checkpoint.py::test_code_in_a_file_is_refused_and_never_run_even_under_a_right_seal",
    ),
    Fault(
        "old checkpoints go before the new one is there",
        CHECKPOINT,
        "        self._remove_leftovers()\n        try:",
        "        self._remove_leftovers()\n        [old.unlink() for old in self.paths()]\n        try:",
        "training/test_checkpoint.py::test_a_file_that_may_not_grow_is_reported_and_the_last_good_checkpoint_stays",
    ),
    Fault(
        "the newest checkpoints go and the oldest stay",
        CHECKPOINT,
        "for old in self.paths()[: -self.keep]:",
        "for old in self.paths()[self.keep :]:",
        "training/test_checkpoint.py::test_only_the_newest_are_kept",
    ),
    Fault(
        "a damaged checkpoint ends the search for a good one",
        CHECKPOINT,
        "                problems.append(str(error))\n                continue",
        "                raise",
        "training/test_checkpoint.py::test_latest_passes_by_damaged_checkpoints_and_names_them",
    ),
    Fault(
        "metrics of a lost update stand there twice",
        METRICS,
        'self._db.execute("DELETE FROM metrics WHERE step > ?", (step,))',
        "pass",
        "training/test_run_and_metrics.py::test_truncating_removes_what_is_later_than_the_step_and_keeps_events",
    ),
    Fault(
        "two processes train one run",
        RUN,
        "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        "training/test_run_and_metrics.py::test_a_process_cannot_lock_a_run_twice_but_again",
    ),
    # -- records and rules -----------------------------------------------------------------------
    Fault(
        "an illegal move is written down",
        RECORDS,
        "            if move not in board.legal_moves():",
        "            if move is None:",
        "shogi/test_records.py",
    ),
    Fault(
        "the winner that a record states is the other one",
        RECORDS,
        '"black" if result.is_black_win() else "white" if',
        '"white" if result.is_black_win() else "black" if',
        "shogi/test_records.py",
    ),
    Fault(
        "a second game in a file is left out",
        RECORDS,
        '    if second is not None:\n        raise RecordError(f"{path}, line',
        '    if second == -1:\n        raise RecordError(f"{path}, line',
        "shogi/test_records.py",
    ),
    Fault(
        "variations are read as the game",
        RECORDS,
        "for line in lines[:variation]]  # & bookmarks",
        "for line in lines]  # & bookmarks",
        "shogi/test_records.py::test_an_illegal_move_in_a_variation_does_not_matter",
    ),
    Fault(
        "who has no legal move wins",
        RULES,
        'return Outcome(other, "checkmate" if',
        'return Outcome(mover, "checkmate" if',
        "shogi/test_rules.py",
    ),
    Fault(
        "perpetual check wins",
        RULES,
        "    if repetition == RepetitionState.WIN:\n        return Outcome(mover,",
        "    if repetition == RepetitionState.WIN:\n        return Outcome(other,",
        "shogi/test_rules.py",
    ),
    Fault(
        "a mate on the last allowed move is a draw",
        RULES,
        "    if not can_move:\n        return Outcome(other,",
        '    if at_limit:\n        return Outcome(None, "move limit")\n    if not can_move:\n        return Outcome(other,',
        "shogi/test_rules.py",
    ),
    Fault(
        "27 points are enough for Black",
        RULES,
        "(points >= 28 - white)",
        "(points >= 27)",
        "shogi/test_rules.py",
    ),
    Fault(
        "a king in check may declare",
        RULES,
        "& (few[:, IN_CHECK] == 0) ",
        "",
        "shogi/test_rules.py",
    ),
    Fault(
        "nine pieces in the camp are enough",
        RULES,
        "(own.sum(1) > 10)",
        "(own.sum(1) > 9)",
        "shogi/test_rules.py",
    ),
    Fault(
        "a captured piece stays promoted",
        MOVING,
        "24 + _piece if _piece < 7 else 16 + _piece",
        "16 + _piece",
        "shogi/test_vector_shogi.py::test_hundreds_of_random_games_equal_single_games_after_every_move",
    ),
    Fault(
        "the mover's reward is the winner's",
        VECTOR,
        "rewards[end.game] = 1 if end.outcome.winner == end.last_mover else -1",
        "rewards[end.game] = 1",
        "shogi/test_vector_shogi.py::test_a_declaration_of_the_other_side_costs_the_mover_the_game",
    ),
    Fault(
        "a game depends on those beside it",
        "random_streams.py",
        "self.state[stream : stream + 1] += _GOLDEN",
        "self.state += _GOLDEN",
        "shogi/test_vector_shogi.py::test_a_game_is_the_same_whatever_runs_beside_it shogi/test_vector_shogi.py::test_games_start_drawn_by_their_own_streams",
    ),
]

# By name: why no test can notice it, or none should.
SURVIVES: dict[str, str] = {}
