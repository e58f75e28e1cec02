"""Write the OpenAPI description of what graphmend asks of GitLab, after the documentation of GitLab's REST API (v4).

    python scripts/write_gitlab_contract.py > tests/forge/contracts/gitlab.json

GitLab's own description is under another licence than this repository, so this one is our own. Fields that graphmend
does not read are left out, and answers may have more of them. `scripts/check_gitlab_contract.py` compares the two.
"""

from __future__ import annotations

import json
import sys
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
NAMES: Schema = {"type": "array", "items": TEXT}
EITHER: Schema = {"oneOf": [TEXT, NUMBER]}
CHECKED_AGAINST = "GitLab 19.5, doc/api/openapi/openapi_v3.yaml of gitlabhq/gitlabhq at 045bf8777ea8"


def main() -> None:
    """Write it to standard output."""
    json.dump(document(), sys.stdout, indent=1, sort_keys=True)
    print()


_MANY = "/projects/{id}/merge_requests"
_ONE, _NOTES = f"{_MANY}/{{merge_request_iid}}", f"{_MANY}/{{noteable_id}}/notes"


def document() -> Schema:
    """The whole description."""
    paths = {**_projects(), **_merge_requests(), **_notes()}
    for path, operations in paths.items():
        names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        project_id = TEXT if path.startswith(_NOTES) else EITHER
        operations["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": project_id if name == "id" else NUMBER}
            for name in names
        ]
    info = {
        "title": "GitLab, as graphmend uses it",
        "version": "4",
        "description": f"Compared with the published description: {CHECKED_AGAINST}.",
    }
    return {"openapi": "3.0.3", "info": info, "paths": paths}


def _projects() -> dict[str, Schema]:
    access = _nullable({"type": "object", "required": ["access_level"], "properties": {"access_level": NUMBER}})
    project = _object(
        id=NUMBER,
        path_with_namespace=TEXT,
        http_url_to_repo=TEXT,
        ssh_url_to_repo=TEXT,
        default_branch=_nullable(TEXT),
        archived=FLAG,
        permissions=_object(project_access=access, group_access=access),
    )
    project["required"].remove("default_branch")  # for those who may read the code
    fork = _object(id=NUMBER, path_with_namespace=TEXT)  # without permissions: it is asked for by its number
    return {
        "/projects/{id}": {"get": _operation(200, project)},
        "/projects/{id}/fork": {"post": _operation(201, fork, body={})},
        "/projects/{id}/forks": {"get": _operation(200, _list(fork), _query(owned=FLAG))},
        "/users": {"get": _operation(200, _list(_object(id=NUMBER, username=TEXT)), _query(username=TEXT))},
    }


def _merge_requests() -> dict[str, Schema]:
    merge_request = _object(
        id=NUMBER,
        iid=NUMBER,
        web_url=TEXT,
        state={"type": "string", "enum": ["opened", "closed", "merged", "locked"]},
        title=TEXT,
        description=_nullable(TEXT),
        source_branch=TEXT,
        target_branch=TEXT,
        source_project_id=_nullable(NUMBER),  # of a fork that was deleted
        target_project_id=NUMBER,
        draft=FLAG,
        labels=NAMES,
    )
    new = {
        "source_branch": TEXT,
        "target_branch": TEXT,
        "title": TEXT,
        "description": TEXT,
        "target_project_id": NUMBER,
    }
    change = {
        "title": TEXT,
        "description": TEXT,
        "target_branch": TEXT,
        "state_event": {"type": "string", "enum": ["close", "reopen"]},
        "add_labels": NAMES,
        "reviewer_ids": {"type": "array", "items": NUMBER},
    }
    wanted = _query(
        state=_enum("opened", "closed", "locked", "merged", "all"),
        source_branch=TEXT,
        order_by=_enum("created_at", "updated_at", "title"),
        sort=_enum("asc", "desc"),
    )
    return {
        _MANY: {
            "get": _operation(200, _list(merge_request), wanted),
            "post": _operation(201, merge_request, body=new, required=["source_branch", "target_branch", "title"]),
        },
        _ONE: {"get": _operation(200, merge_request), "put": _operation(200, merge_request, body=change)},
    }


def _notes() -> dict[str, Schema]:
    note = _object(id=NUMBER, body=TEXT, system=FLAG)
    return {
        _NOTES: {
            "get": _operation(200, _list(note), _query()),
            "post": _operation(201, note, body={"body": TEXT}, required=["body"]),
        },
        f"{_NOTES}/{{note_id}}": {"put": _operation(200, note, body={"body": TEXT})},
    }


def _operation(
    status: int,
    answer: Schema,
    query: list[Schema] | None = None,
    *,
    body: Schema | None = None,
    required: list[str] | None = None,
) -> Schema:
    responses: Schema = {str(status): _content(answer)}
    for code in (400, 401, 403, 404, 409, 422, 429, 500):
        responses[str(code)] = _content({"type": "object", "properties": {"message": {}, "error": TEXT}})
    operation: Schema = {"responses": responses, "parameters": query or []}
    if body is not None:
        schema: Schema = {"type": "object", "properties": body, "additionalProperties": False}
        if required:
            schema["required"] = required
        operation["requestBody"] = {"required": bool(body), "content": {"application/json": {"schema": schema}}}
    return operation


def _content(schema: Schema) -> Schema:
    return {"description": "", "content": {"application/json": {"schema": schema}}}


def _query(**names: Schema) -> list[Schema]:
    paging = {"page": NUMBER, "per_page": NUMBER}
    return [{"name": name, "in": "query", "schema": schema} for name, schema in {**names, **paging}.items()]


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "required": sorted(properties), "properties": properties}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _nullable(schema: Schema) -> Schema:
    return {**schema, "nullable": True}


def _enum(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


if __name__ == "__main__":
    main()
