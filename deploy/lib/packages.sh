# Reads deploy/packages.txt and installs Debian packages. Sourced after steps.sh.
# shellcheck shell=bash

# package_set FILE SET: the entries of one set, one a line, alternatives as "a|b".
package_set() { awk -v set="$2" '$1 == set { print $2 }' "$1"; }

# missing_packages ENTRY...: prints the entries of which no alternative is installed. Takes milliseconds.
missing_packages() {
  local entry name found names=()
  local -A installed=()
  for entry in "$@"; do
    IFS='|' read -r -a alternatives <<<"$entry"
    names+=("${alternatives[@]}")
  done
  while read -r state name; do
    if [ "$state" = "ii" ] || [ "$state" = "hi" ]; then installed[$name]=1; fi
  done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${names[@]}" 2>/dev/null)
  for entry in "$@"; do
    found=
    IFS='|' read -r -a alternatives <<<"$entry"
    for name in "${alternatives[@]}"; do
      if [ -n "${installed[$name]:-}" ]; then found=1; fi
    done
    [ -n "$found" ] || printf '%s\n' "$entry"
  done
}

# has_candidate PACKAGE: whether the machine's own apt sources offer it.
has_candidate() {
  LC_ALL=C apt-cache policy "$1" 2>/dev/null |
    awk '$1 == "Candidate:" && $2 != "(none)" { found = 1 } END { exit !found }'
}

# choose_packages ENTRY...: prints one package for each entry, the first alternative that apt can install.
choose_packages() {
  local entry name chosen
  for entry in "$@"; do
    chosen=
    IFS='|' read -r -a alternatives <<<"$entry"
    for name in "${alternatives[@]}"; do
      if has_candidate "$name"; then
        chosen=$name
        break
      fi
    done
    printf '%s\n' "${chosen:-${alternatives[0]}}"
  done
}

apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 \
    -y --no-install-recommends install "$@"
}

apt_update() { apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 update; }

# install_missing ENTRY...: installs what is missing; says so in a line and fails with the reason.
install_missing() {
  local missing packages
  mapfile -t missing < <(missing_packages "$@")
  if [ "${#missing[@]}" -eq 0 ]; then
    say "Debian packages: all $# are installed"
    return 0
  fi
  require_root "to install ${#missing[@]} Debian packages: ${missing[*]}"
  step "reading the package lists" apt_update || {
    log_tail
    die "apt-get update failed." "Check the network and the entries in /etc/apt, then run this again."
  }
  mapfile -t packages < <(choose_packages "${missing[@]}")
  step "installing ${#packages[@]} Debian packages" apt_install "${packages[@]}" || {
    log_tail
    die "the Debian packages could not be installed: ${packages[*]}" \
      "The lines above are apt's own. When the cause is removed, run this again: it goes on where it stopped."
  }
}
