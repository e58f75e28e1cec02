"""A fix in a function whose result `functools.cache` keeps would make compiled code compute it in each call."""

from __future__ import annotations

import pytest

from tests.tools.fixes import declined, fixed

_SOURCE = """
import functools
import logging
from functools import lru_cache as kept

import torch
from torch import nn

logger = logging.getLogger(__name__)


{decorator}
def noise(size: int):
    {body}


def drawn(size: int):
    logger.warning("drawn anew")
    return torch.rand(size)


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        return x * noise(3) * (drawn(3) if self.training else 1)
"""
_LOGGED = 'logger.warning("drawn once")\n    return torch.rand(size)'


def _source(body: str = _LOGGED, decorator: str = "@kept(maxsize=None)") -> str:
    return _SOURCE.format(body=body, decorator=decorator)


@pytest.mark.parametrize("decorator", ["@functools.cache", "@kept", "@functools.lru_cache(3)"])
def test_a_break_in_a_cached_function_keeps_its_cache(decorator: str) -> None:
    after, result = fixed(_source(decorator=decorator))

    assert after.count("is_compiling()") == 1
    assert ["asks no cache" in (each.declined or "") for each in result.remaining] == [True]


@pytest.mark.parametrize("result", ["[size, 2]", "{size: 2}", "size.weight * 2"])
def test_what_somebody_may_change_later_keeps_its_cache(result: str) -> None:
    after, _ = fixed(_source(f'logger.warning("made once")\n    return {result}'))

    assert after.count("is_compiling()") == 1  # in the function beside it


def test_what_a_cached_function_calls_is_left_alone_too() -> None:
    declined(_source("return drawn(size) * 2"), because="would compute `noise` in each call")


@pytest.mark.parametrize("body", ['logger.warning("once")', 'logger.warning("once")\n    return None'])
def test_a_message_that_is_sent_once_leaves_the_graph(body: str) -> None:
    source = _source(body).replace("noise(3)", "(noise(3) or 2)")

    assert fixed(source)[0].count("is_compiling()") == 2


@pytest.mark.parametrize("result", ["size > 2", "size in [1, 2]", "not [size]"])
def test_numbers_that_a_cached_function_finds_are_constants_anyway(result: str) -> None:
    source = _source(f'logger.warning("looked up")\n    return {result}')

    assert fixed(source)[0].count("is_compiling()") == 2


def test_a_function_that_says_that_it_gives_text_may_be_traced() -> None:
    source = _source('logger.warning("looked up")\n    return str(size.real) + "."')
    assert fixed(source)[0].count("is_compiling()") == 1
    assert fixed(source.replace("noise(size: int):", "noise(size: int) -> str:"))[0].count("is_compiling()") == 2


def test_another_cached_function_of_the_file_changes_nothing() -> None:
    source = _source("return torch.ones(size)")

    assert fixed(source)[0].count("is_compiling()") == 1


def test_a_result_that_is_computed_while_tracing_is_kept() -> None:
    body = "import numpy\n\n    return torch.tensor(numpy.hanning(size).tolist())"
    after, _ = fixed(_source(body), opaque=True)

    assert "return _noise_as_constant(size)[0]" in after
