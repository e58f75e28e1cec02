"""Models from the transformers package and from the hub: which are chosen, and how small ones are made."""

from __future__ import annotations

import importlib.util
import os
import textwrap
from pathlib import Path

import pytest

from graphmend_evaluation.isolation import Policy, measure_model
from graphmend_evaluation.names import HubModel, SmallModel, imported_package, needs_network, parse
from graphmend_evaluation.results import Status
from graphmend_evaluation.sources import huggingface_models
from graphmend_evaluation.worktree import LoadError

pytest.importorskip("torch")
pytest.importorskip("transformers")

POLICY = Policy(timeout=300, environment=dict(os.environ))
BIRD = """
    from ...modeling_utils import PreTrainedModel
    from ...modeling_rope_utils import dynamic_rope_update


    class BirdLayer:
        def forward(self, x): ...


    class BirdPooler:
        def forward(self, x): ...


    LAYERS = {"plain": BirdLayer}


    class BirdPreTrainedModel(PreTrainedModel): ...


    class BirdModel(BirdPreTrainedModel):
        def __init__(self, config):
            self.layers = [LAYERS["plain"](config)]
            self.pooler = BirdPooler()

        def forward(self, x): ...


    class BirdDecoder(BirdPreTrainedModel):
        def __init__(self, config):
            self.layers = [BirdLayer(config)]

        def forward(self, x): ...


    class BirdForCausalLM(BirdPreTrainedModel):
        def __init__(self, config):
            self.model = BirdDecoder(config)

        def forward(self, x):
            return torch.clamp(x, max=torch.finfo(torch.float16).max)


    class BirdForTokenClassification(BirdPreTrainedModel):
        def __init__(self, config):
            self.model = BirdModel(config)

        def forward(self, x): ...
"""
FISH = """
    class FishPreTrainedModel(PreTrainedModel): ...


    class FishModel(FishPreTrainedModel):
        def forward(self, x): ...
"""
BIRD_FILE = "src/transformers/models/bird/modeling_bird.py"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for package in ("transformers", "transformers/models", "transformers/models/bird", "transformers/models/fish"):
        write(tmp_path, f"src/{package}/__init__.py", "")
    write(tmp_path, BIRD_FILE, BIRD)
    write(tmp_path, "src/transformers/models/fish/modeling_fish.py", FISH)
    write(tmp_path, "src/transformers/models/fish/modeling_tf_fish.py", FISH)
    write(tmp_path, "src/transformers/modeling_rope_utils.py", "def dynamic_rope_update(): ...\n")
    return tmp_path


@pytest.fixture(scope="module")
def installed() -> Path:
    """The folder of the installed package, as if it were a work tree."""
    spec = importlib.util.find_spec("transformers")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent.parent


def test_a_touched_file_gives_the_heaviest_head_and_what_it_does_not_reach(repository: Path) -> None:
    bird = "huggingface:transformers.models.bird.modeling_bird"
    assert huggingface_models(repository, [BIRD_FILE]) == (
        f"{bird}:BirdForCausalLM",
        f"{bird}:BirdModel",
        f"{bird}:BirdForCausalLM#float16",
    )


def test_a_touched_helper_gives_models_of_files_that_import_it(repository: Path) -> None:
    assert huggingface_models(repository, ["src/transformers/modeling_rope_utils.py"]) == (
        "huggingface:transformers.models.bird.modeling_bird:BirdForCausalLM",
    )


@pytest.mark.parametrize(
    "path",
    ["src/transformers/models/fish/modeling_tf_fish.py", "README.md", "src/transformers/models/no/modeling_no.py"],
)
def test_other_files_give_nothing(repository: Path, path: str) -> None:
    assert huggingface_models(repository, [path]) == ()


@pytest.mark.parametrize("text", ["class Open(", "\0"])
def test_a_file_that_cannot_be_read_gives_nothing(repository: Path, text: str) -> None:
    write(repository, BIRD_FILE, text)

    assert huggingface_models(repository, [BIRD_FILE]) == ()


def test_names_are_taken_apart() -> None:
    assert parse("huggingface:a.b:C#float16") == SmallModel("a.b", "C", "float16")
    assert parse("huggingface-id:google/t5-small@main:T5Model") == HubModel("google/t5-small", "main", "T5Model", False)
    assert parse("huggingface-id-trusted:gpt2") == HubModel("gpt2", None, None, True)
    assert parse("package.module:factory") is None
    assert parse("huggingface:factory") is None
    assert imported_package("huggingface:a.b:C") == "a"
    assert needs_network("huggingface-id:gpt2")
    assert not needs_network("huggingface:a.b:C")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("huggingface:a.b:C#", "is not huggingface:package.module:Class"),
        ("huggingface-id:a/b/c", "is not huggingface-id:REPOSITORY"),
        ("recorded:nowhere.json", "is not recorded:FILE#NUMBER"),
        ("recorded:nowhere.json#0", "there is no recording 0 in nowhere.json: run the tests again"),
    ],
)
def test_a_name_that_is_not_as_its_scheme_has_it_is_told(name: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        parse(name)


@pytest.mark.slow
def test_a_small_model_is_made_and_measured(installed: Path, tmp_path: Path) -> None:
    name = "huggingface:transformers.models.bert.modeling_bert:BertForPreTraining"
    measured = measure_model(installed, name, folder=tmp_path, policy=POLICY)

    assert measured.ok, measured.message
    assert measured.counts is not None
    assert len(measured.calls) == 3
    assert [call.eager_error for call in measured.calls] == [None, None, None]
    assert measured.counts.break_events == 0


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("transformers.models.t5.modeling_t5:T5ForConditionalGeneration#float16", "torch.float16"),
        ("transformers.models.llama.modeling_llama:LlamaForCausalLM", "torch.float32"),
    ],
)
def test_small_models_of_other_kinds_are_made_and_run(installed: Path, name: str, dtype: str) -> None:
    import torch

    from graphmend_evaluation.loading import load_factory

    model = load_factory(installed, f"huggingface:{name}").make()
    assert model.module is not None
    assert len(model.calls) == 3
    with torch.no_grad():
        results = [call.on(model.module) for call in model.calls]
    assert [str(result.logits.dtype) for result in results] == [dtype] * 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("transformers.models.bert.modeling_bert:NoSuchModel", "has no module class NoSuchModel"),
        ("transformers.models.bert.modeling_bert:BertLayer", "BertLayer names no config_class"),
        ("transformers.models.bert.modeling_bert:BertModel#int8", "#int8 is not a floating-point dtype"),
    ],
)
def test_a_small_model_that_cannot_be_made_is_told_in_a_line(installed: Path, name: str, message: str) -> None:
    from graphmend_evaluation.loading import load_factory

    with pytest.raises(LoadError, match=message):
        load_factory(installed, f"huggingface:{name}")


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_told_in_a_line(installed: Path, tmp_path: Path) -> None:
    measured = measure_model(installed, "huggingface-id:nobody/nothing", folder=tmp_path, policy=POLICY)

    assert measured.status is Status.FAILED
    assert "nobody/nothing cannot be loaded: the hub cannot be reached from here" in measured.message


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text), encoding="utf-8")
