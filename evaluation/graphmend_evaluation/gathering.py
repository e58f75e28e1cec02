"""All models of an evaluation, from every source that was asked for, in the order of preference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend_evaluation.evaluation import Source
from graphmend_evaluation.isolation import Policy
from graphmend_evaluation.stage import Model


@dataclass(frozen=True)
class GatherOptions:
    """What was asked for; see `graphmend_codemod.evaluation.port.Wanted`."""

    named: tuple[str, ...] = ()
    configured: bool = False
    from_tests: str | None = None
    huggingface: bool = False
    hub: tuple[str, ...] = ()
    trust_remote_code: bool = False


@dataclass(frozen=True)
class Gathered:
    """Models without repetition, and what a reader should know of how they were found."""

    models: tuple[Model, ...]
    remarks: tuple[str, ...] = ()


def gather(
    request: GatherOptions,
    base: Path,
    changed: Sequence[str],
    folder: Path,
    policy: Policy,
    progress: Callable[[str], None] = lambda line: None,
) -> Gathered:
    """The models to evaluate. `changed` are files relative to `base`; recordings of tests go into `folder`.

    Tests run in a child process under `policy`, and what they do costs no more than a remark.
    """
    source = Source.SETTINGS if request.configured else Source.OPTION
    found = [Model(name, source) for name in request.named]
    remarks: list[str] = []
    if request.from_tests is not None:
        from graphmend_evaluation.sources import record_from_tests

        progress("running the repository's tests to record models")
        recorded = record_from_tests(base, request.from_tests, changed, folder=folder, policy=policy)
        found += [Model(name, Source.TESTS) for name in recorded.models]
        remarks += recorded.remarks
    if request.huggingface:
        from graphmend_evaluation.sources import huggingface_models

        names = huggingface_models(base, changed)
        found += [Model(name, Source.HUGGINGFACE) for name in names]
        if not names:
            remarks.append("--huggingface: no changed file belongs to a model of transformers")
    for repository in request.hub:
        prefix = "huggingface-id-trusted" if request.trust_remote_code else "huggingface-id"
        found.append(Model(f"{prefix}:{repository}", Source.HUB))
    unique = {model.name: model for model in reversed(found)}
    return Gathered(tuple(dict.fromkeys(unique[model.name] for model in found)), tuple(remarks))
