"""Build the documentation site from the Markdown files as they are in the repository, without the network.

    python scripts/build_site.py [FOLDER]

The files keep their folders, so links between them work on the site as they do in the repository; what they link to
beside them, such as images and examples, is copied, too. A link that leads nowhere fails the build.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / "build/site-source"
_CODE = re.compile(r"(?ms)^([ \t]*)(```+|~~~+).*?^\1\2[ \t]*$|`[^`\n]*`")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"(?m)^#+ +(.*?)(?: +#+)?$")
_FOLDERS = ("docs", "hooks", "evaluation")


def pages(root: Path = ROOT) -> list[Path]:
    """The Markdown files of the site, relative to `root`."""
    inside = (path for folder in _FOLDERS for path in (root / folder).rglob("*.md"))
    return sorted(path.relative_to(root) for path in (*root.glob("*.md"), *inside))


def links(page: Path, root: Path = ROOT) -> Iterator[tuple[str, Path, str]]:
    """The links of a page that lead into the repository: as written, the file relative to `root`, the anchor."""
    for target in _LINK.findall(_CODE.sub("", (root / page).read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        yield target, Path(os.path.normpath(page.parent / path)) if path else page, anchor


def anchors(page: Path, root: Path = ROOT) -> set[str]:
    """The anchors of a page's headings."""
    text = re.sub(r"(?ms)^```.*?^```", "", (root / page).read_text(encoding="utf-8"))
    words = (re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower() for heading in _HEADING.findall(text))
    return {re.sub(r"[-\s]+", "-", word) for word in words}


def broken_links(root: Path = ROOT) -> list[str]:
    """One line for each link that leads nowhere."""
    found = []
    for page in pages(root):
        for target, path, anchor in links(page, root):
            if not (root / path).is_file():
                found.append(f"{page}: {target}: there is no file {path}")
            elif anchor and path.suffix == ".md" and anchor not in anchors(path, root):
                found.append(f"{page}: {target}: {path} has no heading #{anchor}")
    return found


def stage(root: Path = ROOT, folder: Path = STAGE) -> None:
    """Copy the pages, and the files that they link to, into `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    files = {*pages(root)}
    files |= {path for page in pages(root) for _, path, _ in links(page, root) if (root / path).is_file()}
    for path in sorted(files):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, folder / path)


def main() -> int:
    """Build the site; 1 with a line for each broken link."""
    site = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else ROOT / "site"
    for line in (broken := broken_links()):
        print(line, file=sys.stderr)
    if broken:
        return 1
    stage()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    try:
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(site), strict=True))
    except Abort as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{site}/index.html; to search, serve it: python3 -m http.server --directory {site}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
