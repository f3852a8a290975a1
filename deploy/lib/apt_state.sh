# A second apt state, beside the machine's own, that sees Debian unstable. Sourced after packages.sh.
#
# It has its own sources, derived from the machine's apt configuration, its own lists and download cache, and a
# dpkg status that holds nothing but what the machine provides. The machine's apt and dpkg are not changed by it.
# shellcheck shell=bash

PREFIX_SUITE=sid

# Set by deploy/setup: the list of packages, and the directory for lists and downloads.
PACKAGES=${PACKAGES:?}
CACHE=${CACHE:?}

# debian_sources: the entries of the machine's apt configuration that are the Debian archive itself, as
# "URI|FILE:N". apt names them from its lists, so the format of the entry, mirrors and extra repositories
# make no difference. N is the line of a one-line file, or the stanza of a deb822 file.
debian_sources() {
  # shellcheck disable=SC2016  # the dollars are apt's
  apt-get indextargets --format \
    '$(ORIGIN)|$(LABEL)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)|$(SOURCESENTRY)' 'Identifier: Packages' |
    awk -F'|' '$1 == "Debian" && $2 == "Debian" && $3 !~ /-/ && $4 == "main" && $5 !~ /^cdrom:/ && !seen[$5]++ \
      { print $5 "|" $6 }'
}

# source_options FILE:N: the options of that entry which say how signatures are checked, as deb822 fields.
source_options() {
  local file=${1%:*} number=${1##*:}
  case $file in
    *.sources)
      awk -v wanted="$number" '
        BEGIN { stanza = 1 }
        /^[ \t]*$/ { if (fields) { stanza++; fields = 0 } next }
        /^#/ { next }
        { fields = 1 }
        /^[^ \t]/ { keep = tolower($1) ~ /^(signed-by|check-valid-until):/ }
        stanza == wanted && keep { print }' "$file"
      ;;
    *)
      sed -n "${number}p" "$file" | sed -n 's/^[^[]*\[\([^]]*\)\].*/\1/p' | tr ' ' '\n' |
        awk -F= '$1 == "signed-by" { gsub(",", " ", $2); print "Signed-By: " $2 }
                 $1 == "check-valid-until" { print "Check-Valid-Until: " $2 }'
      ;;
  esac
}

# write_apt_state COMPONENTS: makes the second apt state under $CACHE/apt.
write_apt_state() {
  local components=$1 architecture entry name number=0 sources
  architecture=$(dpkg --print-architecture)
  sources=$(debian_sources) || die "apt cannot read its own configuration (the lines above are apt's)."
  if [ -z "$sources" ]; then
    # The lists may just not be there yet, as in a fresh container.
    step "reading the package lists" apt_update || {
      log_tail
      die "apt-get update failed." "Check the network and the entries in /etc/apt, then run this again."
    }
    sources=$(debian_sources)
  fi
  if [ -z "$sources" ]; then
    die "no entry for the Debian archive (component main) was found in the machine's apt configuration." \
      "Add the release's own entry to /etc/apt/sources.list or /etc/apt/sources.list.d, then run this again."
  fi

  mkdir -p "$CACHE/apt/lists/partial" "$CACHE/archives/partial"
  rm -rf "$CACHE/apt/etc"
  mkdir -p "$CACHE/apt/etc/sources.list.d"
  while IFS='|' read -r uri entry; do
    number=$((number + 1))
    # The addresses may carry a password.
    (
      umask 077
      {
        printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: %s\n' "$uri" "$PREFIX_SUITE" "$components"
        printf 'Architectures: %s\nTargets: Packages\n' "$architecture"
        source_options "$entry"
      } >"$CACHE/apt/etc/sources.list.d/debian-$number.sources"
    )
  done <<<"$sources"

  : >"$CACHE/apt/status"
  for name in $(package_set "$PACKAGES" host); do
    printf 'Package: %s\nStatus: install ok installed\nArchitecture: %s\nMulti-Arch: foreign\n' \
      "$name" "$architecture"
    printf 'Version: 999:0\nMaintainer: berth\nDescription: provided by the machine\n\n'
  done >"$CACHE/apt/status"

  for name in $(package_set "$PACKAGES" never); do
    printf 'Package: %s\nPin: version *\nPin-Priority: -1\n\n' "$name"
  done >"$CACHE/apt/etc/preferences"

  cat >"$CACHE/apt/etc/apt.conf" <<EOF
Dir::State "$CACHE/apt";
Dir::State::lists "$CACHE/apt/lists";
Dir::State::status "$CACHE/apt/status";
Dir::State::extended_states "$CACHE/apt/extended_states";
Dir::Cache "$CACHE/apt";
Dir::Cache::archives "$CACHE/archives";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$CACHE/apt/etc/sources.list.d";
Dir::Etc::preferences "$CACHE/apt/etc/preferences";
Dir::Etc::preferencesparts "/dev/null";
Dir::Log "$CACHE/apt/log";
APT::Architecture "$architecture";
APT::Install-Recommends "false";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "2";
#clear APT::Architectures;
#clear APT::Default-Release;
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
#clear DPkg::Post-Invoke;
EOF
}

