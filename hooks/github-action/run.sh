#!/usr/bin/env bash
# One step of the action. What users set comes in variables, never as text of this script.
set -uo pipefail

lines() { # the lines of a text, as an array named after the second argument
  local -n array="$2"
  array=()
  while IFS= read -r line; do [[ -n $line ]] && array+=("$line"); done <<<"$1"
}

output() { printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; }

harmless() { # without what the runner takes for a command: names and messages of others are in it
  sed -e 's/##\[/## [/g' -e 's/^\([[:space:]]*\)::/\1: :/'
}

again() { # the same check, in another form; with --exit-zero, 1 can only be a crash
  graphmend check "${arguments[@]}" --exit-zero --output-format "$1" -- "${paths[@]}" 2>/dev/null
}

check() {
  graphmend check "${arguments[@]}" --output-format github -- "${paths[@]}" 2> >(harmless >&2)
  local code=$?
  again markdown >>"$GITHUB_STEP_SUMMARY" || [[ $code -gt 1 ]] || code=2
  [[ $SARIF != true ]] || again sarif >graphmend.sarif || [[ $code -gt 1 ]] || code=2
  case $code in
    0) output result clean ;;
    1) output result findings ;;
    *) output result failed ;;
  esac
  [[ $code == 1 && $FAIL != true ]] && return 0
  return $code
}

pull_request() {
  local evaluate=--no-evaluate told code
  [[ $EVALUATE == true ]] && evaluate=--evaluate
  told="$(graphmend pr . "$evaluate" "${arguments[@]}" 2> >(harmless >&2))"
  code=$?
  [[ -n $told ]] && printf '%s\n' "$told" | harmless
  if [[ $code != 0 ]]; then
    output result failed
    return $code
  fi
  local first="${told%%$'\n'*}" url=""
  [[ $first == *http* ]] && url="http${first#*http}"
  output result "${first%% http*}"
  output url "$url"
  printf '%s\n' "$told" >>"$GITHUB_STEP_SUMMARY"
}

lines "${PATHS:-.}" paths
lines "${ARGS:-}" arguments
case "$MODE" in
  check) check ;;
  pull-request) pull_request ;;
  *)
    echo "::error::graphmend: mode must be check or pull-request, not $MODE"
    exit 2
    ;;
esac
