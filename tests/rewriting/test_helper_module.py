"""Helpers that stand once in a module of the project: what files import from there, how, and what stays in the file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from graphmend_codemod.core.findings import EditForm, Helper
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.rewriting import Applied, RewriteError, apply
from graphmend_codemod.rewriting.concrete import verify_concrete
from graphmend_codemod.rewriting.eager_view import same_in_eager_mode
from graphmend_codemod.rewriting.helper_module import HelperModule
from tests.rewriting.tools import block, edit, statement

FIRST = Helper("_first", "def _first(x):\n    return torch.neg(x)", shared=True)
SECOND = Helper("_second", "def _second(x):\n    return _first(x) + 1", after=("_first",), shared=True)
OWN = Helper("_own", "def _own(x):\n    return _second(x)", after=("_second",))


class Project:
    """A project with the package `pkg`, its module of helpers and a folder of scripts."""

    def __init__(self, root: Path, helpers: str = "", *, grows: bool = True) -> None:
        for name in ("pkg/__init__.py", "pkg/sub/__init__.py", "other/__init__.py", "pkg/_helpers.py"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        self.root = root
        source = SourceFile.from_bytes(helpers.encode(), root / "pkg/_helpers.py", root)
        self.module = HelperModule(source, root, grows)

    def source(self, text: str, path: str = "pkg/sub/model.py") -> SourceFile:
        return SourceFile.from_bytes(block(text).encode(), self.root / path, self.root)

    def applied(self, source: SourceFile, *helpers: Helper, form: EditForm = EditForm.ONE_PATH) -> Applied:
        wanted = edit(statement(source, "use"), "mend()", imports=("torch",), helpers=helpers, form=form)
        found = apply(source, [wanted], self.module)
        assert found.skipped == ()
        verify_concrete(source, source.with_text(found.text), [wanted])
        self.module = self.module.with_helpers(found.imported)
        return found

    def importing(self, statement: str, path: str = "pkg/sub/__init__.py") -> None:
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(f"{statement}\n")

    def after(self, text: str, *helpers: Helper, path: str = "pkg/sub/model.py") -> str:
        return self.applied(self.source(text, path), *helpers).text

    @property
    def held(self) -> list[str]:
        return list(self.module.definitions)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_files_import_helpers_and_the_module_gets_them_once(project: Project) -> None:
    text = "import torch\n\nfrom .a import b\n\n\nuse\n"
    assert project.after(text, FIRST, SECOND) == (
        "import torch\n\nfrom .._helpers import _first, _second\nfrom .a import b\n\n\nmend()\n"
    )
    once = project.module.source.text
    assert project.held == ["_first", "_second"]
    assert once.startswith('"""What `graphmend fix` uses in the files of this package')
    assert "import torch\n" in once
    project.after(text, FIRST, SECOND, path="pkg/sub/second.py")
    assert project.module.source.text == once


def test_the_modules_own_header_stays(tmp_path: Path) -> None:
    project = Project(tmp_path, "# License\n")
    project.importing("from . import model")
    project.after("import torch\nuse\n", FIRST)
    assert project.module.source.text.startswith('# License\n"""What')
    own = Project(tmp_path, '"""Ours."""\n\nimport torch\n\n\ndef kept():\n    pass\n')
    own.after("import torch\nuse\n", FIRST)
    assert own.module.source.text.startswith('"""Ours."""\n\nimport torch\n\n\ndef _first')
    assert own.held == ["_first", "kept"]


def test_what_one_place_alone_needs_stays_in_its_file(project: Project) -> None:
    after = project.after("import torch\n\nfrom . import a\n\n\nuse\n", FIRST, SECOND, OWN)
    assert after == (
        "import torch\n\nfrom .._helpers import _first, _second\nfrom . import a\n\n\n"
        "def _own(x):\n    return _second(x)\n\n\nmend()\n"
    )
    assert project.held == ["_first", "_second"]


