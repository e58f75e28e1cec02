#!/usr/bin/env bash
# Install graphmend from this very commit into an environment of its own, which sees the packages of PYTHON (torch, for one).
set -euo pipefail
source_folder="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
environment="$RUNNER_TEMP/graphmend"
"${PYTHON:-python3}" -m venv --system-site-packages "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check "${source_folder}[bot]"
echo "$environment/bin" >>"$GITHUB_PATH"
