"""What `cost.py` measures: examples of the rules' pages at realistic sizes, expert blocks, small models."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphmend_codemod.rules.framework.examples import Example, module_text
from graphmend_codemod.rules.framework.registry import all_rules

RULES, EXPERTS, TYPES = "rules", "experts", "types"
FORWARD, BACKWARD, IN_BLOCK = "forward", "forward and backward", ", in a block"


@dataclass(frozen=True)
class Phase:
    """Some calls of a case that are compiled, timed and forgotten before the next phase; `calls` are their numbers.

    `more` is left out of a quick run. `block` puts a feed-forward layer behind the model.
    """

    name: str
    gradients: bool
    calls: tuple[int, ...]
    more: bool = False
    block: bool = False


@dataclass(frozen=True)
class Case:
    """One model. `source` is its module's text (rules), `build` what the child makes it of, `files` what it runs.

    `files` are paths or folders relative to an arm, whose changes are this case's; `own_sizes` says that the inputs
    are those of the page.
    """

    group: str
    name: str
    phases: tuple[Phase, ...]
    build: Mapping[str, Any]
    files: tuple[str, ...] = ()
    source: str = ""
    own_sizes: bool = False

    @property
    def id(self) -> str:
        """`experts/mixtral`."""
        return f"{self.group}/{self.name}"


@dataclass(frozen=True)
class _Sizes:
    inputs: tuple[str, ...]
    replaced: tuple[tuple[str, str], ...] = ()
    make: str = "Model()"


_WIDE = (("(4, 4)", "(512, 512)"), ("LayerNorm(4)", "LayerNorm(512)"))
_ROWS = ("torch.randn(256, 512)",)
_MASKED = ("torch.randn(4, 128, 512), torch.ones(4, 128, dtype=torch.long)",)
_EXPERTS = (
    ("Linear(4, 3)", "Linear(1024, 8)"),
    ("Linear(4, 4)", "Linear(1024, 1024)"),
    ("range(3)", "range(8)"),
    ("num_classes=3", "num_classes=8"),
    ("(-1, 4)", "(-1, 1024)"),
)
_SIZES: Mapping[str, _Sizes] = {
    "GM101": _Sizes(_ROWS, _WIDE),
    "GM102": _Sizes(_ROWS),
    "GM103": _Sizes(("torch.randn(256, 512).half()",), _WIDE, "Model().half()"),
    "GM104": _Sizes(("torch.randn(256, 512), torch.zeros(256, 512, dtype=torch.bool)",), _WIDE),
    "GM105": _Sizes(
        ("torch.rand(256, 512)", "torch.rand(256, 512) * 5"),
        (("torch.ones(4)", "torch.ones(512)"), ("(4,)", "(512,)")),
    ),
    "GM108": _Sizes(("torch.randn(4, 128, 512), torch.ones(4, 512, dtype=torch.long)",)),
    "GM109": _Sizes(_MASKED, _WIDE),
    "GM110": _Sizes(_MASKED),
    "GM201": _Sizes(_ROWS, _WIDE),
    "GM202": _Sizes(_ROWS),
    "GM301": _Sizes(("torch.rand(256, 512)",)),
    "GM302": _Sizes(("torch.randn(1024, 256), [[16, 32], [16, 32]]",)),
    "GM401": _Sizes(("torch.randn(256, 512), torch.ones(2, dtype=torch.long)",)),
    "GM402": _Sizes(("[torch.ones(32, 48), torch.ones(64, 16)]",)),
    "GM404": _Sizes(("torch.randn(256, 512), torch.rand(256) > 0.5",)),
    "GM411": _Sizes(("torch.randn(256, 512), torch.zeros(2, dtype=torch.long), 4",)),
    "GM501": _Sizes(_ROWS),
    "GM502": _Sizes(("torch.randn(512, 1024)",), _EXPERTS),
    "GM504": _Sizes(("(torch.rand(4, 128) < 0.05).long()",)),
    "GM508": _Sizes(("torch.randn(16, 512), torch.randint(0, 512, (16,))",)),
    "GM509": _Sizes(_ROWS),
    "GM510": _Sizes(_ROWS),
    "GM511": _Sizes(("torch.randn(256, 2, 512)",)),
    "GM801": _Sizes(
        ("torch.randn(32, 64, 256)",), (("nn.LSTM(4, 5, batch_first=True)", "nn.LSTM(256, 256, batch_first=True)"),)
    ),
    "GM802": _Sizes(("torch.randn(256, 512), torch.arange(256)",)),
    "GM111": _Sizes(("torch.randn(64, 512)",), (("nn.Linear(4, 4)", "nn.Linear(512, 512)"),)),
    "GM112": _Sizes(("torch.randn(64, 512)",), (("nn.Linear(4, 4)", "nn.Linear(512, 512)"),)),
    "GM113": _Sizes(("torch.rand(8192)",)),
    "GM203": _Sizes(
        ("torch.randn(64, 512)",), (("nn.Linear(4, 4)", "nn.Linear(512, 512)"), ("torch.ones(4)", "torch.ones(512)"))
    ),
    "GM601": _Sizes(("torch.randn(64, 512)",)),
    "GM602": _Sizes(("torch.randn(64, 512)",)),
    "GM603": _Sizes(
        ("torch.ones(64, 512)",),
        (("torch.ones(8, 4)", "torch.ones(128, 512)"), ("nn.Linear(4, 4)", "nn.Linear(512, 512)")),
    ),
    "GM605": _Sizes(("torch.randn(1, 8, 128, 64)",)),
    "GM604": _Sizes(("torch.randn(256, 512)",), (("nn.Linear(3, 3)", "nn.Linear(512, 512)"),)),
}


@dataclass(frozen=True)
class _Block:
    """An expert block: `transformers.models.FOLDER`, its class and configuration."""

    folder: str
    block: str
    config: str
    values: Mapping[str, Any]
    nested: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


_BLOCKS: Mapping[str, _Block] = {
    "mixtral": _Block(
        "mixtral", "MixtralSparseMoeBlock", "MixtralConfig",
        {"hidden_size": 256, "intermediate_size": 512, "num_local_experts": 8, "num_experts_per_tok": 2},
    ),
    "qwen2_moe": _Block(
        "qwen2_moe", "Qwen2MoeSparseMoeBlock", "Qwen2MoeConfig",
        {"hidden_size": 256, "moe_intermediate_size": 256, "shared_expert_intermediate_size": 512,
         "num_experts": 16, "num_experts_per_tok": 4},
    ),
    "qwen3_moe": _Block(
        "qwen3_moe", "Qwen3MoeSparseMoeBlock", "Qwen3MoeConfig",
        {"hidden_size": 256, "moe_intermediate_size": 256, "num_experts": 32, "num_experts_per_tok": 4},
    ),
    "olmoe": _Block(
        "olmoe", "OlmoeSparseMoeBlock", "OlmoeConfig",
        {"hidden_size": 256, "intermediate_size": 256, "num_experts": 32, "num_experts_per_tok": 4},
    ),
    "deepseek_v3": _Block(
        "deepseek_v3", "DeepseekV3MoE", "DeepseekV3Config",
        {"hidden_size": 256, "moe_intermediate_size": 256, "n_routed_experts": 16, "n_group": 4, "topk_group": 2,
         "num_experts_per_tok": 4, "n_shared_experts": 1},
    ),
    "jamba": _Block(
        "jamba", "JambaSparseMoeBlock", "JambaConfig",
        {"hidden_size": 256, "intermediate_size": 512, "num_experts": 8, "num_experts_per_tok": 2},
    ),
    "dbrx": _Block(
        "dbrx", "DbrxFFN", "DbrxConfig", {"d_model": 256},
        {"ffn_config": {"ffn_hidden_size": 512, "moe_num_experts": 8, "moe_top_k": 2}},
    ),
}  # fmt: skip
TOKENS = (512, 8, 1)
_QUICK = ((FORWARD, 512), (FORWARD, 1), (BACKWARD, 512))
EXPERT_WIDTH = 256


def rule_cases(wanted: Collection[str] | None) -> Iterator[Case]:
    """The first example with inputs of each rule that edits, or of those that are `wanted`."""
    for rule in all_rules():
        if wanted is not None and rule.code not in wanted:
            continue
        example = next((each for each in rule.examples if isinstance(each, Example) and each.inputs), None)
        if example is None:
            continue
        sizes = _SIZES.get(rule.code)
        text = module_text(example.before, example.setup)
        for old, new in sizes.replaced if sizes is not None else ():
            text = text.replace(old, new)
        inputs = example.inputs if sizes is None else sizes.inputs
        calls = tuple(range(len(inputs)))
        phases = (
            Phase(FORWARD, False, calls),
            Phase(BACKWARD, True, calls),
            Phase(FORWARD + IN_BLOCK, False, calls, block=True),
        )
        build = {"kind": RULES, "inputs": inputs, "make": "Model()" if sizes is None else sizes.make}
        yield Case(RULES, rule.code, phases, build, ("case.py",), text, sizes is None)


def expert_cases(wanted: Collection[str] | None) -> Iterator[Case]:
    """Expert blocks of transformers, at prefill and decode."""
    phases = tuple(
        Phase(
            f"{tokens} token{'s' if tokens > 1 else ''}, {name}",
            name == BACKWARD,
            (number,),
            (name, tokens) not in _QUICK,
        )
        for name in (FORWARD, BACKWARD)
        for number, tokens in enumerate(TOKENS)
    )
    phases += tuple(
        replace(each, name=each.name + IN_BLOCK, block=True) for each in phases if each.name.endswith(f" {FORWARD}")
    )
    for name, block in _BLOCKS.items():
        if wanted is not None and name not in wanted:
            continue
        build = {
            "kind": EXPERTS,
            "package": f"transformers.models.{block.folder}",
            "block": block.block,
            "config": block.config,
            "values": dict(block.values),
            "nested": {key: dict(values) for key, values in block.nested.items()},
            "tokens": TOKENS,
            "width": EXPERT_WIDTH,
        }
        yield Case(EXPERTS, name, phases, build, (f"transformers/models/{block.folder}",))


def type_cases(wanted: Collection[str] | None, survey: Path) -> Iterator[Case]:
    """Small models of all types that the survey could build, as it built them."""
    for pair in json.loads(survey.read_text(encoding="utf-8"))["rows"]:
        row = pair["before"]
        if row["choice"] is None or (wanted is not None and row["type"] not in wanted):
            continue
        build = {"kind": TYPES, "class": row["model_class"], "choice": row["choice"]}
        phases = (Phase(FORWARD, False, tuple(range(len(row["choice"]["calls"])))),)
        yield Case(TYPES, row["type"], phases, build, (f"transformers/models/{row['type'].replace('-', '_')}",))


def differs_in_survey(survey: Path) -> frozenset[str]:
    """Types for which the survey counted other graphs or breaks after a migration than before."""
    rows = json.loads(survey.read_text(encoding="utf-8"))["rows"]
    return frozenset(
        pair["before"]["type"]
        for pair in rows
        if pair.get("after") and pair["before"]["counts"] != pair["after"]["counts"]
    )
