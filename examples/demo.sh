#!/usr/bin/env bash
# A copy of examples/tiny_model becomes a git repository and is migrated: what a user does, in seconds.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "$@"; "$@"; }
# 1 says that there is something to fix.
run_findings() { local code=0; say "$@"; "$@" || code=$?; [ "$code" -le 1 ] || exit "$code"; }

cp -R "$here/tiny_model" "$work/"
cd "$work/tiny_model"
git init --quiet
git config user.name "graphmend demo"
git config user.email "demo@localhost"
git add --all
git commit --quiet --message "A small token tagger"

run_findings graphmend check
run_findings graphmend fix --diff
run graphmend migrate --branch graphmend/demo
run git --no-pager log --oneline graphmend/demo
