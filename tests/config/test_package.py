"""The package has all its files: what an install from a wheel needs is what a clone has."""

from pathlib import Path

from setuptools.dist import Distribution

ROOT = Path(__file__).parents[2]


def in_the_wheel():
    """The files that setuptools puts into a wheel, from the folder of the package."""
    package = Distribution(
        {"script_name": "setup.py"}
    )  # of which there is none; a name is asked for
    package.parse_config_files()
    package.include_package_data = False  # else files are written, to be read again
    build = package.get_command_obj("build_py")
    build.ensure_finalized()
    modules = [file for _, _, file in build.find_all_modules()]
    data = [Path(folder, name) for _, folder, _, names in build.data_files for name in names]
    return {Path(file).as_posix() for file in [*modules, *data]}


def test_the_wheel_has_every_file_of_the_package(monkeypatch):
    monkeypatch.chdir(ROOT)
    files = (file for file in Path("keisei").rglob("*") if file.is_file())
    here = {file.as_posix() for file in files if "__pycache__" not in file.parts}
    packed = in_the_wheel()
    assert here - packed == set()
    for name in (
        "configs/night.yaml",
        "evaluation/openings.txt",
        "models/shogi.pt",
        "py.typed",
        "web/static/index.html",
    ):
        assert f"keisei/{name}" in packed
