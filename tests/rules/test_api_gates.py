"""What may be written for which torch: every API of the fixes is in the table, is there in the installed torch, and is
written from its first release on and not before."""

from __future__ import annotations

import re

import pytest

from graphmend_codemod.analysis.torch_api import SINCE
from graphmend_codemod.rules.framework.examples import Example
from graphmend_codemod.rules.framework.registry import all_rules
from tests.tools.fixes import checked, embedded, fixed

NEWER = re.compile(r"torch\.((?:compiler|library|nn\.attention|fx|_higher_order_ops|_dynamo)(?:\.\w+)+|grouped_mm)\b")
NEVER_WRITTEN = ("nonstrict_trace", "grouped_mm", "set_stance")
EXAMPLES = [(rule, example) for rule in all_rules() for example in rule.examples if isinstance(example, Example)]
WRITTEN_BY = {
    "compiler.is_compiling": "GM201",
    "_assert_async": "GM301",
    "compiler.is_dynamo_compiling": "GM402",
    "library.custom_op": "GM504",
}


@pytest.mark.parametrize(("api", "code"), WRITTEN_BY.items())
def test_api_is_written_from_its_first_release_on_and_not_before(api: str, code: str) -> None:
    """The release is that of the newest API of the same fix; before it the finding says what it misses."""
    asked = {"select": (code,), "unsafe_fixes": True, "opaque": True}
    sources = (embedded(each.before, each.setup) for rule, each in EXAMPLES if rule.code == code)
    source, after = next(
        (each, text) for each in sources if (text := fixed(each, **asked)[0]).count(api) > each.count(api)
    )
    major, minor = max(since for name, since in SINCE.items() if after.count(name) > source.count(name))
    assert (major, minor) >= SINCE[api]
    assert api in fixed(source, target_torch=(major, minor), **asked)[0]
    before = fixed(source, target_torch=(major, minor - 1), **asked)[0]
    asks_older_torch = 'hasattr(torch, "compiler") and' in before  # an API of the first release with a compiler
    assert asks_older_torch or before.count(api) == source.count(api)
    told = checked(source, target_torch=(major, minor - 1), **asked).findings
    assert before != source or any(f"(torch {major}.{minor})" in (each.declined or "") for each in told)


@pytest.mark.parametrize("api", SINCE)
def test_api_is_there_in_the_installed_torch(api: str) -> None:
    import torch
    import torch.fx.experimental.symbolic_shapes
    import torch.nn.attention

    found: object = torch
    for part in api.split("."):
        found = getattr(found, part)
    assert callable(found)


def test_newer_apis_that_fixes_write_are_all_in_the_table() -> None:
    known = tuple(SINCE)
    written = {
        name
        for _, example in EXAMPLES
        for name in NEWER.findall(example.after)
        if name not in embedded(example.before, example.setup)
    }
    assert {name for name in written if not name.startswith(known)} == set()


@pytest.mark.parametrize("name", NEVER_WRITTEN)
def test_apis_without_a_gate_are_never_written(name: str) -> None:
    assert not [rule.code for rule, example in EXAMPLES if name in example.after and name not in example.before]
