"""Settings: where they come from, what they mean, and how mistakes in them are told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.settings import Settings, load_settings, matches_glob, selects

KNOWN = ("GM101", "GM102", "GM201", "GM301")


def pyproject(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


def mistake(tmp_path: Path, text: str) -> str:
    pyproject(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path, known_codes=lambda: KNOWN)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "pyproject.toml") in str(caught.value)
    return str(caught.value)


def test_every_key_is_read(tmp_path: Path) -> None:
    pyproject(
        tmp_path,
        """
        [tool.graphmend]
        select = ["GM1", "GM301"]
        ignore = ["GM102"]
        exclude = ["vendored/*"]
        include = ["third_party/ours"]
        unsafe-fixes = true
        module-bases = ["mylib.Base"]
        log-calls = "guard"
        guards = "skip"
        target-torch = "2.10.1"
        models = ["zoo.small:make"]
        [tool.graphmend.per-file-ignores]
        "tests/*" = ["GM2"]
        """,
    )
    assert load_settings(tmp_path, known_codes=lambda: KNOWN) == Settings(
        root=tmp_path,
        select=("GM1", "GM301"),
        ignore=("GM102",),
        per_file_ignores=(("tests/*", ("GM2",)),),
        exclude=("vendored/*",),
        include=("third_party/ours",),
        unsafe_fixes=True,
        module_bases=("mylib.Base",),
        log_calls="guard",
        guards="skip",
        target_torch=(2, 10),
        models=("zoo.small:make",),
    )


def test_nearest_file_with_a_table_wins_over_a_nearer_one_without(tmp_path: Path) -> None:
    pyproject(tmp_path, "[tool.graphmend]\nlog-calls = 'guard'\n")
    pyproject(tmp_path / "package", "[project]\nname = 'p'\ndescription = 'uses graphmend'\n")
    settings = load_settings(tmp_path / "package" / "model.py")
    assert (settings.root, settings.log_calls) == (tmp_path, "guard")


def test_without_a_table_the_root_is_the_nearest_pyproject_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    pyproject(tmp_path / "package", "[project]\nname = 'p'\n")
    assert load_settings(tmp_path / "package" / "src").root == tmp_path / "package"
    assert load_settings(tmp_path / "other").root == tmp_path


def test_a_pyproject_above_the_repository_is_not_its_root(tmp_path: Path) -> None:
    pyproject(tmp_path, "[project]\nname = 'stray'\n")
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    assert load_settings(tmp_path / "repository" / "a.py").root == tmp_path / "repository"


def test_a_worktree_whose_git_is_a_file_is_a_root(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text("gitdir: elsewhere\n")
    assert load_settings(tmp_path / "tree").root == tmp_path / "tree"


def test_without_pyproject_and_git_the_root_is_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert load_settings(tmp_path / "here" / "there" / "a.py").root == tmp_path / "here"


def test_given_config_rules_but_the_root_stays_the_project(tmp_path: Path) -> None:
    config = pyproject(tmp_path / "shared", "[tool.graphmend]\nguards = 'advice'\n")
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    pyproject(tmp_path / "repository", "[tool.graphmend]\nguards = 'skip'\n[project]\ndependencies = ['torch>=2.3']\n")
    settings = load_settings(tmp_path / "repository", config=config)
    assert (settings.root, settings.guards) == (tmp_path / "repository", "advice")
    assert settings.target_torch == (2, 3)


def test_given_config_without_a_table_is_an_error(tmp_path: Path) -> None:
    config = pyproject(tmp_path, "[tool.other]\n")
    with pytest.raises(SettingsError, match=r"pyproject\.toml: has no \[tool\.graphmend\] table"):
        load_settings(tmp_path, config=config)


def test_given_config_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone\.toml: cannot be read: No such file"):
        load_settings(tmp_path, config=tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[tool.graphmend]\nunsafe_fixes = true", "no setting `unsafe_fixes` (did you mean `unsafe-fixes`?)"),
        ("[tool.graphmend]\nzzz = 1", "no setting `zzz`; see"),
        ("[tool.graphmend]\nselect = 'GM1'", 'select must be a list of strings, not "GM1"'),
        ("[tool.graphmend]\nselect = ['GM1', 7]", "select must be a list of strings, not a list with the number 7"),
        ("[tool.graphmend]\nselect = ['E501']", "select: `E501` is not a rule code"),
        ("[tool.graphmend]\nignore = ['GM103']", "ignore: unknown rule code `GM103` (did you mean `GM10"),
        ("[tool.graphmend]\nper-file-ignores = ['GM1']", "per-file-ignores must be a table"),
        ("[tool.graphmend]\nper-file-ignores = {'a.py' = 'GM1'}", 'per-file-ignores."a.py" must be a list of strings'),
        ("[tool.graphmend]\nper-file-ignores = {'a.py' = ['GM9']}", "per-file-ignores: unknown rule code `GM9`"),
        ("[tool.graphmend]\nunsafe-fixes = 'yes'", 'unsafe-fixes must be true or false, not "yes"'),
        ("[tool.graphmend]\nlog-calls = 'never'", 'log-calls must be one of "guard", "warnings", "once", not "never"'),
        ("[tool.graphmend]\nguards = true", 'guards must be one of "assert", "skip", "advice", not true'),
        ("[tool.graphmend]\ntarget-torch = 2.10", 'target-torch must be a string such as "2.4", not the number 2.1'),
        ("[tool.graphmend]\ntarget-torch = '>=2.1'", 'target-torch must be a string such as "2.4", not ">=2.1"'),
        ("[tool.graphmend]\nmodels = ['zoo.make']", 'models: `zoo.make` must look like "package.module:factory"'),
        ("[tool.graphmend]\nmodule-bases = ['my base']", "module-bases: `my base` must look like"),
        ("[tool.graphmend]\nexclude = 2020-01-01", "exclude must be a list of strings, not a date or time"),
        ("[tool]\ngraphmend = 3", "tool.graphmend must be a table, not the number 3"),
        ("[tool.graphmend\nselect = 1", "is not valid TOML: "),
    ],
)
def test_a_mistake_is_told_in_one_line_with_the_way_out(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in mistake(tmp_path, text)


def test_bytes_that_are_not_utf8_are_told(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"[tool.graphmend]\n# \xff\n")
    with pytest.raises(SettingsError, match="is not valid TOML"):
        load_settings(tmp_path)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a user whom file modes stop")
def test_an_unreadable_file_is_told(tmp_path: Path) -> None:
    pyproject(tmp_path, "[tool.graphmend]\n").chmod(0)
    with pytest.raises(SettingsError, match="cannot be read: Permission denied"):
        load_settings(tmp_path)


def test_a_broken_pyproject_that_mentions_neither_us_nor_torch_is_not_our_business(tmp_path: Path) -> None:
    pyproject(tmp_path, "[project\n")
    assert load_settings(tmp_path) == Settings(root=tmp_path)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": "[project]\ndependencies = ['numpy', 'torch>=2.1,<2.7']"}, (2, 1)),
        ({"pyproject.toml": "[project]\ndependencies = ['torch']"}, None),
        ({"pyproject.toml": "[project]\ndependencies = ['torch<3']"}, None),
        ({"pyproject.toml": "[project]\ndependencies = ['torch[opt] ~= 2.5.1 ; python_version > \"3.8\"']"}, (2, 5)),
        ({"pyproject.toml": "[project]\ndependencies = ['torch==2.0.1+cu118']"}, (2, 0)),
        ({"pyproject.toml": "[project]\ndependencies = ['torch>=2.1,!=2.1.*,!=2.2.*']"}, (2, 3)),
        ({"pyproject.toml": "[project]\ndependencies = ['torch>=1.8,>=2.2']"}, (2, 2)),
        ({"pyproject.toml": "[project]\ndependencies = ['torchvision>=0.15', 'torch-geometric>=2.4']"}, None),
        ({"pyproject.toml": "[project.optional-dependencies]\ngpu = ['torch>2.3']"}, (2, 3)),
        ({"pyproject.toml": "[dependency-groups]\ndev = [{include-group = 'x'}, 'torch==2.6.*']"}, (2, 6)),
        ({"pyproject.toml": "[tool.poetry.dependencies]\ntorch = '^2.2'"}, (2, 2)),
        ({"pyproject.toml": "[tool.poetry.dependencies]\ntorch = [{version = '2.4.0'}, {version = '2.3'}]"}, (2, 3)),
        ({"pyproject.toml": "[tool.poetry.group.dev.dependencies]\ntorch = {version = '~2.7'}"}, (2, 7)),
        ({"requirements.txt": "numpy\ntorch==2.4.0  # pinned\n"}, (2, 4)),
        ({"requirements.txt": "torch @ file:///wheels/torch-2.4.whl\n"}, None),
        ({"requirements-dev.txt": "torch>=2.5", "requirements.txt": "torch>=2.2"}, (2, 2)),
        ({"requirements/base.txt": "torch>=2"}, (2, 0)),
        ({"setup.cfg": "[options]\ninstall_requires =\n    numpy\n    torch>=1.13\n"}, (1, 13)),
        ({"setup.cfg": "[options]\ninstall_requires = torch>=1.13\n"}, (1, 13)),
        ({"setup.py": "from setuptools import setup\nsetup(install_requires=['torch>=2.1'])\n"}, (2, 1)),
        ({"setup.py": "_deps = [\n  'tqdm',\n  'torch>=2.1,<2.8',\n]\n"}, (2, 1)),
        ({"setup.py": "setup(install_requires='''\nnumpy\ntorch>=1.9\n''')\n"}, (1, 9)),
        ({"setup.py": "setup(extras_require={'gpu': 'torch>=2.4'})\n"}, (2, 4)),
        ({"setup.py": "print 'torch>=2.4'\n"}, None),
        ({"setup.py": "'''torch>=2.4'''\n"}, None),
        ({"environment.yaml": "channels:\n  - pytorch\ndependencies:\n  - pytorch=1.11.0=py3_cuda\n"}, (1, 11)),
        ({"environment.yml": "dependencies:\n  - pip:\n    - torch==2.0.1\n    - torchvision==0.15\n"}, (2, 0)),
        ({"environment.yml": "- conda-forge::pytorch-gpu>=1.12\n", "requirements.txt": "torch>=2.2"}, (2, 2)),
        ({"environment.yml": "dependencies:\n  - pytorch\n  - pytorch-lightning=1.2\n"}, None),
        ({}, None),
    ],
)
def test_target_torch_is_the_lowest_that_the_project_admits(
    tmp_path: Path, files: dict[str, str], expected: tuple[int, int] | None
) -> None:
    for name, text in {"pyproject.toml": "", **files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert load_settings(tmp_path).target_torch == expected


def test_given_target_torch_wins_over_dependencies(tmp_path: Path) -> None:
    pyproject(tmp_path, "[project]\ndependencies = ['torch>=2.1']\n[tool.graphmend]\ntarget-torch = '2.6'\n")
    assert load_settings(tmp_path).target_torch == (2, 6)


def test_setup_py_is_read_and_never_run(tmp_path: Path) -> None:
    pyproject(tmp_path, "")
    (tmp_path / "setup.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndeps = ['torch>=2.2']\n")
    assert load_settings(tmp_path).target_torch == (2, 2)
    assert not (tmp_path / "ran").exists()


def test_known_codes_are_asked_for_only_when_the_table_names_codes(tmp_path: Path) -> None:
    def never() -> tuple[str, ...]:
        raise AssertionError

    pyproject(tmp_path, "[tool.graphmend]\nselect = ['GM']\nlog-calls = 'once'\n")
    assert load_settings(tmp_path, known_codes=never).select == ("GM",)


def test_a_project_without_toml_of_ours_costs_no_toml_parser(tmp_path: Path) -> None:
    pyproject(tmp_path, "[project]\nname = 'p'\n")
    code = (
        "import sys, pathlib, graphmend_codemod.core.settings as s; s.load_settings(pathlib.Path(sys.argv[1]));"
        "print({'tomllib', 'tomli', 'libcst', 'joblib', 'git', 'json'} & set(sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert output.stdout == "set()\n"


@pytest.mark.parametrize(
    ("select", "ignore", "code", "expected"),
    [
        (("GM",), (), "GM101", True),
        (("GM2",), (), "GM101", False),
        (("GM",), ("GM1",), "GM101", False),
        (("GM101",), ("GM1",), "GM101", True),
        (("GM1",), ("GM101",), "GM101", False),
        (("GM1",), ("GM1",), "GM101", False),
        ((), (), "GM101", False),
    ],
)
def test_the_longer_prefix_wins(select: tuple[str, ...], ignore: tuple[str, ...], code: str, expected: bool) -> None:
    assert selects(Settings(root=Path(), select=select, ignore=ignore), code, "a.py") is expected


def test_per_file_ignores_hold_for_their_files_alone() -> None:
    settings = Settings(root=Path(), per_file_ignores=(("tests/*", ("GM2",)),))
    assert not selects(settings, "GM201", "tests/deep/test_model.py")
    assert selects(settings, "GM101", "tests/deep/test_model.py")
    assert selects(settings, "GM201", "src/model.py")


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("src/a.py", "a.py", True),
        ("src/a.py", "src", True),
        ("src/a.py", "src/", True),
        ("src/a.py", "./src/a.py", True),
        ("src/a.py", "src/*.py", True),
        ("src/deep/a.py", "src/*.py", True),
        ("src/deep/a.py", "src/deep", True),
        ("src/deep/a.py", "deep/a.py", False),
        ("a.py", "**/a.py", True),
        ("x/y/a.py", "**/a.py", True),
        ("src/ab.py", "a.py", False),
    ],
)
def test_globs_match_paths_names_and_folders(path: str, pattern: str, expected: bool) -> None:
    assert matches_glob(path, pattern) is expected


def test_a_folder_outside_of_any_project_is_its_own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    (project / "below").mkdir(parents=True)
    outside.mkdir()
    monkeypatch.chdir(project)
    assert load_settings(outside).root == outside
    assert load_settings(outside / "missing" / "model.py").root == outside
    assert load_settings(project / "below").root == project
