"""What leads to a function is remembered for the files that a hook names, and believed only while it is still so."""

from __future__ import annotations

import ast
import json
import random
from hashlib import blake2b
from pathlib import Path

import pytest

from graphmend_codemod.core.cache import Cache, cache_folder
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.engine import api
from graphmend_codemod.engine.api import CheckResult
from graphmend_codemod.engine.session import Checker
from graphmend_codemod.project.index.modules import PackageLayout
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.reach import Search
from graphmend_codemod.project.same_lead import given_names, leads_as_before
from graphmend_codemod.project.summary.scan import summarise

LOG = "import torch\nimport logging\nlogger = logging.getLogger(__name__)\n"
HELPER = f"{LOG}def say():\n    logger.warning('x')\ndef more():\n    logger.warning('y')\n"
MODEL = (
    "from torch import nn\nfrom helper import say\nclass Model(nn.Module):\n    def forward(self, x):\n        say()\n"
)


@pytest.fixture
def project(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path_factory.mktemp("caches")))
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "m.py").write_text(MODEL)
    return tmp_path


def check(root: Path, *names: str) -> CheckResult:
    files = [root / name for name in names or ("helper.py",)]
    result = api.check(files, Settings(root), cache=True)
    assert result == api.check(files, Settings(root), cache=False)
    return result


def places(result: CheckResult) -> list[tuple[str, int]]:
    return [(each.function, each.span.start_line) for each in result.findings]


def entries(root: Path) -> list[Path]:
    return sorted(Path(str(cache_folder())).glob(f"{root.name}-*/reach/*.json"))


def test_what_is_reached_is_remembered_for_files_that_cannot_tell_alone(project: Path) -> None:
    assert places(check(project)) == [("say", 5)]
    (before,) = [entry.stat().st_mtime_ns for entry in entries(project)]
    assert places(check(project)) == [("say", 5)]
    assert [entry.stat().st_mtime_ns for entry in entries(project)] == [before]


def test_a_function_that_moved_is_found_where_it_stands(project: Path) -> None:
    # A fix in a function of the top level asks other files what is written around its calls; one in a method does not.
    method = f"{LOG}class Teller:\n    def say(self):\n        logger.warning('x')\n"
    (project / "helper.py").write_text(method)
    (project / "m.py").write_text(
        MODEL.replace("import say", "import Teller").replace(
            "        say()", "        teller = Teller()\n        teller.say()"
        )
    )
    assert places(check(project)) == [("Teller.say", 6)]
    (project / "helper.py").write_text("# moved\n\n" + method)
    (before,) = [entry.stat().st_mtime_ns for entry in entries(project)]
    assert places(check(project)) == [("Teller.say", 8)]
    assert [entry.stat().st_mtime_ns for entry in entries(project)] == [before]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("m.py", MODEL.replace("say", "more"), [("more", 7)]),
        ("m.py", MODEL.replace("        say()\n", "        pass\n"), []),
        ("other.py", MODEL.replace("say", "more"), [("say", 5), ("more", 7)]),
        ("helper.py", HELPER.replace("'x')", "'x')\n    more()"), [("say", 5), ("more", 8)]),
        ("m.py", "def forward(:\n", []),
    ],
)
def test_a_change_of_what_leads_there_is_seen(
    project: Path, name: str, text: str, expected: list[tuple[str, int]]
) -> None:
    check(project)
    (project / name).write_text(text)
    assert places(check(project)) == expected
    (project / "helper.py").write_text(HELPER)
    (project / "m.py").write_text(MODEL)
    (project / "other.py").unlink(missing_ok=True)
    assert places(check(project)) == [("say", 5)]


def test_a_file_that_is_gone_is_missed(project: Path) -> None:
    check(project)
    (project / "m.py").unlink()
    assert places(check(project)) == []


@pytest.mark.parametrize("damage", ["", "{}", "[[], {}]", '[[["m.py", "1", "2"]], {"helper.py": [[99, null, ""]]}]'])
def test_a_broken_entry_is_written_anew(project: Path, damage: str) -> None:
    check(project)
    (entry,) = entries(project)
    header = entry.read_bytes().partition(b"\n")[0]
    entry.write_bytes(header + b"\n" + damage.encode())
    assert places(check(project)) == [("say", 5)]


def test_an_entry_that_names_functions_that_are_not_there_is_not_believed(project: Path) -> None:
    check(project)
    cache = Cache(project)
    (entry,) = entries(project)
    files, reached, *others = json.loads(entry.read_bytes().partition(b"\n")[2])
    reached["helper.py"] = [[99, None, "", False]]
    payload = json.dumps([files, reached, *others]).encode()
    version, key = entry.read_bytes().split(b" ")[1:3]
    check_sum = blake2b(payload, digest_size=8).hexdigest().encode()
    entry.write_bytes(b" ".join([b"graphmend", version, key, check_sum]) + b"\n" + payload)
    assert version.decode() == cache.version
    assert places(check(project)) == [("say", 5)]


