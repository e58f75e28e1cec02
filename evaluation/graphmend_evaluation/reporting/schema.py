"""The JSON Schemas of `report.json` and `trace.json`, made from the classes that these hold.

`python -m graphmend_evaluation.reporting.schema` writes them beside this module.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import types
import typing
from pathlib import Path
from typing import Any

from graphmend_codemod.trace.document import SCHEMA as TRACE_SCHEMA
from graphmend_codemod.trace.document import Trace
from graphmend_evaluation.evaluation import EVALUATION_SCHEMA, Evaluation

SCHEMA_FILE = Path(__file__).with_name("report.schema.json")
TRACE_FILE = Path(__file__).with_name("trace.schema.json")

_PRIMITIVES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def report_schema() -> dict[str, Any]:
    """The schema, draft 2020-12. A field with a default may be missing in reports of older versions."""
    return _schema_of(Evaluation, "report.json", EVALUATION_SCHEMA, "An evaluation.")


def trace_schema() -> dict[str, Any]:
    """The same for a trace."""
    return _schema_of(Trace, "trace.json", TRACE_SCHEMA, "The graph breaks of a run.")


def _schema_of(kind: type, file: str, version: int, what: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    top = _reference(kind, definitions)
    definitions[kind.__name__]["properties"]["schema"] = {"const": version}
    definitions[kind.__name__]["required"].append("schema")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"graphmend {file}, version {version}",
        "description": f"{what} New fields may come within a version; what is here keeps its meaning.",
        **top,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """The text of the file about reports."""
    return json.dumps(report_schema(), indent=2) + "\n"


def trace_text() -> str:
    """The text of the file about traces."""
    return json.dumps(trace_schema(), indent=2) + "\n"


def _reference(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}
        definitions[kind.__name__] = _enum(kind) if issubclass(kind, enum.Enum) else _object(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _enum(kind: type[enum.Enum]) -> dict[str, Any]:
    return {"description": inspect.getdoc(kind), "enum": [member.value for member in kind]}


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    return {
        "type": "object",
        "description": inspect.getdoc(kind),
        "properties": {field.name: _schema(hints[field.name], definitions) for field in fields},
        "required": [field.name for field in fields if field.default is dataclasses.MISSING],
    }


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind in _PRIMITIVES:
        return {"type": _PRIMITIVES[kind]}
    if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum)):
        return _reference(kind, definitions)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [{"type": "null"} if one is type(None) else _schema(one, definitions) for one in arguments]}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is tuple:
        items = [_schema(one, definitions) for one in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    raise TypeError(f"no JSON type is known for {kind!r}: add it to {__name__}")


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    TRACE_FILE.write_text(trace_text(), encoding="utf-8")
