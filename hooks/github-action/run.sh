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
  arguments=("${known[@]}" "${arguments[@]}")
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

trace() {
  if [[ ${#program[@]} == 0 ]]; then
    echo "::error::graphmend: mode trace needs the input command, one argument a line"
    output result failed
    return 2
  fi
  graphmend trace --quiet -o graphmend-trace.json "${arguments[@]}" -- "${program[@]}" 2> >(harmless >&2) | harmless
  local code=${PIPESTATUS[0]}
  if [[ $code != 0 ]]; then # the program's own: breaks of a run that failed say little
    output result failed
    return "$code"
  fi
  graphmend trace --show graphmend-trace.json "${known[@]}" --format github 2> >(harmless >&2)
  code=$?
  graphmend trace --show graphmend-trace.json --format markdown >>"$GITHUB_STEP_SUMMARY"
  case $code in
    0) output result clean ;;
    1) output result findings ;;
    *) output result failed ;;
  esac
  [[ $code == 1 && $FAIL != true ]] && return 0
  return "$code"
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
lines "${COMMAND:-}" program
known=()
[[ -n ${BASELINE:-} ]] && known=(--baseline "$BASELINE")
if [[ $MODE != pull-request && -n ${BASELINE:-} && ! -f $BASELINE ]]; then # written here, it would be lost, and nothing ever fail
  echo "::error::graphmend: the baseline $(harmless <<<"$BASELINE") does not exist; write it with --baseline and commit it"
  output result failed
  exit 2
fi
case "$MODE" in
  check) check ;;
  trace) trace ;;
  pull-request) pull_request ;;
  *)
    echo "::error::graphmend: mode must be check, trace or pull-request, not $MODE"
    exit 2
    ;;
esac
