"""The rows of a fleet as one HTML page that needs nothing else, and as JSON."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from graphmend_codemod import __version__
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.fleet.history import Run, burndown
from graphmend_codemod.fleet.jobs import CHECK
from graphmend_codemod.fleet.results import CHANGED, Row
from graphmend_codemod.reporting.report import plural

SCHEMA_VERSION = 1
_BLOCKING = 15


@dataclass(frozen=True)
class Totals:
    """The whole in numbers. Breaks count only repositories that were measured."""

    repositories: int
    failed: int
    changed: int
    sites: int
    fixable: int
    fixed: int
    measured: int
    breaks_before: int
    breaks_after: int


def totals(rows: Sequence[Row]) -> Totals:
    """Sums over repositories: of one that was checked and then changed, the change counts, and any failure."""
    failed = {row.location for row in rows if row.failed}
    rows = list({row.location: row for row in sorted(rows, key=lambda row: row.action != CHECK)}.values())
    measured = [row for row in rows if row.breaks_before is not None and row.breaks_after is not None]
    return Totals(
        repositories=len(rows),
        failed=len(failed),
        changed=sum(row.status in CHANGED for row in rows),
        sites=sum(row.sites for row in rows),
        fixable=sum(row.fixable for row in rows),
        fixed=sum(row.fixed for row in rows),
        measured=len(measured),
        breaks_before=sum(row.breaks_before or 0 for row in measured),
        breaks_after=sum(row.breaks_after or 0 for row in measured),
    )


def headline(rows: Sequence[Row]) -> str:
    """The answer in one line."""
    told = totals(rows)
    parts = [
        "1 repository" if told.repositories == 1 else f"{told.repositories} repositories",
        f"{plural(told.sites, 'site')} found",
    ]
    if told.fixable and not told.fixed:
        parts.append(f"{told.fixable} can be fixed")
    if told.fixed:
        parts.append(f"{told.fixed} fixed")
    if told.measured:
        parts.append(f"graph breaks {told.breaks_before} -> {told.breaks_after}")
    parts.append(f"{told.failed} failed" if told.failed else "none failed")
    return ", ".join(parts)


@dataclass(frozen=True)
class Blocking:
    """What keeps sites: a reason, how many others differ from it in names and numbers alone, and how often they do."""

    reason: str
    alike: int
    sites: int
    repositories: int

    def __str__(self) -> str:
        return self.reason if not self.alike else f"{self.reason} and {self.alike} like it"


def blocking(rows: Sequence[Row]) -> list[Blocking]:
    """What keeps sites most often. Reasons that differ in names and numbers alone count as one."""
    kinds: dict[str, Counter[str]] = {}
    repositories: Counter[str] = Counter()
    for row in rows:
        for reason, count in row.left:
            kinds.setdefault(_kind(reason), Counter())[reason] += count
        repositories.update({_kind(reason) for reason, _ in row.left})
    found = [
        Blocking(reasons.most_common(1)[0][0], len(reasons) - 1, reasons.total(), repositories[kind])
        for kind, reasons in kinds.items()
    ]
    return sorted(found, key=lambda one: (-one.sites, -one.repositories, one.reason))[:_BLOCKING]


def _kind(reason: str) -> str:
    code, _, words = reason.partition(": ")
    return f"{code}: {re.sub(r'[0-9]+', '0', re.sub(r'`[^`]*`', '``', words))}"


def as_json(rows: Sequence[Row]) -> str:
    """All of it for programs."""
    document = {
        "schema": SCHEMA_VERSION,
        "graphmend": __version__,
        "totals": dataclasses.asdict(totals(rows)),
        "blocking": [dataclasses.asdict(one) for one in blocking(rows)],
        "repositories": [dataclasses.asdict(row) for row in rows],
    }
    return json.dumps(document, indent=2) + "\n"


def as_html(rows: Sequence[Row], *, earlier: Sequence[Run] = (), live: str = "") -> str:
    """One page: the answer, what failed, earlier runs, what blocks most, and a table to sort.

    With `live`, a line about a run that goes on, the page looks for what is new every two seconds.
    """
    told = totals(rows)
    cards: list[tuple[str, object]] = [
        ("repositories", told.repositories),
        ("with fixes" if all(row.action == CHECK for row in rows) else "changed", told.changed),
        ("failed", told.failed),
    ]
    cards += [("sites", told.sites), ("fixable", told.fixable), ("fixed", told.fixed)]
    if told.measured:
        cards.append(("graph breaks", f"{told.breaks_before} → {told.breaks_after}"))
    shown = "".join(f"<div class=card><b>{value}</b>{name}</div>" for name, value in cards)
    reasons = "".join(
        f"<tr><td>{_words(str(one))}<td class=n>{one.sites}<td class=n>{one.repositories}" for one in blocking(rows)
    )
    blocked = (
        "<h2>What blocks most</h2><div class=wide><table class=sortable><thead><tr><th>reason<th class=n>sites"
        f"<th class=n>repositories</thead><tbody>{reasons}</tbody></table></div>"
        if reasons
        else ""
    )
    heads = "".join(f"<th{' class=n' if name in _NUMBERS else ''}>{name}" for name in _COLUMNS)
    body = "".join(_table_row(row) for row in rows)
    script = _SCRIPT + _LIVE if live else _SCRIPT
    policy = f"default-src 'none'; style-src {_digest(_STYLE)}; script-src {_digest(script)}; base-uri 'none'"
    if live:
        policy += "; connect-src 'self'"
    state = f"<p class=live>{_text(live)} <a href=fleet.csv>CSV</a> <a href=fleet.json>JSON</a></p>" if live else ""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        f'<meta http-equiv=Content-Security-Policy content="{policy}">'
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>graphmend: {_text(headline(rows))}</title><style>{_STYLE}</style>"
        f"<main><h1>{_text(headline(rows))}</h1>{state}<div class=cards>{shown}</div>{burndown(earlier)}{blocked}"
        "<h2>Repositories</h2>"
        "<p>Click a column's name to sort by it.</p>"
        f"<div class=wide><table class=sortable><thead><tr>{heads}</thead><tbody>{body}</tbody></table></div>"
        f"</main><footer>graphmend {__version__}</footer><script>{script}</script></html>\n"
    )


_COLUMNS = (
    "repository",
    "action",
    "status",
    "sites",
    "fixable",
    "fixed",
    "breaks",
    "pull request",
    "seconds",
    "memory MB",
    "note",
)


_NUMBERS = frozenset({"sites", "fixable", "fixed", "breaks", "seconds", "memory MB"})


def _table_row(row: Row) -> str:
    breaks = "" if row.breaks_before is None else f"{row.breaks_before} → {row.breaks_after}"
    link = ""
    if row.pull_request.startswith(("https://", "http://")):
        link = f'<a href="{html.escape(row.pull_request, quote=True)}">{_text(row.pull_request.rpartition("/")[2])}</a>'
    note = row.error or "; ".join(row.remarks)
    numbers = "".join(f"<td class=n>{value}" for value in (row.sites, row.fixable, row.fixed, breaks))
    kind = _colour(row)
    return (
        f"<tr><td>{_text(row.name)}<td>{_text(row.action)}<td class={kind}>{_text(row.status)}{numbers}<td>{link}"
        f"<td class=n>{row.seconds:.1f}<td class=n>{row.memory / 1e6:.0f}<td>{_words(note)}"
    )


def _colour(row: Row) -> str:
    """Green is a repository without open sites alone: sites that cannot be fixed are nothing to be glad of."""
    if row.failed:
        return "bad"
    if row.status in CHANGED:
        return "changed"
    return "good" if row.sites == row.fixed else "left"


def _text(words: str) -> str:
    return html.escape(printable(words), quote=True)


def _words(text: str) -> str:
    """Words with code in backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _text(text))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:78rem;padding:0 1rem;color:#1c2330;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}.cards{display:flex;gap:.8rem;flex-wrap:wrap}
