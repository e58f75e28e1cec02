"""What a project asks for in `[tool.graphmend]` of its `pyproject.toml`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.settings_files import default_root, described, mentions, read_toml, upward

LOG_CALLS = ("guard", "warnings", "once")
GUARDS = ("assert", "skip", "advice")

# Patterns are compiled where they are used: most runs need none, and the commit hook waits for each.
_CODE = r"GM[0-9]{0,3}"
_NAME = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
_MODEL = f"{_NAME}:{_NAME}"
_VERSION = r"([0-9]{1,4})\.([0-9]{1,4})(\.[0-9]+)?"

TITLE_NAMES = ("repository", "sites", "files")


class PullRequestSettings(NamedTuple):
    """What `graphmend pr` is asked for. `base` is the forge's default branch when it is None.

    `title` and `body` are texts with `$names` in them: those of `TITLE_NAMES`, and `$report` in the body.
    """

    enabled: bool = True
    base: str | None = None
    branch: str = "graphmend/fix-graph-breaks"
    title: str | None = None
    body: str | None = None
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    draft: bool = False


class SeenCalls(NamedTuple):
    """What a function held from statement to statement in a recorded run, as `trace.document.Watched` tells it.

    `statements` are their keys with first and last lines in the run, `broken` the lines that broke graphs there, and
    `called` those that led to such lines in other functions.
    """

    path: str
    function: str
    broken: tuple[int, ...]
    statements: tuple[tuple[str, int, int], ...]
    facts: tuple[str, ...]
    calls: tuple[str, ...]
    called: tuple[int, ...] = ()


class Settings(NamedTuple):
    """Frozen settings of one run. `target_torch` is (major, minor).

    `trace` names the file of a recorded run. `only_sites` are the path, code, function and first line of the sites that
    may be fixed, None for all; `seen_types` are what locals and attributes of `self` were in it: path, function,
    name, and an annotation that says so, which is a hint and no proof. `seen_functions` are path and name of functions
    that Dynamo traced, `seen_calls` what functions with breaks held while they ran without torch.compile. No project
    sets these, but commands that are given a trace do. `see_suppressed` finds what comments suppress, too.
    """

    root: Path
    select: tuple[str, ...] = ("GM",)
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    unsafe_fixes: bool = False
    opaque: bool = False
    one_path: bool = False
    helpers: str | None = None
    module_bases: tuple[str, ...] = ()
    log_calls: str = "guard"
    guards: str = "assert"
    target_torch: tuple[int, int] | None = None
    models: tuple[str, ...] = ()
    pull_request: PullRequestSettings = PullRequestSettings()
    trace: str | None = None
    only_sites: tuple[tuple[str, str, str, str], ...] | None = None
    seen_types: tuple[tuple[str, str, str, str], ...] = ()
    seen_functions: frozenset[tuple[str, str]] = frozenset()
    seen_calls: tuple[SeenCalls, ...] = ()
    see_suppressed: bool = False


class Overrides(NamedTuple):
    """What a command line puts over a project's settings. `select` and `ignore` hold codes with commas between."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe_fixes: bool | None = None
    config: Path | None = None
    opaque: bool | None = None


def overridden_settings(overrides: Overrides, known_codes: Callable[[], Collection[str]], start: Path) -> Settings:
    """The project's settings at `start` with `overrides` on them; SettingsError if either cannot be used."""
    settings = load_settings(start, config=overrides.config, known_codes=known_codes)
    if overrides.select:
        settings = settings._replace(select=_split_codes(overrides.select, known_codes(), "--select"), ignore=())
    if overrides.ignore:
        ignored = _split_codes(overrides.ignore, known_codes(), "--ignore")
        settings = settings._replace(ignore=(*settings.ignore, *ignored))
    if overrides.unsafe_fixes is not None:
        settings = settings._replace(unsafe_fixes=overrides.unsafe_fixes)
    if overrides.opaque is not None:
        settings = settings._replace(opaque=overrides.opaque)
    return settings


def load_settings(
    start: Path, *, config: Path | None = None, known_codes: Callable[[], Collection[str]] | None = None
) -> Settings:
    """The settings that hold at `start`, a file or folder that need not exist.

    They come from the nearest `pyproject.toml` at or above `start` that has a `[tool.graphmend]` table, or from
    `config`, which must have one. `root` is that file's folder; with `config`, or where no file has a table, it is the
    nearest folder with a `pyproject.toml` inside the git repository, the top of the repository, or the current folder
    (for what stands outside of that, its own folder).
    `known_codes` is asked only if the table names rule codes. SettingsError if a file cannot be read or a setting
    cannot be used.
    """
    start = Path(os.path.abspath(start))
    if config is not None:
        table = _graphmend_table(config, read_toml(config))
        if table is None:
            raise SettingsError(f"{config}: has no [tool.graphmend] table; add one, or omit --config")
        return _settings(default_root(start), table, config, known_codes)
    for folder in upward(start):
        pyproject = folder / "pyproject.toml"
        if mentions(pyproject, b"graphmend"):
            table = _graphmend_table(pyproject, read_toml(pyproject))
            if table is not None:
                return _settings(folder, table, pyproject, known_codes)
    root = default_root(start)
    return Settings(root=root, target_torch=_own_target_torch(root))


