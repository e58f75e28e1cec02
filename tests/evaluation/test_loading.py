"""A model is measured in the mode in which its factory returned it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from torch import nn

from graphmend_evaluation.loading import load_factory

FACTORIES = """
    import torch
    from torch import nn


    def training():
        return nn.Dropout(), (torch.ones(1, 2),)


    def partly():
        model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2))
        model[1].eval()
        return model, (torch.ones(1, 2),)


    def told_to_train():
        return nn.Dropout().eval(), (torch.ones(1, 2),), {"train": True}


    def told_not_to():
        return nn.Dropout(), (torch.ones(1, 2),), {"train": False}
"""


@pytest.mark.parametrize(
    ("factory", "modes"),
    [
        ("training", [True]),
        ("partly", [True, True, False]),
        ("told_to_train", [True]),
        ("told_not_to", [False]),
    ],
)
def test_the_mode_is_the_factorys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factory: str, modes: list[bool]
) -> None:
    package = f"modes_of_{factory}"
    (tmp_path / f"{package}.py").write_text(textwrap.dedent(FACTORIES))
    monkeypatch.syspath_prepend(tmp_path)
    found = load_factory(tmp_path, f"{package}:{factory}").make().module
    assert isinstance(found, nn.Module)
    assert [part.training for part in found.modules()] == modes
