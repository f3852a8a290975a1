# The private prefix: Debian's libllama for releases that cannot install it. Sourced after apt_state.sh.
#
# The packages of Debian unstable come from a second apt state (apt_state.sh) and are unpacked without running
# any of their scripts (unpack_prefix). The machine's own packages are not touched.
#
# Layout of PREFIX
#   usr/                    the packages, as they are
#   include/llama, include/minja
#                           just the headers that berth-worker is compiled with (usr/include has more)
#   share/berth/vulkan-software.json
#                           driver description of the software Vulkan device
#   berth-packages.txt      name, version, architecture, sha256 of each package; written first, as a mark
#   berth-prefix.stamp      which sets are in, and a digest of all names and sizes; written last
# shellcheck shell=bash

PREFIX_FORMAT=1

# Set by deploy/setup: the prefix, the list of packages, the lock file, and whether to write it.
PREFIX=${PREFIX:?}
PACKAGES=${PACKAGES:?}
LOCK=${LOCK:-}
UPDATE_LOCK=${UPDATE_LOCK:-}

# made_by_setup DIR: whether it may be replaced or removed.
made_by_setup() {
  [ -e "$1/berth-packages.txt" ] || { [ -d "$1" ] && [ -z "$(ls -A "$1")" ]; }
}

# prefix_digest DIR: digest of the names, kinds, sizes and link targets of all that is in it. Takes milliseconds.
prefix_digest() {
  (cd "$1" && find . -mindepth 1 -path ./berth-prefix.stamp -prune -o \
    -type d -printf '%P d\n' -o -printf '%P %y %s %l\n' | LC_ALL=C sort | sha256sum | cut -d' ' -f1)
}

stamp_value() { sed -n "s/^$2=//p" "$1/berth-prefix.stamp" 2>/dev/null || true; }

# prefix_state SET...: prints "complete", "absent", "damaged", or "lacks SET...".
prefix_state() {
  local set have lacks=()
  if [ ! -e "$PREFIX/berth-prefix.stamp" ]; then
    if [ -e "$PREFIX" ]; then printf 'damaged'; else printf 'absent'; fi
    return
  fi
  if [ "$(stamp_value "$PREFIX" format)" != "$PREFIX_FORMAT" ] ||
    [ "$(stamp_value "$PREFIX" digest)" != "$(prefix_digest "$PREFIX")" ]; then
    printf 'damaged'
    return
  fi
  have=" $(stamp_value "$PREFIX" sets) "
  for set in "$@"; do
    case $have in *" $set "*) ;; *) lacks+=("$set") ;; esac
  done
  if [ "${#lacks[@]}" -gt 0 ]; then printf 'lacks %s' "${lacks[*]}"; else printf 'complete'; fi
}

# publish_prefix: puts $PREFIX.new in the place of $PREFIX. What runs from the old one keeps its open files.
publish_prefix() {
  rm -rf "$PREFIX.old" || return 1
  if [ -e "$PREFIX" ]; then mv -T "$PREFIX" "$PREFIX.old" || return 1; fi
  mv -T "$PREFIX.new" "$PREFIX" || return 1
  rm -rf "$PREFIX.old"
}

# recover_prefix: an interrupted run may have left parts beside the prefix. Never touches what is not ours.
recover_prefix() {
  local dir
  for dir in "$PREFIX" "$PREFIX.new" "$PREFIX.old"; do
    if { [ -e "$dir" ] || [ -L "$dir" ]; } && { [ -L "$dir" ] || ! made_by_setup "$dir"; }; then
      die "$dir is there and was not made by deploy/setup; it is left alone." \
        "Move it away, or choose another place with --prefix."
    fi
  done
  if [ ! -e "$PREFIX" ] && [ -e "$PREFIX.old/berth-prefix.stamp" ]; then mv -T "$PREFIX.old" "$PREFIX"; fi
  rm -rf "$PREFIX.new" "$PREFIX.old"
}

