"""What a look at a function leaves behind, and what rules have to ask for before they may rely on it."""

from __future__ import annotations

import gc
import re
import weakref
from pathlib import Path
from textwrap import dedent

import pytest

from graphmend_codemod import rules
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.engine import api, judge
from graphmend_codemod.engine.function_trees import parse_function
from graphmend_codemod.project.loading import without_cyclic_collector
from graphmend_codemod.project.summary.records import FunctionSummary

MODEL = """
    import torch
    from torch import nn
    class Model(nn.Module):
        def forward(self, x):
            def inner(y):
                return y
            if x.sum() > 0:
                x = x + 1
            for each in x:
                print(each)
            return inner(x)
    """
FACTS_OF_A_VALUE = re.compile(r"\.(?:fresh|roots|leaked)\b(?!\()")


def test_a_tree_is_gone_when_its_function_was_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees: list[weakref.ref[object]] = []
    alive: list[int] = []

    def parse(source: SourceFile, function: FunctionSummary) -> object:
        alive.append(sum(tree() is not None for tree in trees))
        found = parse_function(source, function)
        trees.append(weakref.ref(found))
        return found

    monkeypatch.setattr(judge, "parse_function", parse)
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text(dedent(MODEL))
    gc.collect()
    with without_cyclic_collector():
        result = api.check([], Settings(tmp_path), cache=False)
    assert {each.path for each in result.findings} == {"a.py", "b.py", "c.py"}
    assert len(trees) == 3
    assert max(alive) <= 1
    assert not any(tree() is not None for tree in trees)


def test_rules_ask_the_site_for_what_only_a_second_dataflow_knows() -> None:
    folder = Path(rules.__file__).parent
    told = {path.name for path in folder.rglob("*.py") if FACTS_OF_A_VALUE.search(path.read_text())}
    assert told == {"site.py"}