.card{border:1px solid #d5dae3;border-radius:.5rem;padding:.6rem 1rem;min-width:6rem;color:#566}
.card b{display:block;font-size:1.4rem;color:#1c2330}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #e4e8ee;vertical-align:top;overflow-wrap:break-word}
th{cursor:pointer;background:#f4f6f9;white-space:nowrap}.n{text-align:right;white-space:nowrap}.wide{overflow-x:auto}
code{font-size:.92em;background:#f1f3f7;padding:.05rem .25rem;border-radius:.25rem;overflow-wrap:anywhere}
td:first-child{min-width:11rem}.bad,.changed,.good,.left{white-space:nowrap}.left{color:#566;font-style:italic}
.bar{fill:#6b7fd7}.barlabel{font-size:11px;fill:#566}.live{color:#566}
@media(max-width:40rem){body{margin:1rem auto}th,td{padding:.25rem .35rem}td:first-child{min-width:7rem}}
.bad{color:#b3261e;font-weight:600}.changed{color:#8a5a00}.good{color:#1b6e3c}footer{margin:2rem 0;color:#667}
@media(prefers-color-scheme:dark){body,.card b{background:#14181f;color:#e6e9ef}
.card{color:#a9b2c0}th,code{background:#1e2530}
td,th,.card{border-color:#333c4a}.bad{color:#ff8a80}.changed{color:#ffcc66}.good{color:#7ddc9a}a{color:#8ab4f8}
.left,.live,.barlabel{color:#a9b2c0;fill:#a9b2c0}}
"""
_SCRIPT = """
const sorted={};
const sort=(table,column,down)=>{
const key=row=>{const text=row.cells[column].textContent,number=parseFloat(text);return isNaN(number)?text:number};
const body=table.tBodies[0];
body.append(...[...body.rows].sort((a,b)=>{const x=key(a),y=key(b);
const order=typeof x===typeof y?(x<y?-1:x>y?1:0):typeof x==='number'?1:-1;return down?-order:order}))};
document.addEventListener('click',event=>{const head=event.target.closest('table.sortable thead th');if(!head)return;
const table=head.closest('table'),number=[...document.querySelectorAll('table.sortable')].indexOf(table);
const last=sorted[number],down=!(last&&last[0]===head.cellIndex&&last[1]);
sorted[number]=[head.cellIndex,down];sort(table,head.cellIndex,down)});
"""
_LIVE = """
setInterval(async()=>{try{
const text=await(await fetch(location.pathname)).text(),page=new DOMParser().parseFromString(text,'text/html');
const fresh=page.querySelector('main');if(!fresh)return;
document.querySelector('main').replaceWith(fresh);document.title=page.title;
document.querySelectorAll('table.sortable').forEach((table,number)=>{if(sorted[number])sort(table,...sorted[number])});
}catch(error){}},2000);
"""
