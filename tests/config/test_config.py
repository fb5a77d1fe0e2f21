import pytest
import yaml

from keisei import configs
from keisei.config_schema import ELSEWHERE, AppConfig, ModelConfig, describe, load_config
from keisei.settings import ConfigError, setting_names, to_yaml
from keisei.worlds.config import load_world_config
from tests.processes import run_keisei
from tests.web.hostile import LAUGHS, MERGES


def test_defaults_survive_a_round_trip_through_yaml(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(to_yaml(AppConfig()))
    assert load_config(file) == AppConfig()


def test_the_description_of_all_settings_is_yaml_that_gives_the_defaults(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(describe())
    assert load_config(file) == AppConfig()


def test_every_setting_has_a_description():
    def check(model, path):
        for name, field in model.model_fields.items():
            assert field.description, f"{path}{name}"
            if hasattr(field.annotation, "model_fields"):
                check(field.annotation, f"{path}{name}.")

    check(AppConfig, "")


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("training.learning_rate=1e-4", 1e-4),
        ("training.learning_rate=0.5", 0.5),
        ("model.preset=full", "full"),
        ("model.width=32", 32),
        ("training.normalize_advantages=false", False),
        ("training.parallel.num_envs_per_worker=256", 256),
        ("env.start_positions=[startpos, 2_pieces]", ["startpos", "2_pieces"]),
    ],
)
def test_an_override_sets_the_field(override, value):
    config = load_config(overrides=[override])
    for key in override.partition("=")[0].split("."):
        config = getattr(config, key)
    assert config == value


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("training.learning_rate=-1", ["training.learning_rate", "greater than 0", "-1"]),
        ("training.learning_rate=fast", ["training.learning_rate", "number", "'fast'"]),
        ("model.preset=huge", ["model.preset", "'tiny', 'small' or 'full'", "'huge'"]),
        ("training.lerning_rate=1", ["training.lerning_rate: ", "mean training.learning_rate?"]),
        ("training.totl_timesteps=1", ["no such setting: did you mean training.total_timesteps?"]),
        ("training.rollout_length=1", ["did you mean training.parallel.rollout_length?"]),
        ("training.parallel.max_game_length=99", ["did you mean env.move_limit?"]),
        ("training.learnin_rate=1", ["did you mean training.learning_rate?"]),
        ("training.lr=1", ["did you mean training.learning_rate?"]),
        ("env.seed=100000000000000000000000", ["env.seed", "less than 9223372036854775808"]),
        ("training.parallel.rollout_length=10000000000000", ["rollout_length", "1000000"]),
        ("training.total_timesteps=1000000000000", ["total_timesteps", "less than 1000000000000"]),
        ("games=8", ["games: there is no such setting: did you mean evaluation.games?"]),
        ("trainin.gamma=1", ["trainin: there is no such setting: did you mean training?"]),
        ("qqq.www=1", ["qqq: there is no such setting (`keisei config` lists them all)"]),
        ("model=tiny", ["model is a section: set what is in it, as model.preset=", "'tiny'"]),
        ("training.parallel=true", ["is a section: set what is in it, as training.parallel.ena"]),
        ("env.device=tpu", ["env.device", "cuda:N", "'tpu'"]),
        ("env.start_positions=[nowhere]", ["env.start_positions", "nowhere"]),
        ("env.start_positions=[]", ["env.start_positions", "at least 1"]),
        ("training.minibatch_size=1000000", ["minibatch_size", "has only"]),
        ("training.parallel.worker_timeout=.inf", ["parallel.worker_timeout", "86400", "inf"]),
        ("training.parallel.worker_timeout=.nan", ["parallel.worker_timeout", "nan"]),
        ("training.parallel.opponent_shares={past: .nan}", ["opponent_shares", "at most 1", "nan"]),
        ("training.gamma", ["section.field=value"]),
        ("training.gamma.x=1", ["training.gamma"]),
        ("=3", ["section.field=value"]),
    ],
)
def test_a_bad_value_names_the_field_the_value_and_what_is_allowed_in_one_line(override, says):
    with pytest.raises(ConfigError) as error:
        load_config(overrides=[override])
    assert "\n" not in str(error.value)
    for part in says:
        assert part in str(error.value)


def test_what_other_programs_call_a_setting_is_none_of_ours_and_means_one():
    names = setting_names(AppConfig)
    assert set(ELSEWHERE.values()) <= set(names)
    assert not set(ELSEWHERE) & {name.rpartition(".")[2] for name in names}


