# Debian packages that the cluster scripts need: checked each time (milliseconds), installed when missing.
# They are also listed in tools/setup/packages.txt, with those of the build. Sourced, never run.

CLUSTER_PACKAGES=(buildah ca-certificates conntrack containernetworking-plugins curl debootstrap iproute2 iptables jq
  npm openssl procps prometheus runc unzip util-linux)

# npm comes with Node.js from elsewhere on many machines, and Debian's package then refuses to install.
packages_missing() {
  local package
  for package in "${CLUSTER_PACKAGES[@]}"; do
    [[ $package == npm ]] && command -v npm >/dev/null && continue
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s\n' "$package"
  done
}

# Prometheus's package would start its daemon; a policy that forbids every start is laid for the time of the install.
packages_install() { # PACKAGES...
  local policy=/usr/sbin/policy-rc.d ours=0
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\n# evenkeel: no service is started by an install\nexit 101\n' >"$policy" && chmod 755 "$policy"
    ours=1
  fi
  apt-get update -qq >&2 || say "cluster: apt-get update failed; trying with the package lists that are there"
  local status=0
  DEBIAN_FRONTEND=noninteractive nice apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" \
    >"$CACHE_DIR/apt.log" 2>&1 || status=$?
  ((ours == 0)) || rm -f "$policy"
  ((status == 0)) || { tail -5 "$CACHE_DIR/apt.log" >&2 && die "apt-get could not install: $*"; }
}

packages_ensure() {
  local missing
  grep -qs 'evenkeel:' /usr/sbin/policy-rc.d && rm -f /usr/sbin/policy-rc.d # a run that was killed in its install
  mapfile -t missing < <(packages_missing)
  ((${#missing[@]} == 0)) && return 0
  need_root "installing ${missing[*]}"
  mkdir -p "$CACHE_DIR"
  part "install ${#missing[@]} packages (${missing[*]})" packages_install "${missing[@]}"
}