@pytest.mark.parametrize(
    ("imports", "path", "line"),
    [
        ("from . import a", "pkg/model.py", "from . import a\nfrom ._helpers import _first\n"),
        ("from .a import b", "pkg/model.py", "from ._helpers import _first\nfrom .a import b"),
        ("from ..a import b\nfrom . import c", "pkg/sub/m.py", "from .._helpers import _first\nfrom ..a import b"),
        ("from .a import b\nfrom ..a import b", "pkg/sub/m.py", "from ..a import b\nfrom .._helpers import _first\n"),
        ("from pkg.a import b", "pkg/sub/m.py", "from pkg._helpers import _first\nfrom pkg.a import b\n"),
        ("from pkg.A import b", "pkg/sub/m.py", "from pkg._helpers import _first\nfrom pkg.A import b\n"),
        ("from pkg import a\nfrom zoo import b", "pkg/m.py", "\nfrom pkg._helpers import _first\nfrom zoo"),
        ("import pkg.a", "pkg/sub/m.py", "import pkg.a\n\nfrom pkg._helpers import _first\n"),
        ("from other import b", "pkg/sub/part.py", "from other import b\n\nfrom .._helpers import _first\n"),
        ("import os", "pkg/__init__.py", "import os\n\nimport torch\n\nfrom ._helpers import _first\n"),
        ("from . import a", "pkg/sub/__init__.py", "from .._helpers import _first\nfrom . import a"),
    ],
)
def test_the_import_is_spelled_and_sorted_as_the_files_own(
    project: Project, imports: str, path: str, line: str
) -> None:
    project.importing("from .part import Model")
    after = project.after(f"{imports}\n\n\nuse\n", FIRST, path=path)
    assert line in after
    assert "def _first" not in after


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("import torch\nuse\n", "other/model.py"),
        ("import torch\nuse\n", "scripts/run.py"),
        ("import torch\nuse\n", "run.py"),
        ("import torch\nuse\n", "pkg/notebook.ipynb"),
        ("if has_torch:\n    import torch\nuse\n", "pkg/model.py"),
        ("import torch\nuse\nif __name__ == '__main__':\n    main()\n", "pkg/model.py"),
    ],
)
def test_a_file_keeps_its_helpers_where_the_import_might_fail(project: Project, text: str, path: str) -> None:
    after = project.after(text, FIRST, path=path)
    assert "def _first" in after
    assert "_helpers" not in after
    assert project.held == []


@pytest.mark.parametrize(
    ("statement", "path"),
    [
        ("from .model import Model", "pkg/sub/__init__.py"),
        ("from . import model", "pkg/sub/__init__.py"),
        ("import pkg.sub.model", "pkg/sub/other.py"),
        ("def later():\n    from .sub.model import Model", "pkg/other.py"),
        ("from pkg.sub import (\n    model as m,\n)", "train.py"),
    ],
)
def test_a_file_without_imports_of_its_own_is_imported_as_part_of_its_package(
    project: Project, statement: str, path: str
) -> None:
    text = "import torch\nuse\n"
    assert "def _first" in project.after(text, FIRST)
    project.importing(statement, path)
    assert "from .._helpers import _first" in project.after(text, FIRST)
    project.importing("from model import Model", "pkg/sub/run.py")
    assert "def _first" in project.after(text, FIRST)


def test_a_file_that_only_has_a_like_name_says_nothing(project: Project) -> None:
    project.importing("from ..other.model import Model\nfrom .models import b")
    assert "def _first" in project.after("import torch\nuse\n", FIRST)


def test_a_script_that_imports_its_package_does_so_once_more(project: Project) -> None:
    text = "import torch\n\nfrom pkg.a import b\n\nuse\nif __name__ == '__main__':\n    main()\n"
    assert "from pkg._helpers import _first\n" in project.after(text, FIRST)


def test_more_names_join_an_import_that_is_there(project: Project) -> None:
    text = "import torch\n\nfrom .._helpers import _second\n\n\nuse\n"
    project.module = project.module.with_helpers([FIRST, SECOND])
    assert "from .._helpers import _first, _second\n" in project.after(text, FIRST, SECOND)
    third = Helper("_a_third_one_with_a_name_that_makes_the_line_too_long", "def {}(x):\n    return x", shared=True)
    third = third._replace(source=third.source.format(third.name))
    assert project.after(text, FIRST, SECOND, third).startswith(
        f"import torch\n\nfrom .._helpers import (\n    {third.name},\n    _first,\n    _second,\n)\n"
    )
    commented = "from .._helpers import (\n    _second,  # noqa\n)\nimport torch\nuse\n"
    assert "_second,  # noqa\n)\nfrom .._helpers import _first\n" in project.after(commented, FIRST, SECOND)


