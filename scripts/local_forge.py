"""A forge on this machine to try the bot at: `python scripts/local_forge.py [REPO]`; Ctrl-C ends it.

It serves git over HTTP and as much of GitHub's API as `graphmend pr` uses, with one repository, `octo/zoo`: REPO's last
commit, or the example's. What the pull request looks like is written as a page. Needs the extra `dev`.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.forge.github_fake import GitHubFake, Pull, Repo  # noqa: E402
from tests.forge.server import running  # noqa: E402

_NAME, _TOKEN = "octo/zoo", "local"
_LOOK_EVERY = 0.5
_PAGE = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><style>
body{{font:14px/1.5 "Noto Sans",Helvetica,Arial,sans-serif;color:#1f2328;max-width:860px;margin:2rem auto}}
code{{font:85% ui-monospace,Menlo,monospace;background:#eff1f3;padding:.2em .4em;border-radius:6px}}
pre{{background:#f6f8fa;padding:1rem;overflow:auto}}pre code{{background:none;padding:0}}
table{{border-collapse:collapse}}td,th{{border:1px solid #d1d9e0;padding:6px 13px}}
</style><h1>{title}</h1><p>{state}, {head} to {base}</p><hr>{text}{comments}</html>
"""


def main() -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "repository", nargs="?", type=Path, metavar="REPO", help="a git repository [default: the example]"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="local-forge-") as name:
        folder = Path(name)
        root = folder / "served"
        _serve(options.repository or _example(folder / "zoo"), root / f"{_NAME}.git")
        with running(root) as server:
            server.users[_TOKEN] = "bot"
            fake = server.api = GitHubFake(server)
            fake.repos[_NAME] = Repo(_NAME, server.git(_NAME, "symbolic-ref", "--short", "HEAD"))
            _tell(server.url, fake.url)
            with contextlib.suppress(KeyboardInterrupt):
                _watch(fake.repos[_NAME], folder)
    return 0


def _tell(url: str, api: str) -> None:
    address = f"{url}/{_NAME} --forge github --api-url {api}"
    print(f"{_NAME} is at {url}. In another terminal:\n")
    print(f"  export GITHUB_TOKEN={_TOKEN}")
    for options in ("--no-evaluate --dry-run", "--no-evaluate"):
        print(f"  graphmend pr {address} {options}")
    print(f"  git clone http://bot:{_TOKEN}@{url.partition('://')[2]}/{_NAME}.git\n", flush=True)


def _example(folder: Path) -> Path:
    shutil.copytree(ROOT / "examples" / "tiny_model", folder, ignore=shutil.ignore_patterns("__pycache__"))
    who = ("-c", "user.name=A Maintainer", "-c", "user.email=maintainer@example.org")
    for command in (("init", "--quiet", "--initial-branch=main"), ("add", "--all"), (*who, "commit", "-qm", "Begin")):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    return folder


def _serve(repository: Path, bare: Path) -> None:
    bare.parent.mkdir(parents=True)
    subprocess.run(["git", "clone", "--quiet", "--bare", "--no-hardlinks", str(repository), str(bare)], check=True)
    for setting in ("http.receivepack", "uploadpack.allowFilter"):
        subprocess.run(["git", "-C", str(bare), "config", setting, "true"], check=True)


def _watch(repo: Repo, folder: Path) -> None:
    shown: dict[int, str] = {}
    while True:
        for pull in repo.pulls:
            page = _page(pull)
            if shown.get(pull.number) != page:
                file = folder / f"pull-{pull.number}.html"
                file.write_text(page, encoding="utf-8")
                print(f"pull request {pull.number}, {pull.state}: {pull.title}\n  {file}", flush=True)
                shown[pull.number] = page
        time.sleep(_LOOK_EVERY)


def _page(pull: Pull) -> str:
    # The text may hold HTML; the page's policy lets nothing of it run or load.
    render = MarkdownIt("gfm-like", {"linkify": False, "html": True}).render
    comments = "".join(f"<hr>{render(text)}" for text in pull.comments)
    text = render(pull.body)
    return _PAGE.format(
        title=render(pull.title).strip().removeprefix("<p>").removesuffix("</p>"),
        state=pull.state,
        head=pull.head,
        base=pull.base,
        text=text,
        comments=comments,
    )


if __name__ == "__main__":
    sys.exit(main())
