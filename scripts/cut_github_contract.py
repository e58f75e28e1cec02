"""Cut the paths that graphmend uses out of GitHub's OpenAPI description.

npm pack @octokit/openapi && tar xzf octokit-openapi-*.tgz
python scripts/cut_github_contract.py package/generated/api.github.com.json > tests/forge/contracts/github.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OPERATIONS = {
    "/user": ["get"],
    "/repos/{owner}/{repo}": ["get"],
    "/repos/{owner}/{repo}/pulls": ["get", "post"],
    "/repos/{owner}/{repo}/pulls/{pull_number}": ["get", "patch"],
    "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers": ["post"],
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ["get", "post"],
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ["patch"],
    "/repos/{owner}/{repo}/issues/{issue_number}/labels": ["post"],
    "/repos/{owner}/{repo}/commits/{ref}/check-runs": ["get"],
    "/repos/{owner}/{repo}/check-runs": ["post"],
    "/repos/{owner}/{repo}/forks": ["post"],
}
_PROSE = {"description", "externalDocs", "x-github", "tags", "summary", "x-octokit"}
_OF_NAMES = {"properties", "responses", "examples", "schemas", "paths"}


def main() -> None:
    """Write the subset to standard output."""
    whole = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    paths = {
        path: {
            **{key: value for key, value in whole["paths"][path].items() if key == "parameters"},
            **{method: whole["paths"][path][method] for method in methods},
        }
        for path, methods in OPERATIONS.items()
    }
    components: dict[str, dict[str, Any]] = {}
    pending = list(_references(paths))
    while pending:
        kind, name = pending.pop().removeprefix("#/components/").split("/")
        if name not in components.setdefault(kind, {}):
            components[kind][name] = whole["components"][kind][name]
            pending += _references(components[kind][name])
    subset = {"openapi": whole["openapi"], "info": whole["info"], "paths": paths, "components": components}
    json.dump(_without_prose(subset), sys.stdout, separators=(",", ":"), sort_keys=True)
    print()


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _without_prose(node: object, parent: str = "") -> object:
    """Drop descriptions, but for those that must be there. In some places a key is a name, not a keyword."""
    if isinstance(node, list):
        return [_without_prose(item) for item in node]
    if not isinstance(node, dict) or parent in {"value", "example"}:
        return node
    if parent in _OF_NAMES:
        return {key: _without_prose(value, f"one of {parent}") for key, value in node.items()}
    kept = {key: _without_prose(value, key) for key, value in node.items() if key not in _PROSE}
    if parent == "one of responses" and "$ref" not in node:
        kept["description"] = ""
    return kept


if __name__ == "__main__":
    main()
