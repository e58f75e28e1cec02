"""Decoding modes of the survey: `generate` with a static cache, and the forward of one step."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def llama() -> Any:
    from graphmend_evaluation.huggingface.tiny import load_class, tiny_model

    return tiny_model(load_class("transformers.models.llama.modeling_llama", "LlamaForCausalLM"))


def test_a_step_gets_one_token_and_a_filled_cache(llama: Any) -> None:
    from graphmend_evaluation.huggingface.tiny import decoding

    model, (call,), _ = decoding(llama, "step")()

    assert call["input_ids"].shape[1] == 1
    assert call["past_key_values"].get_seq_length() == call["cache_position"].item() > 1
    assert "forward" not in vars(model)
    with torch.no_grad():
        assert model(**call).logits.shape[1] == 1


def test_each_step_has_a_cache_of_its_own(llama: Any) -> None:
    from graphmend_evaluation.huggingface.tiny import decoding

    step = decoding(llama, "step")

    assert step()[1][0]["past_key_values"] is not step()[1][0]["past_key_values"]


def test_generate_compiles_the_forward_and_not_its_own_loop(llama: Any) -> None:
    from graphmend_evaluation.huggingface.decoding import NEW_TOKENS, compiled_form
    from graphmend_evaluation.huggingface.tiny import decoding

    target, (call,), _ = decoding(llama, "generate")()
    eager = target(**call)
    graphs: list[Any] = []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    compiled = compiled_form(target, backend=backend, dynamic=False)(**call)
    torch._dynamo.reset()

    assert eager["logits"].shape[0] == NEW_TOKENS
    assert 0 < len(graphs) <= 3  # the prompt, and steps: not the code around them
    torch.testing.assert_close(compiled["logits"], eager["logits"])


def test_a_model_without_generate_says_so() -> None:
    from graphmend_evaluation.huggingface.tiny import decoding, load_class, tiny_model
    from graphmend_evaluation.worktree import LoadError

    found = tiny_model(load_class("transformers.models.bert.modeling_bert", "BertModel"))

    with pytest.raises(LoadError, match="has no `generate`"):
        decoding(found, "step")
