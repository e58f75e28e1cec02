"""Decoding with a static cache: `generate` as a whole, and the forward of one step with the cache of those before."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

NEW_TOKENS = 4
_MADE_BY_GENERATE = frozenset({"labels", "use_cache", "position_ids"})


class CannotDecode(Exception):
    """Raised for a model without `generate`, or without a second step; the message says which."""


class Generation(torch.nn.Module):
    """Greedy `generate` of `NEW_TOKENS` tokens with a static cache.

    What users compile of it is the model's own forward, so `compiled` compiles that and leaves the loop to Python.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Any) -> dict[str, torch.Tensor]:
        """Token ids, `[batch, length]` of int64, and the logits of each new one, `[steps, batch, vocabulary]`.

        Raises whatever `generate` raises, such as ValueError for a model that takes no static cache.
        """
        found = generated(self.model, inputs, NEW_TOKENS)
        return {"sequences": found.sequences, "logits": torch.stack(found.logits)}

    def compiled(self, compile_forward: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Generation:
        """This module, with a compiled forward in the model."""
        self.model.forward = compile_forward(self.model.forward)
        return self


def compiled_form(target: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`torch.compile(target, **options)`; of a `Generation` only the model's forward is compiled."""
    if isinstance(target, Generation):
        return target.compiled(lambda forward: torch.compile(forward, **options))
    found: Callable[..., Any] = torch.compile(target, **options)
    return found


def prompt(call: dict[str, Any]) -> dict[str, Any]:
    """What `generate` is given of the keyword arguments of a forward: it makes those of the decoder itself."""
    return {name: value for name, value in call.items() if name not in _MADE_BY_GENERATE and name[:8] != "decoder_"}


def generated(model: Any, inputs: dict[str, Any], new_tokens: int) -> Any:
    """What greedy `generate` returns for exactly `new_tokens` new tokens. Raises whatever it raises."""
    if not getattr(model, "can_generate", lambda: False)():
        raise CannotDecode(f"{type(model).__name__} has no `generate`")
    with torch.no_grad():
        return model.generate(
            **inputs,
            max_new_tokens=new_tokens,
            min_new_tokens=new_tokens,
            do_sample=False,
            num_beams=1,
            cache_implementation="static",
            return_dict_in_generate=True,
            output_logits=True,
        )


def one_step(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of the second forward that `generate` calls: one token for each sequence and a filled cache.

    The cache is a new one each time, for the forward writes into it. Raises `CannotDecode` where there is no second
    step, and whatever `generate` raises.
    """
    steps: list[dict[str, Any]] = []
    forward = model.forward

    @functools.wraps(forward)  # `generate` looks at its signature
    def recorded(*args: Any, **kwargs: Any) -> Any:
        if steps:
            steps.append(kwargs)
            raise _Reached
        steps.append(kwargs)
        return forward(*args, **kwargs)

    model.forward = recorded
    try:
        generated(model, inputs, NEW_TOKENS)
    except _Reached:
        return steps[1]
    finally:
        del model.forward
    raise CannotDecode(f"`generate` of {type(model).__name__} calls its forward {len(steps)} times")


class _Reached(Exception):
    """The second step begins."""