# compare_with_lock: warns about versions other than the lock's; ends the program when a package has the
# version of the lock and other contents.
compare_with_lock() {
  local other changed
  [ -e "$LOCK" ] || return 0
  changed=$(awk '/^#/ { next } NR == FNR { sum[$1 " " $2 " " $3] = $4; next }
                 ($1 " " $2 " " $3) in sum && sum[$1 " " $2 " " $3] != $4 { printf "%s%s %s", sep, $1, $2; sep = ", " }' \
    "$LOCK" "$CACHE/apt/closure")
  if [ -n "$changed" ]; then
    die "packages have the version of $LOCK but other contents: $changed" \
      "They are signed, but a version must not change its contents. Ask who runs your mirror;" \
      "when the change is known to be right, run $PROGRAM --update-lock."
  fi
  other=$(awk '/^#/ { next } NR == FNR { version[$1] = $2; next }
               !($1 in version) { printf "%s%s %s (not in the lock)", sep, $1, $2; sep = ", "; next }
               version[$1] != $2 { printf "%s%s %s (lock: %s)", sep, $1, $2, version[$1]; sep = ", " }' \
    "$LOCK" "$CACHE/apt/closure")
  if [ -n "$other" ]; then
    warn "the mirror has other versions than deploy/llama.lock, they are taken: $other"
  fi
}

lock_digest() { sha256sum <"$LOCK" | cut -d' ' -f1; }

# older_than_lock: whether the prefix has an older libllama or ggml than the lock asks for. Only a lock that is
# new to the prefix is looked at, as the mirror may have nothing newer.
older_than_lock() {
  local name have want
  [ -e "$LOCK" ] && [ "$(stamp_value "$PREFIX" lock)" != "$(lock_digest)" ] || return 1
  for name in libllama0 libggml0; do
    have=$(awk -v name="$name" '$1 == name { print $2 }' "$PREFIX/berth-packages.txt")
    want=$(awk -v name="$name" '$1 == name { print $2 }' "$LOCK")
    if [ -n "$have" ] && [ -n "$want" ] && dpkg --compare-versions "$have" lt "$want"; then return 0; fi
  done
  return 1
}

# write_lock: records the closure; packages of sets that are not in it keep their lines.
write_lock() {
  local merged
  merged=$(mktemp)
  {
    echo "# Packages of the private prefix with libllama, as tested: name, version, architecture, sha256."
    echo "# Written by deploy/setup --update-lock. Other versions on the mirror are taken, with a warning."
    awk '/^#/ { next } NR == FNR { line[$1] = $0; next } { line[$1] = $0 } END { for (name in line) print line[name] }' \
      <(cat "$LOCK" 2>/dev/null || true) "$CACHE/apt/closure" | LC_ALL=C sort
  } >"$merged"
  cat "$merged" >"$LOCK"
  rm -f "$merged"
}

NETWORK_HINT="Check the network, the proxy settings and the mirror in /etc/apt, then run this again."

# index_hint: what to do about the last lines of the log.
index_hint() {
  case $(tail -n 15 "$STEP_LOG") in
    *NO_PUBKEY* | *EXPKEYSIG*)
      printf 'The keys of the archive are not up to date: apt-get install debian-archive-keyring brings them.'
      ;;
    *"is expired"*)
      printf 'The mirror is out of date: use another one. If it is frozen on purpose (a snapshot), say so to apt: '
      printf 'Acquire::Check-Valid-Until "false"; in a file in /etc/apt/apt.conf.d.'
      ;;
    *) printf '%s' "$NETWORK_HINT" ;;
  esac
}

# make_prefix SETS: resolves, downloads, unpacks and publishes.
make_prefix() {
  local sets=$1 set components=main packages=()
  for set in $sets; do
    mapfile -t -O "${#packages[@]}" packages < <(package_set "$PACKAGES" "$set")
    if [ "$set" = cuda ]; then components="main contrib non-free"; fi
  done
  mkdir -p "$(dirname "$PREFIX")" || die "the directory for $PREFIX cannot be made." "Choose another place with --prefix."
  write_apt_state "$components"
  step "reading the package index of Debian $PREFIX_SUITE" prefix_apt apt-get update || {
    log_tail
    die "the package index of Debian $PREFIX_SUITE could not be read; $PREFIX was not changed." "$(index_hint)"
  }
  step "resolving ${packages[*]}" resolve_packages "${packages[@]}" || {
    log_tail
    die "apt cannot resolve these packages in Debian $PREFIX_SUITE: ${packages[*]}; $PREFIX was not changed." \
      "Unstable may be in the middle of a transition: try again later, or bring your own llama.cpp (docs/install.md)."
  }
  if [ -n "$UPDATE_LOCK" ]; then write_lock; else compare_with_lock; fi
  step "downloading $(wc -l <"$CACHE/apt/closure") packages" download_packages "${packages[@]}" || {
    log_tail
    die "the packages could not be downloaded; $PREFIX was not changed." "$NETWORK_HINT"
  }
  step "unpacking into $PREFIX" "$HERE/lib/unpack_prefix" "$PREFIX" "$CACHE" "$sets" "$LOCK" || {
    rm -rf "$PREFIX.new"
    log_tail
    die "the packages could not be unpacked; $PREFIX was not changed." \
      "Is there room? $(df -h --output=avail "$(dirname "$PREFIX")" | tail -n 1 | tr -d ' ') are free; the software Vulkan device takes 450 MB."
  }
  publish_prefix || die "the new prefix could not be moved from $PREFIX.new to $PREFIX." "Run this again: it recovers."
  prefix_apt apt-get -qq autoclean >>"$STEP_LOG" 2>&1 || true
}