def checked_codes(codes: Sequence[str], known: Collection[str], where: str) -> tuple[str, ...]:
    """The codes as they are; SettingsError for one that is no prefix of a known code."""
    for code in codes:
        if not re.fullmatch(_CODE, code) or not any(one.startswith(code) for one in known):
            families = {one[:3] for one in known}
            hint = _did_you_mean(code.upper(), {*known, *families}) if looks_like_a_code(code) else ""
            raise SettingsError(f"{where}: unknown rule code `{code}`{hint}; `graphmend rules` lists all codes")
    return tuple(codes)


def _split_codes(values: Sequence[str], known: Collection[str], option: str) -> tuple[str, ...]:
    return checked_codes([code.strip() for value in values for code in value.split(",") if code.strip()], known, option)


def looks_like_a_code(word: str) -> bool:
    """True for what may be a slip for a code: `E501` is another tool's, and no slip for `GM501`."""
    letters = re.match(r"[^\d]*", word.upper())
    return letters is not None and letters[0] in {"GM", "G", "M", "MG", "GN", "GMM", "GGM"}


def with_target_torch(settings: Settings, version: str) -> Settings:
    """The settings with the lowest torch that `--target-torch` names; SettingsError if it is no version."""
    return settings._replace(target_torch=_version(version, "--target-torch"))


def selects(settings: Settings, code: str, path: str) -> bool:
    """Whether a finding with this code in this file is asked for. The longer prefix wins, `ignore` on equal length.

    `path` is relative to the root, with forward slashes.
    """
    selected = max((len(prefix) for prefix in settings.select if code.startswith(prefix)), default=-1)
    ignored = max((len(prefix) for prefix in settings.ignore if code.startswith(prefix)), default=-1)
    if selected <= ignored:
        return False
    return not any(
        code.startswith(codes) and matches_glob(path, pattern) for pattern, codes in settings.per_file_ignores
    )


def matches_glob(path: str, pattern: str) -> bool:
    """Whether a path, relative to the root, matches: the whole path, its last part, or a folder above it."""
    from fnmatch import fnmatchcase

    pattern = pattern.removeprefix("./").rstrip("/")
    parts = path.split("/")
    heads = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
    if "/" in pattern:
        patterns = (pattern, pattern.removeprefix("**/"))
        return any(fnmatchcase(head, one) for head in heads for one in patterns)
    return any(fnmatchcase(part, pattern) for part in parts)


def _settings(
    root: Path, table: Mapping[str, object], file: Path, known_codes: Callable[[], Collection[str]] | None
) -> Settings:
    where = f"{file}: [tool.graphmend]"
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _READERS:
            raise SettingsError(f"{where} has no setting `{key}`{_did_you_mean(key, _READERS)}; see the documentation")
        values[key.replace("-", "_")] = _READERS[key](value, f"{where} {key}")
    if known_codes is not None:
        _check_all_codes(values, where, known_codes)
    if "helpers" in values:
        _check_helpers(root, values["helpers"], f"{where} helpers")
    if "target_torch" not in values:
        values["target_torch"] = _own_target_torch(root)
    return Settings(root=root, **values)


def _check_helpers(root: Path, path: str, where: str) -> None:
    if not (root / path).parent.joinpath("__init__.py").is_file():
        raise SettingsError(f"{where}: {path} is not in a package: there is no `__init__.py` beside it")
    if not (root / path).is_file():
        raise SettingsError(f"{where}: there is no {path}; create an empty file there and add it to git")
    if (root / path).resolve() != root.resolve() / path:
        raise SettingsError(f"{where}: {path} is or lies behind a symbolic link; name the file itself")


def _check_all_codes(values: Mapping[str, Any], where: str, known_codes: Callable[[], Collection[str]]) -> None:
    named = [(key, values[key]) for key in ("select", "ignore") if values.get(key)]
    named += [("per-file-ignores", codes) for _, codes in values.get("per_file_ignores", ())]
    if any(code != "GM" for _, codes in named for code in codes):
        known = known_codes()
        for key, codes in named:
            checked_codes(codes, known, f"{where} {key}")