# What the plan of the parallel part gives as examples.
@pytest.mark.parametrize(
    "settings",
    [
        "{enabled: true, num_workers: 4, episodes_per_worker: 1, model_sync_interval: 10}",
        "{enabled: true, num_workers: 8, episodes_per_worker: 2, model_sync_interval: 5, "
        "queue_maxsize: 200, use_shared_memory: true}",
        "{model_sync_interval: 100}",
    ],
)
def test_the_plans_own_examples_load_and_the_allowed_lag_follows_the_interval(tmp_path, settings):
    file = tmp_path / "settings.yaml"
    file.write_text(f"training: {{parallel: {settings}}}")
    parallel = load_config(file).training.parallel
    assert parallel.max_policy_lag == parallel.model_sync_interval + 3
    assert load_config(file, ["training.parallel.max_policy_lag=200"]).training.parallel
    with pytest.raises(ConfigError, match="leave that out, or set it to at least"):
        load_config(file, ["training.parallel.max_policy_lag=1"])


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("copys=3", "copys: there is no such setting: did you mean copies?"),
        (
            "learning_rate=1",
            "did you mean double_dqn.learning_rate or iqn.learning_rate or",
        ),
        ("num_agents=0", "num_agents: there is no such setting: did you mean world_settings.num_a"),
        ("qqq=1", "qqq: there is no such setting (`keisei worlds config` lists them all)"),
    ],
)
def test_a_setting_that_a_run_in_a_world_has_not_is_looked_for_in_the_world_too(override, says):
    with pytest.raises(ConfigError) as error:
        load_world_config("treasure_hunt", overrides=[override])
    assert says in str(error.value)


@pytest.mark.parametrize("text", ["[1, 2]", "training: [", "training: 5", "just text", "\x00"])
def test_a_file_that_is_no_config_is_refused_in_one_line(tmp_path, text):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_config(file)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nothing\.yaml"):
        load_config(tmp_path / "nothing.yaml")


def test_assignment_is_checked_too():
    config = AppConfig()
    with pytest.raises(ValueError, match="gamma"):
        config.training.gamma = 2


def test_the_settings_that_come_with_keisei_are_known_by_name_from_short_to_long():
    assert sorted(configs.NAMES) == sorted(file.stem for file in configs.FOLDER.glob("*.yaml"))
    moves = [load_config(name).training.total_timesteps for name in configs.NAMES]
    assert moves == sorted(moves)
    assert load_config("quick", ["env.seed=7"]).env.seed == 7


def test_a_name_that_nobody_knows_is_an_error_that_names_those_there_are():
    with pytest.raises(ConfigError) as error:
        load_config("nigth")
    assert str(error.value) == (
        "unknown settings 'nigth': choose one of quick, hour, night, or name a YAML file"
    )


@pytest.mark.parametrize("name", ["mine", "mine.yaml", "./quick", "folder/quick"])
def test_a_file_of_the_users_own_is_taken_as_it_is(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("training: {total_timesteps: 77}")
    assert load_config(name).training.total_timesteps == 77


def test_settings_of_an_old_run_have_old_names_and_what_is_given_later_counts(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("training: {value_loss_coeff: 0.7}")
    assert load_config(file).training.value_loss_coef == 0.7
    assert load_config(file, ["training.value_loss_coef=0.8"]).training.value_loss_coef == 0.8
    file.write_text("training: {value_loss_coef: 0.7}")
    assert load_config(file, ["training.value_loss_coeff=0.8"]).training.value_loss_coef == 0.8
    world = load_world_config("tag", overrides=["ppo.value_loss_coeff=0.9"])
    assert world.ppo.value_loss_coef == 0.9


def test_a_bad_value_on_the_command_line_is_one_line_and_exit_code_2(tmp_path):
    result = run_keisei("train", "-o", "training.gamma=7", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "training.gamma" in result.stderr
    assert "7" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_keisei_config_prints_the_defaults_with_their_descriptions():
    result = run_keisei("config")
    assert result.returncode == 0
    assert yaml.safe_load(result.stdout) == AppConfig().model_dump(mode="json")
    assert "# Discount per move." in result.stdout


@pytest.mark.parametrize("text", [LAUGHS + "z: *i", MERGES + "z: *i", "&a [*a]", "[" * 5000])
def test_settings_that_stand_for_billions_of_values_are_refused_at_once(tmp_path, text):
    (tmp_path / "laughs.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"is not YAML: (its aliases|it is too deep)"):
        load_config(tmp_path / "laughs.yaml")


def test_an_ordinary_alias_in_settings_means_what_it_stands_for(tmp_path):
    (tmp_path / "a.yaml").write_text("env: {seed: &n 7}\ntraining: {total_timesteps: *n}\n")
    assert load_config(tmp_path / "a.yaml").training.total_timesteps == 7


def test_a_run_from_before_there_was_a_choice_of_planes_keeps_its_own():
    complete = ModelConfig().model_dump()
    assert ModelConfig.model_validate(complete).planes == "attack60"
    del complete["planes"]
    assert ModelConfig.model_validate(complete).planes == "core46"
    assert ModelConfig.model_validate({"preset": "small"}).planes == "attack60"
