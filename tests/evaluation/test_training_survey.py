"""Types of the survey in training mode: labels where a model takes them, and gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_a_language_model_is_trained_on_its_own_tokens() -> None:
    from graphmend_evaluation.huggingface.tiny import in_training, load_class, tiny_model

    found = load_class("transformers.models.gpt2.modeling_gpt2", "GPT2LMHeadModel")
    model, calls, options = in_training(tiny_model(found))()

    assert options == {"train": True, "gradients": True}
    assert all((call["labels"] == call["input_ids"]).all() for call in calls)
    assert model(**calls[0]).loss.requires_grad


def test_a_model_without_labels_gets_none() -> None:
    from graphmend_evaluation.huggingface.inputs import NoInput, labelled

    model = torch.nn.Linear(2, 2)
    call = {"input": torch.ones(1, 2)}

    assert labelled(model, call, "none") == call
    with pytest.raises(NoInput, match="takes no labels"):
        labelled(model, call, "classes")
