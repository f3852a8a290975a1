# Node.js and the npm packages of the client tests. Sourced after steps.sh.
# shellcheck shell=bash

# has_node: whether any node and npm are there, wherever they come from.
has_node() { command -v node >/dev/null && command -v npm >/dev/null; }

# npm_missing FOLDER: whether the folder lacks what its lock file names. npm writes its own copy of the lock
# last, so that an installation that broke off is not taken for a whole one.
npm_missing() {
  local done=$1/node_modules/.package-lock.json
  [ ! -e "$done" ] || [ "$1/package-lock.json" -nt "$done" ]
}

# npm_install FOLDER: installs exactly what the lock file names, from the registry that npm is configured with.
npm_install() {
  npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund --omit-lockfile-registry-resolved \
    --fetch-retries 2 --fetch-retry-mintimeout 1000 --fetch-retry-maxtimeout 5000 --fetch-timeout 60000
}