prefix_apt() {
  local tool=$1
  shift
  LC_ALL=C "$tool" -c "$CACHE/apt/etc/apt.conf" "$@"
}

# resolve_packages PACKAGE...: writes the closure as "NAME VERSION ARCH SHA256" to $CACHE/apt/closure.
resolve_packages() {
  prefix_apt apt-get --simulate install "$@" >"$CACHE/apt/simulated" || return 1
  # "Inst NAME (VERSION ORIGIN [ARCH])"
  sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*\[\([^]]*\)\]).*/\1 \2 \3/p' "$CACHE/apt/simulated" |
    LC_ALL=C sort >"$CACHE/apt/chosen"
  [ -s "$CACHE/apt/chosen" ] || return 1
  # shellcheck disable=SC2046  # package names have no spaces
  prefix_apt apt-cache show $(cut -d' ' -f1 "$CACHE/apt/chosen") |
    awk '$1 == "Package:" { name = $2; arch = version = "" }
         $1 == "Version:" { version = $2 }
         $1 == "Architecture:" { arch = $2 }
         $1 == "SHA256:" { print name, version, arch, $2 }' | LC_ALL=C sort -u >"$CACHE/apt/known"
  # Join on name, version and architecture.
  awk 'NR == FNR { sum[$1 " " $2 " " $3] = $4; next }
       { if (!($0 in sum)) { print "no sha256 for " $0 > "/dev/stderr"; bad = 1; next }
         print $0, sum[$0] }
       END { exit bad }' "$CACHE/apt/known" "$CACHE/apt/chosen" >"$CACHE/apt/closure"
}

# archive_of NAME VERSION ARCH: apt's file name for a downloaded package.
archive_of() { printf '%s/archives/%s_%s_%s.deb' "$CACHE" "$1" "${2//:/%3a}" "$3"; }

# check_archives: removes downloads that do not match their sha256; fails when there was one.
check_archives() {
  local name version arch sum file damaged=0
  while read -r name version arch sum; do
    file=$(archive_of "$name" "$version" "$arch")
    if ! printf '%s  %s\n' "$sum" "$file" | sha256sum --check --quiet - 2>&1; then
      echo "not as in the signed index: $file"
      rm -f "$file"
      damaged=1
    fi
  done <"$CACHE/apt/closure"
  return "$damaged"
}

# download_packages PACKAGE...: fetches what the cache lacks. apt checks the signatures of the index and the
# sha256 of what it downloads; a cached file that is damaged is fetched once more.
download_packages() {
  prefix_apt apt-get -y --download-only install "$@" || return 1
  check_archives && return 0
  prefix_apt apt-get -y --download-only install "$@" && check_archives
}
