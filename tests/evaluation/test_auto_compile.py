"""`graphmend trace --compile auto`: which modules of a program are compiled that compiles none itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from graphmend_codemod.trace import document

CHECKOUT = Path(__file__).parent.parent.parent
PREDICT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Flip(nn.Module):
    def forward(self, x):
        return x.flip(0) if torch.rand(1) < 0.5 else x


class Parse(nn.Module):
    def __init__(self, then):
        super().__init__()
        self.then = [then]  # no part of this module

    def forward(self, text):
        print("parse")
        return self.then[0](torch.tensor([float(text)] * 4))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        print("net")
        return self.linear(x)


class Other(Net):
    def forward(self, x):
        print("other")
        return self.linear(x)


class Images(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, number):
        return Flip()(torch.full((4,), float(number)))


if __name__ == "__main__":
    net = Net()
    for batch in DataLoader(Images(), batch_size=2, num_workers=1):
        net(batch)
    Parse(Other())("3")
"""


def test_what_prepares_data_is_not_compiled(tmp_path: Path) -> None:
    (tmp_path / "predict.py").write_text(PREDICT)
    command = [sys.executable, "-m", "graphmend_codemod", "trace", "-q", "--compile", "auto", "predict.py"]
    environment = {"PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'evaluation'}", "PATH": "/usr/bin:/bin"}
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert run.returncode == 0, run.stderr
    found = document.read(tmp_path / "trace.json")
    # The model of the loop, and the one that `Parse` calls: neither `Parse`, nor what the loader's worker calls.
    assert {site.source.strip() for site in found.sites} == {'print("net")', 'print("other")'}
    assert len(found.processes) == 1
