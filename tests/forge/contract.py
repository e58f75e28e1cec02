"""Requests and answers held to a forge's published OpenAPI description."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from openapi_core import OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.templating.responses.exceptions import ResponseNotFound
from openapi_core.testing import MockRequest, MockResponse

FOLDER = Path(__file__).parent / "contracts"
HOST = "http://forge.test"  # each test has a server of its own, and reading a description takes half a second


class Contract:
    """One description. `broken` collects what did not follow it; a test fails when there is anything."""

    def __init__(self, name: str, base_url: str) -> None:
        self._prefix = urlsplit(base_url).path
        self.document, self._checker = _description(name, self._prefix)
        self.broken: list[str] = []

    def check(
        self, method: str, target: str, body: bytes, status: int, answer: bytes, headers: Mapping[str, str]
    ) -> None:
        """Check a request, if it was carried out, and its answer."""
        split = urlsplit(target)
        request = MockRequest(
            HOST,
            method.lower(),
            split.path,
            args=dict(parse_qsl(split.query)),
            headers=dict(headers),
            data=body or None,
            content_type="application/json",
        )
        response = MockResponse(answer, status_code=status, content_type="application/json")
        try:
            if status < 400:
                self._checker.validate_request(request)
                self._require_known_arguments(method, split.path, dict(parse_qsl(split.query)))
            self._checker.validate_response(request, response)
        except ResponseNotFound as error:
            # Any operation may be refused, though not each description says so.
            if status not in {401, 403, 404}:
                self.broken.append(f"{method} {target} -> {status}: {error}")
        except OpenAPIError as error:
            found = getattr(error.__cause__, "schema_errors", None) or [error.__cause__ or error]
            causes = [
                f"{list(getattr(one, 'absolute_path', ()))} {getattr(one, 'message', one)}"[:300] for one in found
            ]
            self.broken.append(f"{method} {target} -> {status}: {'; '.join(causes)} {body[:300]!r}")

    def example(self, name: str) -> Any:
        """A new copy of an example of the description."""
        return json.loads(json.dumps(self.document["components"]["examples"][name]["value"]))

    def _require_known_arguments(self, method: str, path: str, arguments: Mapping[str, str]) -> None:
        inside = path.removeprefix(self._prefix)
        for pattern, operations in self.document["paths"].items():
            parts = list(zip(pattern.split("/"), inside.split("/"), strict=False))
            same = len(pattern.split("/")) == len(inside.split("/"))
            if (
                same
                and all(one == other or one.startswith("{") for one, other in parts)
                and method.lower() in operations
            ):
                told = operations[method.lower()].get("parameters", [])
                known = {self._resolved(one)["name"] for one in told}
                if not set(arguments) <= known:
                    self.broken.append(f"{method} {path}: unknown arguments {set(arguments) - known}")
                return

    def _resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in node:
            return node
        _, _, kind, name = node["$ref"].split("/")
        found: dict[str, Any] = self.document["components"][kind][name]
        return found


@lru_cache
def _description(name: str, prefix: str) -> tuple[dict[str, Any], OpenAPI]:
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    document["servers"] = [{"url": HOST + prefix}]
    for operations in document["paths"].values():
        for operation in operations.values():
            if isinstance(operation, dict) and "requestBody" in operation:
                for content in operation["requestBody"]["content"].values():
                    _forbid_other_fields(content["schema"])
    return document, OpenAPI.from_dict(document)


def _forbid_other_fields(schema: dict[str, Any]) -> None:
    for choice in schema.get("oneOf", schema.get("anyOf", [schema])):
        if choice.get("type") == "object" and "properties" in choice:
            choice["additionalProperties"] = False