def _strings(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SettingsError(f"{where} must be a list of strings, not {described(value)}")
    return tuple(value)


def _codes(value: object, where: str) -> tuple[str, ...]:
    codes = _strings(value, where)
    for code in codes:
        if not re.fullmatch(_CODE, code):
            raise SettingsError(f'{where}: `{code}` is not a rule code or prefix; write "GM1" or "GM101"')
    return codes


def _per_file_ignores(value: object, where: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise SettingsError(f'{where} must be a table such as {{ "tests/*" = ["GM2"] }}, not {described(value)}')
    return tuple((pattern, _codes(codes, f'{where}."{pattern}"')) for pattern, codes in value.items())


def _boolean(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise SettingsError(f"{where} must be true or false, not {described(value)}")
    return value


def _one_of(choices: Sequence[str]) -> Callable[[object, str], str]:
    def read(value: object, where: str) -> str:
        if not isinstance(value, str) or value not in choices:
            allowed = ", ".join(f'"{choice}"' for choice in choices)
            raise SettingsError(f"{where} must be one of {allowed}, not {described(value)}")
        return value

    return read


def _matching(pattern: str, example: str) -> Callable[[object, str], tuple[str, ...]]:
    def read(value: object, where: str) -> tuple[str, ...]:
        texts = _strings(value, where)
        for text in texts:
            if not re.fullmatch(pattern, text):
                raise SettingsError(f'{where}: `{text}` must look like "{example}"')
        return texts

    return read


def _version(value: object, where: str) -> tuple[int, int]:
    match = re.fullmatch(_VERSION, value) if isinstance(value, str) else None
    if match is None:
        raise SettingsError(f'{where} must be a string such as "2.4", not {described(value)}')
    return int(match[1]), int(match[2])


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SettingsError(f"{where} must be a string, not {described(value)}")
    return value


def _python_file(value: object, where: str) -> str:
    import keyword

    text = _text(value, where).removeprefix("./")
    names = text.removesuffix(".py").split("/")
    bad = [name for name in names if not name.isidentifier() or keyword.iskeyword(name)]
    if bad or not text.endswith(".py") or names[-1] == "__init__":
        raise SettingsError(f'{where} must be a module of a package of this project, such as "pkg/_helpers.py"')
    return text


def _template(*names: str) -> Callable[[object, str], str]:
    def read(value: object, where: str) -> str:
        from string import Template

        text = _text(value, where)
        try:
            Template(text).substitute(dict.fromkeys(names, ""))
        except (KeyError, ValueError) as error:
            known = ", ".join(f"${name}" for name in names)
            raise SettingsError(f"{where} may contain {known}, and $$ for a dollar sign; not {error}") from error
        return text

    return read


def _pull_request(value: object, where: str) -> PullRequestSettings:
    if not isinstance(value, dict):
        raise SettingsError(f'{where} must be a table such as {{ labels = ["compile"] }}, not {described(value)}')
    values = {}
    for key, one in value.items():
        if key not in _PULL_REQUEST:
            raise SettingsError(f"{where} has no setting `{key}`{_did_you_mean(key, _PULL_REQUEST)}")
        values[key] = _PULL_REQUEST[key](one, f"{where} {key}")
    return PullRequestSettings(**values)


_PULL_REQUEST: Mapping[str, Callable[[object, str], Any]] = {
    "enabled": _boolean,
    "base": _text,
    "branch": _text,
    "title": _template(*TITLE_NAMES),
    "body": _template(*TITLE_NAMES, "report"),
    "labels": _strings,
    "reviewers": _strings,
    "draft": _boolean,
}

_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "select": _codes,
    "ignore": _codes,
    "per-file-ignores": _per_file_ignores,
    "exclude": _strings,
    "include": _strings,
    "unsafe-fixes": _boolean,
    "opaque": _boolean,
    "one-path": _boolean,
    "helpers": _python_file,
    "module-bases": _matching(_NAME, "mylib.layers.BaseModule"),
    "log-calls": _one_of(LOG_CALLS),
    "guards": _one_of(GUARDS),
    "target-torch": _version,
    "models": _matching(_MODEL, "package.module:factory"),
    "pull-request": _pull_request,
    "trace": _text,
}


def _did_you_mean(word: str, choices: Collection[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word[:80], sorted(choices), n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(f'`{one}`' for one in close)}?)" if close else ""


def _own_target_torch(root: Path) -> tuple[int, int] | None:
    pyproject = root / "pyproject.toml"
    data = read_toml(pyproject) if mentions(pyproject, b"torch") else {}
    from graphmend_codemod.core.target_torch import lowest_torch

    try:
        return lowest_torch(root, data)
    except RecursionError as error:
        raise SettingsError(f"{pyproject}: cannot be used: its values are nested too deeply") from error


def named_trace(path: Path) -> str | None:
    """The recorded run that a `pyproject.toml` names; None where it names none or cannot be read."""
    try:
        named = (_graphmend_table(path, read_toml(path)) or {}).get("trace") if mentions(path, b"trace") else None
    except SettingsError:
        return None
    return named if isinstance(named, str) else None


def _graphmend_table(path: Path, data: Mapping[str, Any]) -> Mapping[str, object] | None:
    tools = data.get("tool", {})
    table = tools.get("graphmend") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise SettingsError(f"{path}: tool.graphmend must be a table, not {described(table)}")
    return table