def test_other_names_of_modules_are_another_question(project: Path) -> None:
    (project / "m.py").write_text("from keras import Base\n" + MODEL.replace("nn.Module", "Base"))
    settings = Settings(project, module_bases=("Base",))
    assert places(check(project)) == []
    assert places(api.check([project / "helper.py"], settings, cache=True)) == [("say", 5)]
    assert places(check(project)) == []


def test_fixing_a_file_needs_the_project_once(project: Path) -> None:
    result = api.fix([project / "helper.py"], Settings(project), write=True, cache=True)
    assert [change.path for change in result.fixes] == ["helper.py"]
    assert not api.check([project / "helper.py"], Settings(project), cache=True).findings


def test_any_sequence_of_changes_is_answered_as_without_memory(project: Path) -> None:
    chance = random.Random(7)
    helpers = [HELPER, "\n" + HELPER, HELPER.replace("'y')", "'y')\n    say()"), HELPER.replace("more", "say")]
    models = [MODEL, MODEL.replace("say", "more"), MODEL.replace("forward", "other"), MODEL + "        return x\n"]
    for _ in range(24):
        (project / "helper.py").write_text(chance.choice(helpers))
        (project / "m.py").write_text(chance.choice(models))
        check(project, *chance.choice([("helper.py",), ("m.py",), ("helper.py", "m.py")]))


