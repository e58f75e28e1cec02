"""A repository that keeps a recorded run: its pull request fixes what broke in it, and nothing else."""

from __future__ import annotations

from graphmend_codemod.trace import document
from tests.forge.tools import BRANCH, Hub
from tests.trace.samples import MODEL, traced

ELSEWHERE = (
    "\n\nclass Other(nn.Module):\n    def forward(self, x: torch.Tensor):\n        print('other')\n        return x\n"
)


def test_the_pull_request_fixes_only_what_broke_in_the_run_that_the_settings_name(hub: Hub) -> None:
    folder = hub.clone.folder
    hub.clone.write("model.py", MODEL)
    hub.clone.write("runs/trace.json", document.as_json(traced(folder)))
    hub.clone.write("model.py", MODEL + ELSEWHERE)
    hub.clone.write("pyproject.toml", '[tool.graphmend]\ntrace = "runs/trace.json"\n')
    hub.clone.commit()
    hub.push("main")
    ran = hub.pr()
    assert (ran.code, ran.err) == (0, ""), ran
    assert hub.server.git("octo/zoo", "diff", "--name-only", "main", BRANCH) == "model.py"
    fixed = hub.server.git("octo/zoo", "show", f"{BRANCH}:model.py")
    assert "return torch.where(" in fixed
    assert "        print('other')\n" in fixed
