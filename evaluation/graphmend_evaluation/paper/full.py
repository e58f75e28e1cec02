"""The table's models at their real size: breaks before and after, then times at two batch sizes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from graphmend_evaluation.isolation import Policy, evaluate_model
from graphmend_evaluation.paper.hub import FOLDER_VARIABLE, Hub, HubError
from graphmend_evaluation.paper.rows import UnknownRow, published
from graphmend_evaluation.results import ModelRow
from graphmend_evaluation.speed.measuring import measure_speed
from graphmend_evaluation.speed.options import SpeedOptions
from graphmend_evaluation.speed.results import SpeedRow
from graphmend_evaluation.speed.turns import Turns

FULL_SCHEMA = 1
SIZES = ("one", "many")
_MODULE = "graphmend_evaluation.paper.real_sizes"
# By published name: the attribute of `real_sizes`, and where pretrained weights are.
MODELS = {
    "t5-small": ("t5_small", "google-t5/t5-small"),
    "t5-base": ("t5_base", "google-t5/t5-base"),
    "t5-3b": ("t5_3b", "google-t5/t5-3b"),
    "flan-t5-large": ("flan_t5_large", "google/flan-t5-large"),
    "inclusively-reformulation-it5": ("inclusively_reformulation_it5", "E-MIMIC/inclusively-reformulation-it5"),
    "whisper-large-v3": ("whisper_large_v3", "openai/whisper-large-v3"),
    "whisper-small": ("whisper_small", "openai/whisper-small"),
    "whisper-base": ("whisper_base", "openai/whisper-base"),
    "bart-large-cnn": ("bart_large_cnn", "facebook/bart-large-cnn"),
    "bart-base": ("bart_base", "facebook/bart-base"),
    "rebel-large": ("rebel_large", "Babelscape/rebel-large"),
    "opus-mt-fr-en": ("opus_mt_fr_en", "Helsinki-NLP/opus-mt-fr-en"),
    "biogpt": ("biogpt", "microsoft/biogpt"),
    "blenderbot-400M-distill": ("blenderbot_400m_distill", "facebook/blenderbot-400M-distill"),
    "PegasusForCausalLM": ("pegasus", "google/pegasus-large"),
    "layoutlmv3-base": ("layoutlmv3_base", "microsoft/layoutlmv3-base"),
    "Phi-4-mini-instruct": ("phi_4_mini_instruct", "microsoft/Phi-4-mini-instruct"),
    "grounding-dino-tiny": ("grounding_dino_tiny", "IDEA-Research/grounding-dino-tiny"),
    "grounding-dino-base": ("grounding_dino_base", "IDEA-Research/grounding-dino-base"),
    "longformer-base-4096": ("longformer_base_4096", "allenai/longformer-base-4096"),
    "clap-htsat-fused": ("clap_htsat_fused", "laion/clap-htsat-fused"),
}


class FullError(Exception):
    """A run at real size that cannot be made. The text is one line: what, cause, way out."""


@dataclass(frozen=True)
class FullRow:
    """One model of the published table. `weights` is `random` or the commit they come from.

    `row` is of batch 1 on the processor, None where only times were asked for; `one` and `many` are times at batch 1
    and the large one.
    """

    model: str
    weights: str
    row: ModelRow | None
    one: SpeedRow | None
    many: SpeedRow | None

    @property
    def ok(self) -> bool:
        """True when all that was asked for was measured and nothing but breaks has changed."""
        return (self.row is None or self.row.ok) and all(speed is None or speed.ok for speed in (self.one, self.many))

    @property
    def trouble(self) -> str:
        """What could not be measured or has changed, in one line."""
        problems = [] if self.row is None else list(self.row.problems)
        return "; ".join([*problems, *(each.message for each in (self.one, self.many) if each and not each.ok)])


def choose(names: str | None) -> tuple[str, ...]:
    """Published names, comma-separated, in the order of the table; all of them for None.

    Raises `UnknownRow` for a name that is none of theirs.
    """
    if names is None:
        return tuple(MODELS)
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in MODELS]
    if unknown or not wanted:
        raise UnknownRow(f"no model {', '.join(unknown) or 'given'}; there are {', '.join(MODELS)}")
    return tuple(name for name in published() if name in wanted)


def usable_device(asked: str) -> str:
    """`cuda` or `cpu`.

    Raises `FullError` for a machine without a GPU whose user has not said that its processor will do.
    """
    if asked == "cpu":
        return asked
    command = [sys.executable, "-c", "import torch; raise SystemExit(0 if torch.cuda.is_available() else 3)"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        raise FullError(
            "--full times models on a GPU, and torch finds none here: pass --device cpu to use the processor"
        )
    return "cuda"


def weights(models: Sequence[str], snapshots: Path, *, random: bool) -> dict[str, str]:
    """Where the weights of each model come from, once they are in `snapshots`: a commit, or `random`.

    Raises `FullError` when the hub does not give them.
    """
    if random:
        return dict.fromkeys(models, "random")
    hub = Hub()
    found = {}
    for model in models:
        repository = MODELS[model][1]
        try:
            found[model] = hub.commit(repository, None)
            hub.download(repository, found[model], snapshots / model)
        except HubError as error:
            raise FullError(f"{error}; pass --random-weights to run the real sizes without pretrained ones") from error
    return found


@dataclass(frozen=True)
class Run:
    """What all models of a run share. `sizes` are the batches to time, of `SIZES`; `counts` asks for breaks as well.

    Models in several threads share `turns`, and `seed`, a folder for what the first start of the compiler leaves.
    """

    base: Path
    head: Path
    policy: Policy
    options: SpeedOptions
    progress: Callable[[str], None]
    seed: Path
    sizes: tuple[str, ...] = SIZES
    counts: bool = True
    turns: Turns = field(default_factory=Turns)


def measure(run: Run, model: str, origin: str, folder: Path) -> FullRow:
    """Breaks and eager equality at batch 1, then times at batch 1 and the large one, as far as `run` asks for them."""
    kind = "random" if origin == "random" else "pretrained"
    factory = f"{_MODULE}:{MODELS[model][0]}.{kind}"
    row = None
    if run.counts:
        run.progress(f"{model}: counting breaks")
        with run.turns.compiling():
            row = evaluate_model(run.base, run.head, f"{factory}_one", folder=folder / "counts", policy=run.policy)

    def timed(size: str) -> SpeedRow | None:
        if size not in run.sizes or not (run.options.cold or run.options.rounds):
            return None
        return measure_speed(
            run.base,
            run.head,
            f"{factory}_{size}",
            folder=folder / size,
            policy=run.policy,
            options=run.options,
            seed=run.seed,
            progress=lambda line: run.progress(f"{model}, batch {size}: {line}"),
            turns=run.turns,
        )

    return FullRow(model, origin, row, timed("one"), timed("many"))


def with_snapshots(policy: Policy, environment: dict[str, str], snapshots: Path) -> Policy:
    """The policy under which factories find files of the hub."""
    return replace(policy, environment={**environment, FOLDER_VARIABLE: str(snapshots)})
