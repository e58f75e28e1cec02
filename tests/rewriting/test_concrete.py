"""The proof over concrete trees accepts what edits write and sees what the abstract tree cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_codemod.core.findings import Edit, EditForm, Helper
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.engine import api
from graphmend_codemod.rewriting import RewriteError
from graphmend_codemod.rewriting.concrete import verify_concrete
from tests.rewriting.tools import block, edit, from_text, made, original, statement

BEFORE = block(
    """
    # Copyright
    import torch


    class Model(torch.nn.Module):
        def forward(self, x, *, scale=1):  # fast
            # before
            y = x  # kept
            if x.sum() > 0:  # data-dependent
                y = x * 'a'  # inside
                # at the end
            elif scale:
                y = 2
            else:
                y = 3

            # after
            return {
                "y": y,  # result
            }
        # last


    OTHER = [1,   2]
    """
)
SOURCE = from_text(BEFORE)
HELPER = Helper("_fast", "def _fast(x):\n    return x")
COMPILING = "if torch.compiler.is_compiling():\n    y = _fast(x)\nelse:\n    "


def beside() -> Edit:
    node = statement(SOURCE, "if x.sum() > 0:")
    return edit(node, COMPILING, original(node, 1), imports=["torch"], helpers=[HELPER], form=EditForm.BESIDE)


GOOD = made(SOURCE, beside())


def test_a_fix_that_keeps_everything_else_is_accepted() -> None:
    assert "def _fast" in GOOD
    verify_concrete(SOURCE, SOURCE.with_text(GOOD), [beside()])


@pytest.mark.parametrize("text", ["elif scale:", "y = x  # kept", "return {", "class Model", "y = 2"])
def test_any_statement_may_be_edited(text: str) -> None:
    node = statement(SOURCE, text.partition("  #")[0])
    wrapped = edit(node, "if torch.compiler.is_compiling():\n    pass\nelse:\n    ", original(node, 1))
    verify_concrete(SOURCE, SOURCE.with_text(made(SOURCE, wrapped)), [wrapped])


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("# Copyright\n", "", "near line 2"),
        ("    # before\n", "    # Before\n", "near line 8"),
        ("y = x  # kept", "y = x # kept", "near line 8"),
        ("scale=1", "scale = 1", "near line"),
        ("        # after\n", "", "`# after` would be lost"),
        ('"y": y', "'y': y", "near line 18"),
        ("    # last\n", "", "near line"),
        ("[1,   2]", "[1, 2]", "near line 24"),
        ("OTHER", "NEW = 0\nOTHER", "near line"),
        ("import torch\n", "import torch\nimport os\n", "near line"),
        ("  # inside", "", "`# inside` would be lost"),
        ("                # at the end\n", "", "`# at the end` would be lost"),
        ("y = x * 'a'", 'y = x * "a"', "`if x . sum ( ) ...` would be respelled"),
        ("y = 3\n", "y = 3.\n", "would be respelled"),
    ],
)
def test_what_changes_elsewhere_is_seen(old: str, new: str, because: str) -> None:
    wrong = GOOD.replace(old, new, 1)
    assert wrong != GOOD
    with pytest.raises(RewriteError, match=because.replace("(", r"\(").replace(")", r"\)").replace(".", r"\.")):
        verify_concrete(SOURCE, SOURCE.with_text(wrong), [beside()])


@pytest.mark.parametrize("number", range(3))
def test_one_of_several_equal_statements_may_be_edited(number: int) -> None:
    source = from_text("a = 1\n\na = 1\n\na = 1\n")
    wrapped = edit(source.parse().body[number], "if True:\n    ", original(source.parse().body[number], 1))
    verify_concrete(source, source.with_text(made(source, wrapped)), [wrapped])


def test_code_that_an_edit_may_replace_keeps_its_comments_alone() -> None:
    node = statement(SOURCE, "if x.sum() > 0:")
    replaced = edit(node, "y = 1")
    after = made(SOURCE, replaced)
    verify_concrete(SOURCE, SOURCE.with_text(after), [replaced])
    with pytest.raises(RewriteError, match="`# inside` would be lost"):
        verify_concrete(SOURCE, SOURCE.with_text(after.replace("        # inside\n", "")), [replaced])


def test_a_text_that_libcst_cannot_parse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    after = SOURCE.with_text(GOOD)
    monkeypatch.setattr(after, "parse", SOURCE.parse)  # what a newer Python would parse
    after.text = after.text.replace("y = _fast(x)", "y = = x")
    with pytest.raises(RewriteError, match="libcst cannot parse it, so the edit cannot be verified"):
        verify_concrete(SOURCE, after, [beside()])


MODEL = block(
    """
    import torch


    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if (x > 0).all():
                x = x * 2
            return x
    """
)


def test_a_file_whose_fix_fails_the_proof_is_left_alone_with_one_line(tmp_path: Path) -> None:
    for name in ("bad.py", "good.py"):
        (tmp_path / name).write_text(MODEL)

    def proof(before: SourceFile, after: SourceFile, edits: object) -> None:
        if before.path == "bad.py":
            raise RewriteError("the comment `# x` would be lost")

    done = api.fix([], Settings(tmp_path), write=True, cache=False, proof=proof)
    assert [change.path for change in done.fixes] == ["good.py"]
    assert (tmp_path / "bad.py").read_text() == MODEL
    assert [str(problem) for problem in done.problems] == [
        "bad.py: is skipped because its fix cannot be verified: the comment `# x` would be lost; please report it"
    ]


def test_the_commit_hook_does_not_import_libcst(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    script = (
        "import sys; from graphmend_codemod.cli.main import main\n"
        "code = main(['fix', '--no-cache', 'model.py']); assert code == 1, code\n"
        "assert not {'libcst', 'git', 'joblib', 'yaml'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "is_compiling" in (tmp_path / "model.py").read_text()


def test_two_edits_in_neighbouring_statements_in_front_of_an_insertion_are_told_apart(tmp_path: Path) -> None:
    """What the third edit inserts was taken for the second one's, which then lacked the author's words."""
    text = """
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("scale", torch.ones(4))
                self.short_scale = self.scale
                self.count = 0

            def build(self, factor):
                return torch.full((4,), factor, device=self.scale.device)

            def forward(self, x):
                with torch.enable_grad():
                    leaf = x.float().clone().requires_grad_()
                    slope = (leaf * leaf).sum()
                y = x + torch.autograd.grad(slope, leaf)[0]
                if torch.equal(h, x):
                    if not hasattr(self, "long_scale"):
                        self.long_scale = self.build(2.0)
                    self.register_buffer("scale", self.long_scale, persistent=False)
                else:
                    self.register_buffer("scale", self.short_scale, persistent=False)
        """
    result = api.fix_text(block(text).encode(), tmp_path / "subject.py", Settings(root=tmp_path), proof=verify_concrete)
    assert result.problems == ()
    assert {finding.code for change in result.fixes for finding in change.applied} == {"GM604", "GM105"}
