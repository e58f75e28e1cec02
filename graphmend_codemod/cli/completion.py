"""`graphmend completion SHELL`: a script that completes commands, options and their choices."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from graphmend_codemod.cli import options
from graphmend_codemod.core.terminal import say


class Completed(NamedTuple):
    """What a command offers: options with their help, and the choices of those that have some."""

    help: str
    options: tuple[tuple[str, str], ...]
    choices: tuple[tuple[str, tuple[str, ...]], ...]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = options.command(
        subparsers,
        "completion",
        "print a completion script for a shell",
        "Print a script that completes commands, options and their choices.",
        (
            "examples:\n"
            '  eval "$(graphmend completion bash)"                  in ~/.bashrc\n'
            '  graphmend completion zsh > "${fpath[1]}/_graphmend"\n'
            "  graphmend completion fish > ~/.config/fish/completions/graphmend.fish\n"
        ),
    )
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="the shell that reads it")


def run(args: argparse.Namespace) -> int:
    """Print the script and return the exit code."""
    from graphmend_codemod.cli.main import whole_parser

    say(_SCRIPTS[args.shell](_commands(whole_parser())))
    return 0


def _commands(parser: argparse.ArgumentParser) -> dict[str, Completed]:
    found = {"": _offers(parser, "")}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            found |= {name: _offers(one, helps.get(name, "")) for name, one in sorted(action.choices.items())}
    return found


def _offers(parser: argparse.ArgumentParser, told: str) -> Completed:
    listed, choices = [], []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        names = action.option_strings or [""]
        listed += [(name, (action.help or "").partition("\n")[0].replace("%%", "%")) for name in names if name]
        if action.choices:
            choices += [(name, tuple(map(str, action.choices))) for name in names]
    return Completed(told, tuple(listed), tuple(choices))


def _bash(commands: dict[str, Completed]) -> str:
    cases, chosen = [], []
    for name, offered in commands.items():
        words = " ".join(option for option, _ in offered.options)
        words = f"{words} {' '.join(filter(None, commands))}" if not name else words
        words += "".join(f" {' '.join(values)}" for option, values in offered.choices if not option)
        cases.append(f'        {name or chr(34) * 2}) words="{words}" ;;')
        chosen += [f'        "{name} {option}") words="{" ".join(v)}" ;;' for option, v in offered.choices if option]
    return "\n".join(
        [
            "_graphmend() {",
            '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
            '    local command="" words="" word',
            '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            '        [[ $word != -* ]] && { command="$word"; break; }',
            "    done",
            '    case "$command" in',
            *cases,
            "    esac",
            '    case "$command $previous" in',
            *chosen,
            "    esac",
            '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
            '    [[ $current != -* && -n $command ]] && COMPREPLY+=($(compgen -f -- "$current"))',
            "}",
            "complete -o filenames -F _graphmend graphmend",
        ]
    )


def _zsh(commands: dict[str, Completed]) -> str:
    lines = ["#compdef graphmend", "_graphmend() {", "    local command=${words[2]}", "    if (( CURRENT == 2 )); then"]
    listed = " ".join(_quoted(f"{name}:{offered.help}") for name, offered in commands.items() if name)
    lines += [f"        local -a commands=({listed})", "        _describe command commands", "        return", "    fi"]
    lines.append('    case "$command" in')
    for name, offered in commands.items():
        if name:
            choices = dict(offered.choices)
            specs = [_zsh_option(option, told, choices.get(option)) for option, told in offered.options]
            last = f"'*: :({' '.join(choices[''])})'" if "" in choices else "'*: :_files'"
            lines.append(f"        {name}) shift words; (( CURRENT-- )); _arguments {' '.join([*specs, last])} ;;")
    lines += ["    esac", "}", 'if [ "$funcstack[1]" = "_graphmend" ]; then', '    _graphmend "$@"', "else"]
    return "\n".join([*lines, "    compdef _graphmend graphmend", "fi"])


def _zsh_option(option: str, told: str, values: tuple[str, ...] | None) -> str:
    escaped = told.replace("[", "(").replace("]", ")").replace(":", "\\:")
    return _quoted(f"{option}[{escaped}]" + (f": :({' '.join(values)})" if values else ""))


def _fish(commands: dict[str, Completed]) -> str:
    lines = ["complete -c graphmend -f"]
    for name, offered in commands.items():
        condition = f"__fish_seen_subcommand_from {name}" if name else "__fish_use_subcommand"
        if name:
            start = "complete -c graphmend -n __fish_use_subcommand"
            lines.append(f"{start} -a {name} -d {_quoted(offered.help)}")
            if "" not in dict(offered.choices):
                lines.append(f"complete -c graphmend -n {_quoted(condition)} -F")
        choices = dict(offered.choices)
        for option, told in offered.options:
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            values = f" -x -a {_quoted(' '.join(choices[option]))}" if option in choices else ""
            lines.append(f"complete -c graphmend -n {_quoted(condition)} {flag} -d {_quoted(told)}{values}")
        if "" in choices:
            lines.append(f"complete -c graphmend -n {_quoted(condition)} -f -a {_quoted(' '.join(choices['']))}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "") + "'"


_SCRIPTS: dict[str, Callable[[dict[str, Completed]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
