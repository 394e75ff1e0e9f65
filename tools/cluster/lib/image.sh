# Images: built by buildah, written as OCI archives, imported into every node's containerd. Sourced, never run.

PAUSE_IMAGE=localhost/pause:$PAUSE_VERSION

# The archive's manifest digest: the same content has the same digest, and a node that has it is left alone.
image_digest() { # ARCHIVE
  tar xOf "$1" index.json 2>/dev/null | jq -re '.manifests[0].digest' ||
    die "'$1' is not an OCI archive (index.json is missing); make it with tools/cluster/image-build"
}

image_name() { # ARCHIVE
  tar xOf "$1" index.json | jq -re '.manifests[0].annotations["org.opencontainers.image.ref.name"]' ||
    die "'$1' has no image name inside; make it with tools/cluster/image-build NAME ..."
}

image_build() { # NAME DOCKERFILE CONTEXT OUT.tar [BUILDAH ARGUMENTS...]
  local name=$1 dockerfile=$2 context=$3 out=$4
  shift 4
  local log
  log=$CACHE_DIR/images/$(tr '/:' '__' <<<"$name").log
  mkdir -p "$(dirname "$out")" "$CACHE_DIR/images"
  run_buildah bud --isolation chroot --layers --build-arg "BASE=$BASE_IMAGE" --tag "$name" --timestamp 0 \
    --file "$dockerfile" "$@" "$context" >"$log" 2>&1 || {
    tail -20 "$log" >&2
    die "buildah could not build $name from $dockerfile; the whole log: $log"
  }
  rm -f "$out.new"
  run_buildah push --quiet "$name" "oci-archive:$out.new:$name" >&2 || die "buildah could not write $out"
  mv "$out.new" "$out"
}

pause_image_make() {
  local folder target
  target=$(asset_path pause.tar)
  folder=$(mktemp -d)
  "${CC:-gcc}" -Os -static -s -o "$folder/pause" "$CLUSTER_DIR/modules/pause/pause.c" ||
    die "the C compiler could not build the pause program"
  image_build "$PAUSE_IMAGE" "$CLUSTER_DIR/modules/pause/Dockerfile" "$folder" "$target"
  rm -rf "$folder"
}

pause_image_ensure() {
  asset_present pause.tar || part "build $PAUSE_IMAGE" with_image_lock pause_image_make
}

# buildah's store takes one writer at a time; the second caller waits.
with_image_lock() { # FUNCTION ARGUMENTS...
  mkdir -p "$CACHE_DIR"
  (
    flock 8
    "$@"
  ) 8>"$CACHE_DIR/images.lock"
}

image_resolve() { # IMAGE_OR_ARCHIVE -> archive file; an image name is exported from buildah's store first
  local archive
  if [[ -f $1 ]]; then
    printf '%s' "$1"
    return
  fi
  archive=$CACHE_DIR/images/$(tr '/:' '__' <<<"$1").tar
  rm -f "$archive.new"
  run_buildah push --quiet "$1" "oci-archive:$archive.new:$1" >&2 ||
    die "'$1' is neither a file nor an image that tools/cluster/image-build made"
  mv "$archive.new" "$archive"
  printf '%s' "$archive"
}

image_import() { # NODE ARCHIVE NAME DIGEST
  local node=$1 archive=$2 name=$3 digest=$4
  if [[ $(node_ctr "$node" images ls "name==$name" 2>/dev/null | awk 'NR == 2 {print $3}') == "$digest" ]]; then
    return 0
  fi
  local log
  log=$(log_file "$node-import")
  node_ctr "$node" images import --local "$archive" >"$log" 2>&1 || {
    tail -5 "$log" >&2
    die "containerd of $node could not import $archive; see also $(log_file "$node-containerd")"
  }
}

image_load() { # IMAGE_OR_ARCHIVE
  local archive name digest node
  archive=$(image_resolve "$1")
  name=$(image_name "$archive")
  digest=$(image_digest "$archive")
  for node in $(node_names); do
    part "load $name on $node" image_import "$node" "$archive" "$name" "$digest"
  done
}
