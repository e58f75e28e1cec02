"""Where the pages of rules are read."""

from __future__ import annotations

import os

DOCUMENTATION = ""
"""The address below which the documentation is published, set with a release; empty where there is none."""

VARIABLE = "GRAPHMEND_DOCS_URL"


def address(code: str, slug: str) -> str | None:
    """The address of a rule's page; None where no documentation is published.

    The environment variable `GRAPHMEND_DOCS_URL` names a copy, such as that of a company's network: the folder `docs`
    of a site that `make site` built, or of a repository on a forge, which shows the Markdown files.
    """
    base = os.environ.get(VARIABLE, DOCUMENTATION).rstrip("/")
    suffix = "md" if "/blob/" in base else "html"
    return f"{base}/rules/{code}-{slug}.{suffix}" if base.startswith(("http://", "https://")) else None
