"""Compare our description of GitLab with the one that GitLab publishes, and report every difference.

    python scripts/check_gitlab_contract.py openapi_v3.yaml

The file is doc/api/openapi/openapi_v3.yaml of https://gitlab.com/gitlab-org/gitlab, or of its mirror gitlabhq/gitlabhq
on GitHub. What graphmend sends must be published: operations, arguments, fields, their types and whether they are
required; what it reads must not be published as something else. What the published description does not say is listed,
too. Exit code 1 when there are differences.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CONTRACT = Path(__file__).parent.parent / "tests" / "forge" / "contracts" / "gitlab.json"
PREFIX = "/api/v4"
KNOWN = {
    "GET /projects/{id}/merge_requests/{noteable_id}/notes: answer 200": "published as one note; GitLab sends a list",
}
"""Where the published description is wrong, and how we know."""

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Compared:
    """`differences` contradict the published description; `open` is what it does not say."""

    differences: tuple[str, ...]
    open: tuple[str, ...]


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description="Compare our description of GitLab with the published one.")
    parser.add_argument("published", type=Path, help="openapi_v3.yaml")
    text = parser.parse_args().published.read_text(encoding="utf-8")
    published = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    compared = compare(json.loads(CONTRACT.read_text(encoding="utf-8")), published)
    print(f"GitLab {published['info']['version']}")
    for title, lines in (("differs", compared.differences), ("not said", compared.open)):
        for line in lines:
            print(f"{title}: {line}")
    return 1 if compared.differences else 0


def compare(ours: Schema, published: Schema) -> Compared:
    """Hold each operation of `ours` against `published`, an OpenAPI 3 document with `/api/v4` before its paths."""
    checker = _Checker(published)
    for path, operations in ours["paths"].items():
        for method, operation in operations.items():
            if method != "parameters":
                checker.operation(path, method, operation, operations.get("parameters", []))
    return Compared(tuple(checker.differences), tuple(checker.open))


class _Checker:
    def __init__(self, published: Schema) -> None:
        self._published = published
        self._paths = {_anonymous(path): path for path in published["paths"]}
        self.differences: list[str] = []
        self.open: list[str] = []

    def operation(self, path: str, method: str, operation: Schema, shared: list[Schema]) -> None:
        where = f"{method.upper()} {path}"
        found = self._paths.get(_anonymous(f"{PREFIX}{path}"))
        theirs = self._published["paths"][found].get(method) if found is not None else None
        if theirs is None:
            self.differences.append(f"{where}: is not published")
            return
        if found != f"{PREFIX}{path}":
            self.differences.append(f"{where}: is published as {str(found).removeprefix(PREFIX)}")
        self._parameters(where, [*shared, *operation.get("parameters", [])], theirs.get("parameters", []))
        self._body(where, operation.get("requestBody"), theirs.get("requestBody"))
        for status, answer in operation["responses"].items():
            if status.startswith("2"):
                self._answer(f"{where}: answer {status}", answer, theirs["responses"].get(status))

    def _parameters(self, where: str, ours: list[Schema], theirs: list[Schema]) -> None:
        there = {(one["in"], one["name"]): one for one in theirs}
        for one in ours:
            place = f"{where}: argument {one['name']}"
            found = there.pop((one["in"], one["name"]), None)
            if found is None:
                self.differences.append(f"{place}: is not published in the {one['in']}")
                continue
            if found.get("required", False) != one.get("required", False):
                self.differences.append(f"{place}: published as required={found.get('required', False)}")
            self._sent(place, one["schema"], found["schema"])
        for (_, name), one in there.items():
            if one.get("required"):
                self.differences.append(f"{where}: argument {name}: is required, and we do not know it")

    def _body(self, where: str, ours: Schema | None, theirs: Schema | None) -> None:
        if ours is None:
            if theirs is not None and theirs.get("required"):
                self.differences.append(f"{where}: a body is required, and we send none")
            return
        if theirs is None:
            self.differences.append(f"{where}: no body is published")
            return
        kinds = theirs["content"]
        if "application/json" not in kinds:
            self.differences.append(f"{where}: the body is published as {', '.join(kinds)}, not as JSON")
        sent = ours["content"]["application/json"]["schema"]
        taken = self._resolved(next(iter(kinds.values()))["schema"])
        for name, schema in sent.get("properties", {}).items():
            if name not in taken.get("properties", {}):
                self.differences.append(f"{where}: field {name}: is not published")
            else:
                self._sent(f"{where}: field {name}", schema, taken["properties"][name])
        for name in sorted({*sent.get("required", ())} ^ {*taken.get("required", ())}):
            said = "is" if name in taken.get("required", ()) else "is not"
            self.differences.append(f"{where}: field {name}: {said} published as required")

    def _answer(self, where: str, ours: Schema, theirs: Schema | None) -> None:
        if theirs is None:
            self.differences.append(f"{where}: is not published")
        elif "application/json" not in theirs.get("content", {}):
            self.open.append(f"{where}: has no schema")
        elif where in KNOWN:
            self.open.append(f"{where}: {KNOWN[where]}")
        else:
            ours, theirs = (each["content"]["application/json"]["schema"] for each in (ours, theirs))
            self._fields(where, ours, theirs)

    def _fields(self, where: str, ours: Schema, theirs: Schema) -> None:
        theirs = self._resolved(theirs)
        if not self._same_kind(where, ours, theirs):
            return
        if "items" in ours:
            self._fields(f"{where} []", ours["items"], theirs.get("items", {}))
        if ours.get("nullable") and not theirs.get("nullable"):
            self.open.append(f"{where}: may be null, by what GitLab does")
        if not {*theirs.get("enum", ())} <= {*ours.get("enum", theirs.get("enum", ()))}:
            self.differences.append(f"{where}: may be one of {theirs['enum']}")
        unsaid = sorted({*ours.get("required", ())} - {*theirs.get("required", ())})
        if unsaid:
            self.open.append(f"{where}: whether these are always there: {', '.join(unsaid)}")
        for name, schema in ours.get("properties", {}).items():
            if name not in theirs.get("properties", {}):
                self.differences.append(f"{where} .{name}: is not published")
            else:
                self._fields(f"{where} .{name}", schema, theirs["properties"][name])

    def _sent(self, where: str, ours: Schema, theirs: Schema) -> None:
        theirs = self._resolved(theirs)
        if not self._same_kind(where, ours, theirs):
            return
        if "items" in ours:
            self._sent(f"{where} []", ours["items"], theirs.get("items", {}))
        if "enum" in theirs and not {*ours.get("enum", ())} <= {*theirs["enum"]}:
            self.differences.append(f"{where}: must be one of {theirs['enum']}")

    def _same_kind(self, where: str, ours: Schema, theirs: Schema) -> bool:
        mine, published = set(self._kinds(ours)), set(self._kinds(theirs))
        if not published:
            self.open.append(f"{where}: its type")
            return False
        if not mine <= published:
            self.differences.append(f"{where}: published as {' or '.join(sorted(published))}")
            return False
        return True

    def _kinds(self, schema: Schema) -> Iterator[str]:
        schema = self._resolved(schema)
        if "type" in schema:
            yield schema["type"]
        for choice in (*schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())):
            yield from self._kinds(choice)

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            found: Any = self._published
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema


def _anonymous(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


if __name__ == "__main__":
    raise SystemExit(main())