def test_a_definition_that_differs_gets_a_number(tmp_path: Path) -> None:
    project = Project(tmp_path, "import torch\n\n\ndef _first(x):\n    return x\n")
    after = project.after("import torch\nfrom . import a\nuse\n", FIRST, SECOND)
    assert "from .._helpers import _first_2, _second\n" in after
    assert "def _second(x):\n    return _first_2(x) + 1" in project.module.source.text
    older = "import torch\nfrom .._helpers import _first\nuse\n_first(1)\n"
    assert "from .._helpers import _first, _first_2\n" in project.after(older, FIRST)


@pytest.mark.parametrize(
    "source",
    [
        "def _first(x):\n    return th.neg(x)",
        "@th.no_grad()\ndef _first(x):\n    return x",
        "def _first(x: th.Tensor):\n    return x",
        "def _first(x):\n    def inner():\n        return logger\n    return inner",
    ],
)
def test_what_names_something_of_its_file_stays_there(project: Project, source: str) -> None:
    after = project.after("import torch\nimport torch as th\nfrom . import a\nuse\n", FIRST._replace(source=source))
    assert source.splitlines()[-1] in after
    assert project.held == []


def test_a_helper_stays_with_one_that_its_file_has(project: Project) -> None:
    text = f"import torch\nfrom . import a\n\n\n{FIRST.source}\n\n\nuse\n"
    assert "def _second" in project.after(text, FIRST, SECOND)
    assert project.held == []


def test_a_module_that_must_not_grow_gives_what_it_has(tmp_path: Path) -> None:
    project = Project(tmp_path, f"import torch\n\n\n{FIRST.source}\n", grows=False)
    after = project.after("import torch\nfrom . import a\nuse\n", FIRST, SECOND)
    assert "import _first\n" in after
    assert "def _second" in after
    assert project.held == ["_first"]


def test_a_module_with_another_torch_is_told() -> None:
    source = SourceFile.from_bytes(b"torch = None\n", Path("/project/pkg/_helpers.py"), Path("/project"))
    with pytest.raises(RewriteError, match=r"pkg/_helpers.py cannot hold its helpers: `torch` is bound"):
        HelperModule(source, Path("/project")).with_helpers([FIRST])


def test_eager_mode_may_see_imports_from_that_module_alone() -> None:
    before = ast.parse("from .x import a\nuse()\n")

    def same(after: str) -> bool:
        return same_in_eager_mode(before.body, ast.parse(after).body, before, ".x")

    assert same("from .x import _b, a\nuse()\n")
    assert same("from .x import a\nfrom .x import _b\nuse()\n")
    assert not same("from .x import a\nfrom .y import _b\nuse()\n")
    assert not same("from .x import a\nfrom ..x import _b\nuse()\n")
    assert not same("from .x import a\nfrom .x import _b as c\nuse()\n")
    assert not same("from .x import a\nfrom .x import use\nuse()\n")
    assert not same("from .x import _b\nuse()\n")


def test_the_concrete_proof_wants_the_old_import_in_the_new_one(project: Project) -> None:
    source = project.source("from .._helpers import _second\nuse\n")
    wanted = edit(statement(source, "use"), "mend()", helpers=(FIRST,))

    def proven(line: str) -> bool:
        try:
            verify_concrete(source, source.with_text(f"{line}\nmend()\n"), [wanted])
        except RewriteError:
            return False
        return True

    assert proven("from .._helpers import _first, _second")
    assert not proven("from .._helpers import _first")
    assert not proven("from .._helpers import _second, other")
    assert not proven("from ._helpers import _first, _second")
    assert not proven("from .._helpers import _first, _second as _third")
