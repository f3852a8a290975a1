# Messages, timed steps and checks shared by deploy/setup, deploy/quickstart and tests/run. Sourced, not run.
#
# A step prints one line with its duration. Its output goes to $STEP_LOG; when it fails, the last lines
# of that output are shown and the log is named.
# shellcheck shell=bash

PROGRAM=${PROGRAM:-$(basename "$0")}
STEP_LOG=${STEP_LOG:-/dev/null}

say() { printf '%s: %s\n' "$PROGRAM" "$*"; }
warn() { printf '%s: warning: %s\n' "$PROGRAM" "$*" >&2; }

# die MESSAGE [HINT...]: ends the program with exit code 1.
die() {
  printf '%s: error: %s\n' "$PROGRAM" "$1" >&2
  shift
  local hint
  for hint in "$@"; do printf '%s:   %s\n' "$PROGRAM" "$hint" >&2; done
  exit 1
}

usage_error() {
  printf '%s: error: %s\n' "$PROGRAM" "$1" >&2
  printf '%s:   %s\n' "$PROGRAM" "See $PROGRAM --help." >&2
  exit 2
}

# Microseconds since the epoch, whatever the decimal separator of the locale is.
now_us() { printf '%s' "${EPOCHREALTIME/[.,]/}"; }

# seconds_since MICROSECONDS: the time since then, as "12.3".
seconds_since() {
  local tenths=$((($(now_us) - $1 + 50000) / 100000))
  printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

log_tail() {
  [ -f "$STEP_LOG" ] || return 0
  tail -n "${1:-15}" "$STEP_LOG" | sed "s/^/  | /" >&2
  printf '%s:   %s\n' "$PROGRAM" "The full output is in $STEP_LOG." >&2
}

# step TEXT COMMAND [ARG...]: runs the command, prints "TEXT ... 1.2 s"; returns the command's exit code.
step() {
  local text=$1 start status=0
  shift
  start=$(now_us)
  printf '%s: %s ... ' "$PROGRAM" "$text"
  printf '\n=== %s: %s\n' "$text" "$*" >>"$STEP_LOG"
  "$@" >>"$STEP_LOG" 2>&1 </dev/null || status=$?
  if [ "$status" -eq 0 ]; then
    printf '%s s\n' "$(seconds_since "$start")"
  else
    printf 'failed after %s s\n' "$(seconds_since "$start")"
  fi
  return "$status"
}

PROGRESS_EVERY=${PROGRESS_EVERY:-15} # seconds

# step_with_progress TEXT PROGRESS COMMAND [ARG...]: as step, for what takes minutes. While the command runs,
# a line says how far it is, every PROGRESS_EVERY seconds: what the command PROGRESS prints, with the time.
# The command is ended with the program.
step_with_progress() {
  local text=$1 progress=$2 start pid status=0 at next=$((SECONDS + PROGRESS_EVERY))
  shift 2
  start=$(now_us)
  printf '%s: %s ...\n' "$PROGRAM" "$text"
  printf '\n=== %s: %s\n' "$text" "$*" >>"$STEP_LOG"
  "$@" >>"$STEP_LOG" 2>&1 </dev/null &
  pid=$!
  # An asynchronous command would not hear Ctrl-C.
  trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    [ "$SECONDS" -ge "$next" ] || continue
    next=$((SECONDS + PROGRESS_EVERY))
    at=$("$progress" || true)
    printf '%s:   %s (%s s)\n' "$PROGRAM" "${at:-still at it}" "$(seconds_since "$start")"
  done
  wait "$pid" || status=$?
  trap - INT TERM
  if [ "$status" -eq 0 ]; then
    printf '%s:   done in %s s\n' "$PROGRAM" "$(seconds_since "$start")"
  else
    printf '%s:   failed after %s s\n' "$PROGRAM" "$(seconds_since "$start")"
  fi
  return "$status"
}

# ninja_progress: the last "[12/372] Building ..." in the log, as "12 of 372".
ninja_progress() {
  tail -n 50 "$STEP_LOG" | sed -n 's/^\[\([0-9]*\)\/\([0-9]*\)\].*/\1 of \2 steps/p' | tail -n 1
}

# Number of compilers that may run at the same time: one for each core, with 1.5 GiB of memory for each.
build_jobs() {
  local cores kib by_memory
  cores=$(nproc)
  kib=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
  by_memory=$((kib / (1536 * 1024)))
  [ "$by_memory" -ge 1 ] || by_memory=1
  if [ "$by_memory" -lt "$cores" ]; then printf '%s' "$by_memory"; else printf '%s' "$cores"; fi
}