@pytest.mark.parametrize(
    "text",
    [
        "@torch.compiler.disable\ndef f(x):\n    logger.warning('x')\n",
        "class Model(nn.Module):\n    def __init__(self, x):\n        logger.warning('x')\n",
    ],
)
def test_a_function_that_no_graph_can_hold_needs_no_look_at_the_project(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.py").write_text(f"import torch\nfrom torch import nn\n{LOG}{text}")
    assert Checker(Settings(tmp_path)).decides_alone(("m.py",))


GUARDED = "import torch\nfrom torch import nn\nclass Layer(nn.Module):\n    def forward(self, x):\n"
GUARD = "        if torch.isnan(x).any():\n            raise ValueError('nan')\n        return x + 1\n"
CALLER = "from torch import nn\nfrom layer import Layer\nclass Top(nn.Module):\n    def __init__(self):\n"
CALLER += "        super().__init__()\n        self.layer = Layer()\n    def forward(self, x):\n"
CALLER += "        return self.layer(x)\n"


@pytest.fixture
def guarded(project: Path) -> Path:
    (project / "layer.py").write_text(GUARDED + GUARD)
    (project / "top.py").write_text(CALLER)
    return project


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The searches through a project."""
    found: list[str] = []
    run = Search.run

    def counted(search: Search) -> None:
        run(search)
        found.append(type(search).__name__)

    monkeypatch.setattr(Search, "run", counted)
    return found


def fix(root: Path, *names: str) -> list[str]:
    """The codes of what was fixed with memory; without, it is the same."""
    files = [root / name for name in names or ("layer.py",)]
    without = api.fix(files, Settings(root), write=False, cache=False)
    result = api.fix(files, Settings(root), write=True, cache=True)
    assert result == without._replace(notes=result.notes)
    return [each.code for change in result.fixes for each in change.applied]


def test_the_second_pass_and_the_next_commit_search_nothing(guarded: Path, searches: list[str]) -> None:
    assert fix(guarded) == ["GM301"]
    searches.clear()
    once = api.fix([guarded / "layer.py"], Settings(guarded), write=False, cache=False)
    assert not once.fixes
    searches.clear()
    for edit in ("", "# a comment\n"):
        (guarded / "layer.py").write_text(edit + (guarded / "layer.py").read_text())
        assert not api.fix([guarded / "layer.py"], Settings(guarded), write=True, cache=True).fixes
        assert searches == []


def test_a_caller_that_catches_is_seen_by_the_next_run(guarded: Path) -> None:
    assert fix(guarded) == ["GM301"]
    caught = CALLER.replace("        return self.layer(x)\n", "        try:\n            return self.layer(x)\n")
    (guarded / "top.py").write_text(caught + "        except ValueError:\n            return x\n")
    (guarded / "layer.py").write_text(GUARDED + GUARD)
    assert fix(guarded) == []
    (guarded / "top.py").write_text(CALLER)
    assert fix(guarded) == ["GM301"]


def test_a_fix_that_leaves_what_leads_where_is_followed_by_another(guarded: Path, searches: list[str]) -> None:
    more = GUARD.replace("        return", "        if x.sum() > 0:\n            x = x * 2\n        return")
    (guarded / "layer.py").write_text(GUARDED + GUARD)
    assert fix(guarded) == ["GM301"]
    (guarded / "layer.py").write_text(GUARDED + more)
    searches.clear()
    api.fix([guarded / "layer.py"], Settings(guarded), write=True, cache=True)
    assert searches == []
    assert (guarded / "layer.py").read_text().count("is_compiling") == 2


def test_any_sequence_of_edits_is_fixed_as_without_memory(guarded: Path) -> None:
    chance = random.Random(11)
    twice = GUARD.replace("x + 1", "helped(x)") + "def helped(x):\n    return x\n"
    called = CALLER.replace("self.layer(x)", "tried(self.layer, x)") + (
        "def tried(f, x):\n    try:\n        return f(x)\n    except ValueError:\n        return x\n"
    )
    heir = CALLER + "class Part(Layer):\n    def forward(self, x):\n        return x\n"
    layers = [GUARD, "        x = x.relu()\n" + GUARD, twice, GUARD.replace("nan", "inf").replace("'inf'", "'x'")]
    for _ in range(20):
        (guarded / "layer.py").write_text(GUARDED + chance.choice(layers))
        (guarded / "top.py").write_text(chance.choice([CALLER, called, heir]))
        fix(guarded, *chance.choice([("layer.py",), ("layer.py", "top.py")]))


@pytest.mark.parametrize("cached", [True, False])
def test_one_checker_answers_for_each_text_as_a_new_one_does(guarded: Path, cached: bool) -> None:
    # As an editor asks: the text of each key pressed, of several files.
    chance = random.Random(5)
    caught = CALLER.replace("        return self.layer(x)\n", "        try:\n            return self.layer(x)\n")
    callers = [CALLER, caught + "        except ValueError:\n            return x\n", "# top\n" + CALLER]
    layers = [GUARDED + GUARD, "\n" + GUARDED + GUARD, GUARDED + GUARD.replace("x + 1", "self.more(x)")]
    settings, texts = Settings(guarded), dict[str, SourceFile]()
    checker = Checker(settings, cache=cached, remember=True)
    for _ in range(30):
        name, choices = chance.choice([("layer.py", layers), ("top.py", callers)])
        texts[name] = SourceFile.decoded(chance.choice(choices).encode(), name)
        checker.overlay(texts[name])
        other = Checker(settings)
        for each in texts.values():
            other.overlay(each)
        files = chance.choice([("layer.py",), ("layer.py", "top.py")])
        assert checker.check(files, named=True) == other.check(files, named=True)


BASE = "import torch\nfrom helper import say\nclass A:\n    def __init__(self):\n        self.part = say\n"
BODY = "    def run(self, x, other):\n        return self.part(x)\n"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (BASE + BODY.replace("return", "y = torch.where(x > 0, x, 0)\n        return"), True),
        (BASE + BODY.replace("return", "other.narrow(0, 1, 2)\n        return"), True),
        ("import torch.nn\n" + BASE + BODY, True),
        (BASE.replace("import torch\n", "import torch\n\n\n") + BODY, True),
        (BASE + BODY.replace("return", "say()\n        return"), False),
        (BASE + BODY.replace("return", "other.run()\n        return"), False),
        (BASE + BODY.replace("return", "self.run\n        return"), False),
        (BASE + BODY.replace("return", "other.part = 1\n        return"), False),
        (
            BASE
            + BODY.replace("return self.part(x)", "try:\n            self.part(x)\n        except E:\n            0"),
            False,
        ),
        (BASE.replace("self.part = say", "self.part = None") + BODY, False),
        (BASE.replace("class A", "class A(say)") + BODY, False),
        (BASE + BODY + "def more():\n    return 0\n", False),
        (BASE.replace("import say", "import more as say") + BODY, False),
    ],
)
def test_what_leads_elsewhere_is_told_from_what_does_not(tmp_path: Path, text: str, same: bool) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    states = [summarise(ast.parse(each), each).placed("a", "a.py", False) for each in (BASE + BODY, text)]
    layout = PackageLayout(tmp_path, ["a.py", "helper.py"])
    helper = summarise(ast.parse(HELPER), HELPER).placed("helper", "helper.py", False)
    index = ProjectIndex(layout, {"a.py": states[0], "helper.py": helper}.get)
    names = given_names([states[0], helper])
    assert leads_as_before(states[0], states[1], index, names) is same
