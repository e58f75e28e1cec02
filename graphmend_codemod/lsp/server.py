"""The server on standard input and output. Checks run one at a time beside the loop that answers the editor."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from graphmend_codemod import __version__
from graphmend_codemod.core.errors import GraphmendError
from graphmend_codemod.lsp import documents
from graphmend_codemod.lsp.documents import Checked

_WAIT = 0.3  # seconds without a keystroke before a document is checked again

_CHANGES = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_SAVE,
)
_KINDS = [types.CodeActionKind.QuickFix, "source.fixAll.graphmend"]


class Server(LanguageServer):
    """Holds what was found in each open document, for the version that was checked last."""

    def __init__(self) -> None:
        super().__init__("graphmend", __version__)
        self.checked: dict[str, Checked] = {}
        self.worker = ThreadPoolExecutor(1, "graphmend")

    async def update(self, uri: str) -> None:
        """Check a document once nothing has changed in it for a moment, and publish what is found."""
        document = self.workspace.get_text_document(uri)
        version, path = document.version, to_fs_path(uri)
        await asyncio.sleep(_WAIT)
        if path is None or self.workspace.get_text_document(uri).version != version:
            return
        text = document.source
        try:
            loop = asyncio.get_running_loop()
            checked = await loop.run_in_executor(self.worker, documents.check, Path(path), text)
        except GraphmendError as error:
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"graphmend: {error}"))
            return
        self.checked[uri] = checked
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, documents.diagnostics(checked), version)
        )

    def current(self, uri: str) -> Checked | None:
        """What was found in the document as it is now; None where it has changed since."""
        checked = self.checked.get(uri)
        same = checked is not None and checked.text == self.workspace.get_text_document(uri).source
        return checked if same else None


def make_server() -> Server:
    """A server with its handlers."""
    server = Server()

    async def changed(
        told: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams | types.DidSaveTextDocumentParams,
    ) -> None:
        await server.update(told.text_document.uri)

    for kind in _CHANGES:
        server.feature(kind)(changed)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(told: types.DidCloseTextDocumentParams) -> None:
        uri = told.text_document.uri
        server.checked.pop(uri, None)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=_KINDS))
    def code_actions(asked: types.CodeActionParams) -> list[types.CodeAction]:
        checked = server.current(asked.text_document.uri)
        found = [] if checked is None else list(documents.actions(checked, asked.text_document.uri, asked.range))
        only = asked.context.only
        return [each for each in found if only is None or any(_is_a(each.kind, kind) for kind in only)]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(asked: types.HoverParams) -> types.Hover | None:
        checked = server.current(asked.text_document.uri)
        return None if checked is None else documents.hover(checked, asked.position)

    return server


def _is_a(kind: types.CodeActionKind | str | None, wanted: types.CodeActionKind | str) -> bool:
    """True for the kind that is wanted, or one below it: `source.fixAll.graphmend` is a `source.fixAll`."""
    name, parent = (str(getattr(each, "value", each)) for each in (kind, wanted))
    return name == parent or name.startswith(f"{parent}.")
