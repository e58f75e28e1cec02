"""Write `docs/rules/` from what the rules say about themselves.

python scripts/document_rules.py            write the pages
python scripts/document_rules.py --check    exit with 1 if a page is missing, outdated or left over
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from graphmend_codemod.reporting import rules as pages
from graphmend_codemod.rules.registry import all_rules

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "rules"


def wanted_pages() -> dict[str, str]:
    """The text of every page by its file name."""
    rules = all_rules()
    return {"index.md": pages.markdown_index(rules)} | {pages.page_name(rule): pages.markdown(rule) for rule in rules}


def outdated(folder: Path, wanted: dict[str, str]) -> list[str]:
    """Names of pages that are missing, differ, or belong to no rule."""
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))


def main(arguments: list[str]) -> int:
    """Write or compare; the exit code says whether pages differed when they were only compared."""
    parser = argparse.ArgumentParser(description="Write docs/rules/ from the rules.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if a page is not up to date")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the pages are [default: docs/rules]")
    args = parser.parse_args(arguments)
    wanted = wanted_pages()
    names = outdated(args.folder, wanted)
    if args.check:
        for name in names:
            print(f"{args.folder / name}: not up to date; run `python scripts/document_rules.py`", file=sys.stderr)
        return 1 if names else 0
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in wanted:
            (args.folder / name).write_text(wanted[name], encoding="utf-8", newline="\n")
        else:
            (args.folder / name).unlink()
    print(f"{len(wanted)} pages in {args.folder}, {len(names)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
