"""`graphmend init`: settings and the hook's entry, added to what is there."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from graphmend_codemod.cli.main import main
from graphmend_codemod.core.settings import load_settings
from tests.tools.fixes import MOVED_LOOP

Captured = pytest.CaptureFixture[str]
HOOKS = ".pre-commit-config.yaml"


@pytest.fixture
def repository(project: Path) -> Path:
    """The project without settings, as the top of a repository that asks for torch 2.3."""
    (project / ".git").mkdir()
    (project / "pyproject.toml").write_text('[project]\nname = "p"\ndependencies = ["torch>=2.3"]')
    return project


def test_settings_and_the_hook_are_written_after_a_look(repository: Path, capsys: Captured) -> None:
    before = (repository / "pyproject.toml").read_text()
    assert main(["init"]) == 0
    assert "2 break sites in 2 Python files, 1 fixable" in capsys.readouterr().out
    assert (repository / "pyproject.toml").read_text().startswith(f"{before}\n\n[tool.graphmend]\n")
    assert load_settings(repository).target_torch == (2, 3)
    (entry,) = yaml.safe_load((repository / HOOKS).read_text())["repos"]
    assert entry["hooks"][0]["entry"] == "graphmend fix --exit-non-zero-on-fix"


def test_requirements_that_admit_an_old_torch_are_named_with_what_they_cost(repository: Path, capsys: Captured) -> None:
    """A loop that moves into a function would break the graph once more with a torch that calls no operator there."""
    text = (repository / "pyproject.toml").read_text().replace("2.3", "1.6")
    (repository / "pyproject.toml").write_text(text)
    (repository / "loop.py").write_text(MOVED_LOOP)
    assert main(["init", "--no-hook"]) == 0
    said = capsys.readouterr().out
    assert "1 fixable" in said
    assert "The requirements admit torch 1.6; 1 more may be fixable for a newer one: if you run one, " in said
    assert 'write target-torch = "2.4".' in said
    assert main(["fix", "--no-cache"]) == 1  # what is left has reasons
    assert "1 more may be fixable with --target-torch 2.4." in capsys.readouterr().out


def test_a_second_time_nothing_is_written(repository: Path, capsys: Captured) -> None:
    main(["init"])
    first = [(repository / name).read_bytes() for name in ("pyproject.toml", HOOKS)]
    capsys.readouterr()
    assert main(["init"]) == 0
    assert "has [tool.graphmend] already" in capsys.readouterr().out
    assert [(repository / name).read_bytes() for name in ("pyproject.toml", HOOKS)] == first


@pytest.mark.parametrize(
    "hooks",
    [
        "repos:\n- repo: https://example.org/black\n  rev: v1\n  hooks:\n  - id: black\n",
        "ci: {}\nrepos:\n    - repo: https://example.org/black\n      rev: v1\n      hooks: [{id: black}]",
        "repos:\r\n  - repo: https://example.org/black\r\n    rev: v1\r\n    hooks: [{id: black}]\r\n",
    ],
)
def test_the_hook_joins_those_that_are_there(repository: Path, hooks: str) -> None:
    (repository / HOOKS).write_bytes(hooks.encode())
    assert main(["init"]) == 0
    after = (repository / HOOKS).read_bytes().decode()
    assert after.startswith(hooks)
    assert ("\r\n" in hooks) == ("system\r\n" in after)
    read = yaml.safe_load(after)["repos"]
    assert [one["hooks"][0]["id"] for one in read] == ["black", "graphmend"]


def test_hooks_that_end_with_something_else_are_left_to_the_user(repository: Path, capsys: Captured) -> None:
    text = "repos:\n- repo: local\n  hooks: []\nfail_fast: true\n"
    (repository / HOOKS).write_text(text)
    assert main(["init"]) == 0
    assert "add the hook yourself:\n    - repo: local" in capsys.readouterr().out
    assert (repository / HOOKS).read_text() == text


def test_a_dry_run_writes_nothing(repository: Path, capsys: Captured) -> None:
    before = (repository / "pyproject.toml").read_bytes()
    assert main(["init", "--dry-run"]) == 0
    assert "would write [tool.graphmend] with torch 2.3 as the lowest one\n    [tool.graphmend]\n" in (
        capsys.readouterr().out
    )
    assert (repository / "pyproject.toml").read_bytes() == before
    assert not (repository / HOOKS).exists()


def test_operators_are_counted_and_their_torch_is_named(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "model.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.lstm = nn.LSTM(4, 4)\n\n"
        "    def forward(self, x: torch.Tensor):\n        return self.lstm(x)[0] * 2\n"
    )
    assert main(["init", "--no-hook", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "1 break site in 1 Python file, 0 fixable, 1 with opaque operators." in said
    assert "Next: `graphmend fix --opaque --diff` shows the operators" in said
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\ndependencies = ["torch>=2.6"]')
    assert main(["init", "--no-hook", str(tmp_path)]) == 0
    assert "1 with opaque operators." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        (("zoo/__init__.py",), "zoo"),
        (("src/zoo/__init__.py", "tests/__init__.py"), "src/zoo"),
        (("tests/__init__.py",), "mypackage"),
        ((), "mypackage"),
    ],
)
def test_the_example_for_shared_functions_names_the_own_package(
    tmp_path: Path, files: tuple[str, ...], folder: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert main(["init", "--no-hook", str(tmp_path)]) == 0
    assert f'# helpers = "{folder}/_compile.py"  #' in (tmp_path / "pyproject.toml").read_text()
