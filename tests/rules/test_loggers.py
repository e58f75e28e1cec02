"""What counts as a logger: made in another file, by a function without annotations, of a subclass, or of loguru."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from tests.tools.fixes import declined, fixed, fixed_among

_MODEL = """
    import torch
    from torch import nn
    {imports}


    class Model(nn.Module):
        def forward(self, x: torch.Tensor):
            {call}
            return x * 2
    """
_LOGS = """
    import functools
    import logging
    from logging import getLogger

    logger = logging.getLogger("a")


    class Louder(logging.Logger):
        def twice(self, text):
            self.warning(text + text)


    class Adapter(logging.LoggerAdapter):
        pass


    def get_logger(name=None):
        made = logging.getLogger(name)
        if not made.handlers:
            made.addHandler(logging.StreamHandler())
        return made


    @functools.lru_cache
    def direct(name):
        return getLogger(name)


    def annotated(name) -> Louder:
        return Louder(name)


    def adapter(name) -> Adapter:
        return Adapter(logging.getLogger(name), {})


    def recorder(name, sink=None):
        if sink is not None:
            return sink
        return logging.getLogger(name)


    def replaced(name):
        made = logging.getLogger(name)
        made = Sink(made)
        return made


    def wrapped(function):
        return lambda name: Sink(name)


    @wrapped
    def decorated(name):
        return logging.getLogger(name)


    def later(name):
        yield 1
        return logging.getLogger(name)


    class Sink:
        def __init__(self, name):
            self.said = []

        def warning(self, text):
            self.said.append(text)


    class Factory:
        @staticmethod
        def create(name):
            made = logging.getLogger(name)
            made.propagate = False
            return made


    made = Factory.create("b")
    LOGGER = get_logger("c")
    """


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from logs import logger", 'logger.warning("a")'),
        ("import logs", 'logs.logger.warning("a")'),
        ("from logs import get_logger\nlog = get_logger(__name__)", 'log.warning("a")'),
        ("from logs import direct\nlog = direct(__name__)", 'log.info("a")'),
        ("from logs import annotated\nlog = annotated(__name__)", 'log.error("a")'),
        ("from logs import adapter\nlog = adapter(__name__)", 'log.error("a")'),
        ("from logs import made", 'made.warning("a")'),
        ("from logs import LOGGER", 'LOGGER.debug("a")'),
        ("from loguru import logger", 'logger.success("a")'),
        ("from lightning_utilities.core.rank_zero import rank_zero_warn", 'rank_zero_warn("a")'),
    ],
)
def test_a_call_of_it_is_left_out_of_compiled_code(tmp_path: Path, imports: str, call: str) -> None:
    after, _ = fixed_among(tmp_path, _source(imports, call), {"logs.py": _LOGS})
    assert f"        if not torch.compiler.is_compiling():\n            {call}\n" in after


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from logs import recorder\nlog = recorder(__name__)", 'log.warning("a")'),
        ("from logs import replaced\nlog = replaced(__name__)", 'log.warning("a")'),
        ("from logs import decorated\nlog = decorated(__name__)", 'log.warning("a")'),
        ("from logs import later\nlog = later(__name__)", 'log.warning("a")'),
        ("from logs import Sink\nlog = Sink(__name__)", 'log.warning("a")'),
        ("from logs import annotated\nlog = annotated(__name__)", 'log.twice("a")'),
        ("from loguru import logger", 'logger.add("a")'),
    ],
)
def test_what_may_be_something_else_is_let_alone(tmp_path: Path, imports: str, call: str) -> None:
    source = _source(imports, call)
    after, _ = fixed_among(tmp_path, source, {"logs.py": _LOGS})
    assert "is_compiling" not in after


def test_the_methods_of_a_logger_stay_as_they_are(tmp_path: Path) -> None:
    call = 'log.twice("a")\n            log.warning("b")'
    source = _source("from logs import annotated\nlog = annotated(__name__)", call)
    fixed_among(tmp_path, source, {"logs.py": _LOGS})
    result = api.fix([tmp_path], Settings(tmp_path), write=True, cache=False)
    assert not any(each.path.endswith("logs.py") for each in result.fixes)


def _source(imports: str, call: str) -> str:
    return _MODEL.format(imports=imports.replace("\n", "\n    "), call=call)


_OWN = """
import logging

import torch
from torch import nn


class Counting(logging.Logger):
    told = 0

    def info(self, text, *args):
        {body}


logger = Counting("counting")


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        logger.info("rows: %s", 3)
        return x + Counting.told
"""


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("Counting.told += 1", True),
        ("self.handle_all(text)", True),
        ("if args:\n            super().info(text, *args)", False),
    ],
)
def test_a_method_of_the_project_that_does_more_than_tell_is_no_message(body: str, left: bool) -> None:
    source = _OWN.format(body=body)
    if left:
        declined(source, because="`info` of this logger is code of the project")
    else:
        assert "is_compiling" in fixed(source)[0]


@pytest.mark.parametrize(
    ("method", "body", "left"),
    [
        ("def process(self, msg, kwargs)", "Counting.told += 1\n        return msg, kwargs", True),
        ("def log(self, level, msg, *args)", "Counting.told += 1", True),
        ("def filter(self, record)", "SEEN.append(record)", True),
        ("def process(self, msg, kwargs)", "kwargs['extra'] = {}\n        return f'[{msg}]', kwargs", False),
    ],
)
def test_what_each_message_of_a_logger_goes_through_counts_as_well(method: str, body: str, left: bool) -> None:
    source = _OWN.replace("def info(self, text, *args)", method).replace("{body}", body)
    if left:
        declined(source, because="of this logger is code of the project")
    else:
        assert "is_compiling" in fixed(source)[0]
