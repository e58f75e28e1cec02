#!/usr/bin/env bash
# One step of the action. What users set comes in variables, never as text of this script.
set -uo pipefail

lines() { # the lines of a text, as an array named after the second argument
  local -n array="$2"
  array=()
  while IFS= read -r line; do [[ -n $line ]] && array+=("$line"); done <<<"$1"
}

output() { printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; }

check() {
  graphmend check "${arguments[@]}" --output-format github -- "${paths[@]}"
  local code=$?
  graphmend check "${arguments[@]}" --output-format markdown -- "${paths[@]}" >>"$GITHUB_STEP_SUMMARY"
  [[ $SARIF == true ]] && graphmend check "${arguments[@]}" --output-format sarif -- "${paths[@]}" >graphmend.sarif
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
  told="$(graphmend pr . "$evaluate" "${arguments[@]}")"
  code=$?
  [[ -n $told ]] && printf '%s\n' "$told"
  if [[ $code -gt 1 ]]; then
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
