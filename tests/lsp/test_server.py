"""The language server, as an editor talks to it: over pipes, with a real process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from graphmend_codemod.lsp import documents

_TEXT = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        "größe \N{GRINNING FACE}"; print("shape", x.shape)
        print(x.mean())
        seen = print("twice")
        return x, seen
"""
_FIXED = """\
        "größe \N{GRINNING FACE}"
        if not torch.compiler.is_compiling():
            print("shape", x.shape)
            print(x.mean())
"""
_CHECKOUT = str(Path(__file__).parent.parent.parent)


class _Editor:
    """A client that remembers diagnostics by document and version."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        def published(told: types.PublishDiagnosticsParams) -> None:
            self.told.put_nowait(told)

    async def diagnostics(self) -> types.PublishDiagnosticsParams:
        return await asyncio.wait_for(self.told.get(), 30)

    async def open(self, path: Path, text: str) -> str:
        item = types.TextDocumentItem(path.as_uri(), "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return item.uri

    async def actions(self, uri: str, line: int, only: list[str] | None = None) -> list[types.CodeAction]:
        place = types.Range(types.Position(line, 0), types.Position(line, 99))
        context = types.CodeActionContext([], only=only)
        document = types.TextDocumentIdentifier(uri)
        asked = types.CodeActionParams(document, place, context)
        found = await self.client.text_document_code_action_async(asked)
        return [each for each in found or () if isinstance(each, types.CodeAction)]


def talk(folder: Path, conversation: Callable[[_Editor], Awaitable[None]]) -> None:
    async def run() -> None:
        client = LanguageClient("test", "1")
        editor = _Editor(client)
        environment = {**os.environ, "PYTHONPATH": _CHECKOUT}
        await client.start_io(sys.executable, "-m", "graphmend_codemod", "lsp", cwd=folder, env=environment)
        opening = types.InitializeParams(types.ClientCapabilities(), root_uri=folder.as_uri())
        await client.initialize_async(opening)
        client.initialized(types.InitializedParams())
        try:
            await conversation(editor)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()  # type: ignore[no-untyped-call]

    asyncio.run(run())


def made(before: str, edits: list[types.TextEdit]) -> str:
    lines = before.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda each: each.range.start.line, reverse=True):
        lines[edit.range.start.line : edit.range.end.line] = [edit.new_text]
    return "".join(lines)


def text_edits(action: types.CodeAction, uri: str) -> list[types.TextEdit]:
    assert action.edit is not None
    assert action.edit.changes is not None
    return list(action.edit.changes[uri])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(_TEXT)
    return path


def test_an_editor_gets_diagnostics_fixes_and_the_page_of_the_rule(model: Path) -> None:
    async def conversation(editor: _Editor) -> None:
        uri = await editor.open(model, _TEXT)
        told = await editor.diagnostics()
        assert [(each.code, each.range.start.line, each.severity) for each in told.diagnostics] == [
            ("GM201", 6, types.DiagnosticSeverity.Warning),
            ("GM202", 7, types.DiagnosticSeverity.Warning),
            ("GM201", 8, types.DiagnosticSeverity.Information),
        ]
        assert told.diagnostics[0].range.start.character == _TEXT.splitlines()[6].index("print") + 1  # UTF-16
        quick, everything = await editor.actions(uri, 6)
        assert (quick.title, quick.is_preferred) == ("graphmend: fix GM201 log-call", True)
        assert 'is_compiling():\n            print("shape"' in made(_TEXT, text_edits(quick, uri))
        assert _FIXED in made(_TEXT, text_edits(everything, uri))
        assert [each.title for each in await editor.actions(uri, 0, ["source.fixAll"])] == [everything.title]
        document = types.TextDocumentIdentifier(uri)
        shown = await editor.client.text_document_hover_async(types.HoverParams(document, types.Position(7, 10)))
        assert shown is not None
        assert isinstance(shown.contents, types.MarkupContent)
        assert shown.contents.value.startswith("# tensor-log (GM202)")

        change = types.TextDocumentContentChangeWholeDocument(made(_TEXT, text_edits(everything, uri)))
        versioned = types.VersionedTextDocumentIdentifier(2, uri)
        editor.client.text_document_did_change(types.DidChangeTextDocumentParams(versioned, [change]))
        told = await editor.diagnostics()
        assert (told.version, [each.message.partition("\n")[2] for each in told.diagnostics]) == (
            2,
            ["not applied: its return value is used"],
        )

    talk(model.parent, conversation)


def test_settings_hold_in_an_editor_too(model: Path) -> None:
    settings = model.parent / "pyproject.toml"
    settings.write_text("[tool.graphmend]\nselect = ['GM202']\n")
    assert [each.code for each in documents.check(model, _TEXT).findings] == ["GM202"]
    settings.write_text("[tool.graphmend]\nexclude = ['model.py']\n")
    assert documents.check(model, _TEXT).findings == ()


def test_text_that_cannot_be_parsed_has_no_diagnostics(model: Path) -> None:
    assert documents.diagnostics(documents.check(model, _TEXT + "def (")) == []


def test_edits_touch_the_lines_that_differ_alone() -> None:
    (edit,) = documents.edits("a\nb\nc\n", "a\nx\ny\nc\n")
    assert (edit.range.start.line, edit.range.end.line, edit.new_text) == (1, 2, "x\ny\n")
