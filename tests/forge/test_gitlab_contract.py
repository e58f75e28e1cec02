"""`scripts/check_gitlab_contract.py` finds where our description of GitLab contradicts a published one."""

from __future__ import annotations

import copy
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "scripts" / "check_gitlab_contract.py"
OURS = json.loads((ROOT / "tests/forge/contracts/gitlab.json").read_text(encoding="utf-8"))
MERGES, ONE = "/api/v4/projects/{id}/merge_requests", "/api/v4/projects/{id}/merge_requests/{merge_request_iid}"


def _load() -> Any:
    specification = importlib.util.spec_from_file_location("check_gitlab_contract", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


COMPARE = _load().compare


def published() -> dict[str, Any]:
    """A description in GitLab's form that says what ours says: schemas by reference, no field of an answer required."""
    document: dict[str, Any] = {"openapi": "3.0.0", "info": {"version": "19.5"}, "paths": {}, "components": {}}
    schemas = document["components"]["schemas"] = {}
    for path, operations in copy.deepcopy(OURS["paths"]).items():
        shared = operations.pop("parameters")
        for method, operation in operations.items():
            operation["parameters"] = [*shared, *operation["parameters"]]
            contents = [answer["content"]["application/json"] for answer in operation["responses"].values()]
            for content in contents:
                content["schema"].pop("required", None)
            if "requestBody" in operation:
                contents.append(operation["requestBody"]["content"]["application/json"])
            for number, content in enumerate(contents):
                name = f"{method}{path}{number}".replace("/", "")
                schemas[name] = content["schema"]
                content["schema"] = {"$ref": f"#/components/schemas/{name}"}
        document["paths"][f"/api/v4{path}"] = operations
    return document


def parameter(document: dict[str, Any], path: str, method: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in document["paths"][path][method]["parameters"] if one["name"] == name)
    return found


def body(document: dict[str, Any], path: str, method: str) -> dict[str, Any]:
    reference = document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    found: dict[str, Any] = document["components"]["schemas"][reference.rpartition("/")[2]]
    return found


def answer(document: dict[str, Any], path: str, method: str, status: str) -> dict[str, Any]:
    reference = document["paths"][path][method]["responses"][status]["content"]["application/json"]["schema"]["$ref"]
    found: dict[str, Any] = document["components"]["schemas"][reference.rpartition("/")[2]]
    return found


def test_the_same_in_another_form_does_not_differ() -> None:
    compared = COMPARE(OURS, published())
    assert compared.differences == ()
    assert "GET /users: answer 200 []: whether" not in "\n".join(compared.open)
    assert "GET /projects/{id}: answer 200: whether these are always there: archived" in "\n".join(compared.open)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda one: one["paths"].pop("/api/v4/users"), "GET /users: is not published"),
        (lambda one: one["paths"][ONE].pop("put"), "PUT /projects/{id}/merge_requests/{merge_request_iid}: is not"),
        (
            lambda one: one["paths"].update({ONE.replace("_iid", "_id"): one["paths"].pop(ONE)}),
            "is published as /projects/{id}/merge_requests/{merge_request_id}",
        ),
        (
            lambda one: parameter(one, MERGES, "get", "source_branch").update(name="branch"),
            "argument source_branch: is not published in the query",
        ),
        (
            lambda one: parameter(one, MERGES, "get", "source_branch").update(schema={"type": "array"}),
            "argument source_branch: published as array",
        ),
        (
            lambda one: parameter(one, MERGES, "get", "state").update(schema={"type": "string", "enum": ["open"]}),
            "argument state: must be one of ['open']",
        ),
        (
            lambda one: one["paths"][MERGES]["get"]["parameters"].append(
                {"name": "scope", "in": "query", "required": True, "schema": {"type": "string"}}
            ),
            "argument scope: is required, and we do not know it",
        ),
        (lambda one: body(one, MERGES, "post")["properties"].pop("title"), "field title: is not published"),
        (
            lambda one: body(one, MERGES, "post")["required"].append("assignee_id"),
            "field assignee_id: is published as required",
        ),
        (
            lambda one: body(one, MERGES, "post")["required"].remove("title"),
            "field title: is not published as required",
        ),
        (
            lambda one: body(one, ONE, "put")["properties"].update(add_labels={"type": "string"}),
            "field add_labels: published as string",
        ),
        (
            lambda one: body(one, ONE, "put")["properties"]["reviewer_ids"].update(items={"type": "string"}),
            "field reviewer_ids []: published as string",
        ),
        (lambda one: answer(one, ONE, "get", "200")["properties"].pop("web_url"), "200 .web_url: is not published"),
        (
            lambda one: answer(one, ONE, "get", "200")["properties"].update(iid={"type": "string"}),
            "answer 200 .iid: published as string",
        ),
        (
            lambda one: answer(one, ONE, "get", "200")["properties"]["state"]["enum"].append("draft"),
            "answer 200 .state: may be one of",
        ),
        (
            lambda one: one["paths"][MERGES]["post"]["responses"].pop("201"),
            "POST /projects/{id}/merge_requests: answer 201: is not published",
        ),
    ],
)
def test_each_contradiction_is_told(change: Callable[[dict[str, Any]], object], told: str) -> None:
    document = published()
    change(document)
    differences = COMPARE(OURS, document).differences
    assert any(told in line for line in differences), differences


def test_an_answer_without_a_schema_is_told_as_open() -> None:
    document = published()
    document["paths"][MERGES]["get"]["responses"]["200"].pop("content")
    compared = COMPARE(OURS, document)
    assert compared.differences == ()
    assert "GET /projects/{id}/merge_requests: answer 200: has no schema" in compared.open


def test_a_downloaded_file_is_compared(tmp_path: Path) -> None:
    document = published()
    answer(document, ONE, "get", "200")["properties"].pop("iid")
    file = tmp_path / "openapi_v3.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    done = subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("GitLab 19.5\ndiffers: GET /projects/{id}/merge_requests/{merge_request_iid}: answer")


def test_the_contract_is_what_its_script_writes() -> None:
    command = [sys.executable, str(ROOT / "scripts/write_gitlab_contract.py")]
    assert json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) == OURS
