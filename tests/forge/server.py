"""A forge on this machine: git over HTTP (`git http-backend`) with authentication, an API, and faults on demand."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import re
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from tests.forge.contract import Contract


@dataclass
class Fault:
    """What goes wrong with the next `times` requests that match.

    With a `status`, that is the answer, with `body` if given; without one the connection is cut: after `kept` bytes of
    the request, or (`done`) when it was carried out.
    """

    method: str
    pattern: str
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "fault"
    done: bool = False
    times: int = 1
    body: bytes | None = None


class Api(Protocol):
    """The part of a forge that is not git."""

    contract: Contract
    prefix: str

    def answer(self, method: str, target: str, body: Any, user: str) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON and headers."""
        ...

    def user_of(self, headers: Mapping[str, str]) -> str | None:
        """Who asks; None for a token that is not valid."""
        ...


class Server:
    """Repositories below `root` as `owner/name.git`. `users` are names by token; `readers` may not push."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.users: dict[str, str] = {}
        self.readers: set[str] = set()
        self.faults: list[Fault] = []
        self.seen: list[str] = []
        self.sent = 0  # bytes of answers
        self.events: dict[str, Callable[[], object]] = {}  # what happens, once, before a request that matches
        self.api: Api | None = None
        self.lock = threading.RLock()
        self._http = _HTTPServer(("127.0.0.1", 0), _Handler)
        self._http.forge = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def fault(self, method: str, path: str) -> Fault | None:
        """The fault that hits a request."""
        with self.lock:
            for fault in self.faults:
                if fault.times and fault.method == method and re.search(fault.pattern, path):
                    fault.times -= 1
                    return fault
        return None

    def git(self, path: str, *arguments: str) -> str:
        """Git in one of the repositories."""
        command = ["git", "-C", str(self.root / f"{path}.git"), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def branches(self, path: str) -> dict[str, str]:
        """Branches and the commits that they are at."""
        listing = self.git(path, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads")
        return dict(line.split() for line in listing.splitlines())


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    forge: Server

    def handle_error(self, request: object, client_address: object) -> None:
        """Cut connections are wanted here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms, between its headers and its body
    server: _HTTPServer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PATCH(self) -> None:
        self._handle()

    def do_PUT(self) -> None:
        self._handle()

    def _handle(self) -> None:
        forge = self.server.forge
        path = urlsplit(self.path).path
        with forge.lock:
            matching = [one for one in forge.events if re.search(one, f"{self.command} {self.path}")]
            events = [forge.events.pop(one) for one in matching]
        for event in events:
            event()
        fault = forge.fault(self.command, self.path)
        with forge.lock:
            forge.seen.append(f"{self.command} {self.path}")
        if fault is not None and fault.status is None and not fault.done:
            self.rfile.read(10)
            self._cut()
            return
        body = self._body()
        if fault is not None and fault.status is not None and not fault.done:
            told = json.dumps({"message": fault.message}).encode() if fault.body is None else fault.body
            self._send(fault.status, told, dict(fault.headers))
            return
        if forge.api is not None and path.startswith(forge.api.prefix):
            status, data, headers = self._asked(forge.api, body)
        else:
            status, data, headers = self._git(path, body)
        if fault is not None and fault.status is None:
            self._cut()
            return
        if fault is not None and fault.body is not None:
            data = fault.body
        self._send(status, data, headers)

    def _asked(self, api: Api, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        forge = self.server.forge
        user = api.user_of({name.lower(): value for name, value in self.headers.items()})
        if user is None:
            return 401, json.dumps({"message": "Bad credentials"}).encode(), {}
        with forge.lock:
            status, answer, headers = api.answer(self.command, self.path, json.loads(body or b"null"), user)
            data = json.dumps(answer).encode()
            api.contract.check(self.command, self.path, body, status, data, dict(self.headers.items()))
        return status, data, headers

    def _git(self, path: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        forge = self.server.forge
        user = _basic_user(self.headers.get("Authorization", ""), forge.users)
        if user is None:
            return 401, b"who are you?", {"WWW-Authenticate": 'Basic realm="forge"'}
        if "git-receive-pack" in self.path and user in forge.readers and not path.startswith(f"/{user}/"):
            return 403, b"you may not push", {}
        variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROJECT_ROOT": str(forge.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": urlsplit(self.path).query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_USER": user,
            "REMOTE_ADDR": "127.0.0.1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=variables, capture_output=True, check=False)
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        return int(headers.pop("Status", "200").split()[0]), data, headers

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def _send(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.server.forge.sent += len(data)
        self.wfile.write(data)

    def _cut(self) -> None:
        """Reset the connection."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def _basic_user(header: str, users: Mapping[str, str]) -> str | None:
    kind, _, coded = header.partition(" ")
    if kind != "Basic":
        return None
    return users.get(base64.b64decode(coded).decode().partition(":")[2])


@contextlib.contextmanager
def running(root: Path) -> Iterator[Server]:
    """A server that is ended."""
    server = Server(root)
    try:
        yield server
    finally:
        server.stop()
