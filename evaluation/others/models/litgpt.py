"""Language models in few lines."""

import torch

SOURCE = "pip:litgpt==0.5.13"
IMPORTS = "litgpt"


def _gpt(**more):
    from litgpt import GPT, Config

    return GPT(Config(block_size=16, n_layer=2, n_embd=16, n_head=2, padded_vocab_size=32, vocab_size=32, **more))


def gpt():
    return _gpt(), (torch.randint(0, 32, (2, 8)),)


def llama_experts():
    more = {
        "mlp_class_name": "LLaMAMoE",
        "n_expert": 4,
        "n_expert_per_token": 2,
        "intermediate_size": 24,
        "norm_class_name": "RMSNorm",
        "bias": False,
    }
    return _gpt(**more), (torch.randint(0, 32, (2, 8)),)


def cached():
    model = _gpt()
    model.set_kv_cache(batch_size=2)
    return model, (torch.randint(0, 32, (2, 4)), torch.arange(4)), {"train": False}
