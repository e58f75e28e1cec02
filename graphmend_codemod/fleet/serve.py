"""The live state of a run in a browser, from this machine alone: `graphmend fleet serve`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from graphmend_codemod.fleet import history, report
from graphmend_codemod.fleet.results import Store

HOST = "127.0.0.1"
_NAMES = frozenset({"127.0.0.1", "localhost"})


def make_server(results: Path, port: int) -> ThreadingHTTPServer:
    """A server of the rows in a file, bound to this machine; port 0 takes a free one. OSError if the port is taken."""
    pages: dict[str, tuple[str, Callable[[Store], str]]] = {
        "/": ("text/html; charset=utf-8", page),
        "/fleet.json": ("application/json", lambda store: report.as_json(list(store.rows()))),
        "/fleet.csv": ("text/csv; charset=utf-8", lambda store: history.as_csv(store.everything())),
    }

    class Handler(BaseHTTPRequestHandler):
        server_version = "graphmend"
        sys_version = ""

        def do_GET(self) -> None:
            """Answer with what the file holds now. Names of other hosts are refused: a web page may point one here."""
            if self.headers.get("Host", "").rpartition(":")[0] not in _NAMES:
                self.send_error(HTTPStatus.FORBIDDEN, "ask for localhost")
                return
            kind, made = pages.get(self.path.partition("?")[0], ("", None))
            if made is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            try:
                store = Store(results)
                try:
                    body = made(store).encode()
                finally:
                    store.close()
            except sqlite3.Error as error:
                self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
                return
            self.send_response(HTTPStatus.OK)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(body))),
                ("Cache-Control", "no-store"),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: a page that looks every two seconds would fill the terminal."""

    return ThreadingHTTPServer((HOST, port), Handler)


def page(store: Store) -> str:
    """The page of the rows that are there, which looks for more."""
    rows = list(store.rows())
    return report.as_html(rows, earlier=history.runs(store.everything()), live=progress(store))


def progress(store: Store) -> str:
    """How far the last run is, and how long it may still take, in one line."""
    run = store.last_run()
    if run is None:
        return "No run has begun."
    done = sum(row.action == run.action for row in store.rows())
    if done >= run.total:
        return f"{run.action}: all {run.total} repositories are done."
    since = f", {run.seconds:.0f} s so far"
    handled = done - run.before
    left = f", about {run.seconds / handled * (run.total - done):.0f} s left" if handled > 0 else ""
    return f"{run.action}: {done} of {run.total} repositories are done{since}{left}."
