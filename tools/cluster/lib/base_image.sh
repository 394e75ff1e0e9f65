# localhost/debian-base:12, the base of docker/*.Dockerfile on a machine without a registry: made once by debootstrap,
# kept in the cache as an OCI archive. Sourced, never run.

BASE_IMAGE=localhost/debian-base:12
BASE_IMAGE_ARCHIVE=$CACHE_DIR/images/debian-base-12.tar
# buildah's own store. Both folders are ours, so that nobody else's images are listed, changed or removed.
BUILDAH_ROOT=$CACHE_DIR/buildah
BUILDAH_RUN=/run/evenkeel-buildah

run_buildah() {
  STORAGE_DRIVER=${STORAGE_DRIVER:-vfs} nice buildah --root "$BUILDAH_ROOT" --runroot "$BUILDAH_RUN" "$@" 8>&- 9>&-
}

# Where this machine's own packages come from, so that a library in the image is the one that was linked against.
base_image_sources() {
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Origin: Debian' 'Created-By: Packages' | sort -u
}

base_image_root() { # FOLDER
  local mirror
  # Without one debootstrap takes Debian's own.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Created-By: Packages' 'Codename: bookworm' 'Component: main' | sort -u | sed -n 1p)
  debootstrap --variant=minbase --include=ca-certificates bookworm "$1" ${mirror:+"$mirror"} \
    >"$CACHE_DIR/debootstrap.log" 2>&1 || {
    tail -5 "$CACHE_DIR/debootstrap.log" >&2
    die "debootstrap failed; its log: $CACHE_DIR/debootstrap.log"
  }
  base_image_sources >"$1/etc/apt/sources.list"
  rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin "$1"/var/log/*.log
  rm -rf "$1"/usr/share/doc/* "$1"/usr/share/man/* "$1"/usr/share/locale/*
}

base_image_make() {
  local folder=$CACHE_DIR/images/base.new container
  mkdir -p "$CACHE_DIR/images"
  umount "$folder/proc" "$folder/sys" 2>/dev/null || true # a debootstrap that was killed leaves them mounted
  rm -rf --one-file-system "$folder"
  mkdir -p "$folder"
  base_image_root "$folder"
  container=$(run_buildah from scratch)
  run_buildah copy --quiet "$container" "$folder" / >/dev/null
  run_buildah config --cmd /bin/bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  run_buildah commit --quiet --rm "$container" "$BASE_IMAGE" >/dev/null
  run_buildah push --quiet "$BASE_IMAGE" "oci-archive:$BASE_IMAGE_ARCHIVE.new:$BASE_IMAGE"
  mv "$BASE_IMAGE_ARCHIVE.new" "$BASE_IMAGE_ARCHIVE"
  rm -rf --one-file-system "$folder"
}

# The archive outlives buildah's store: a store that was removed is filled from it again.
base_image_ensure() {
  [[ -s $BASE_IMAGE_ARCHIVE ]] || part "make $BASE_IMAGE (debootstrap)" base_image_make
  run_buildah inspect --type image "$BASE_IMAGE" >/dev/null 2>&1 && return 0
  run_buildah pull --quiet "oci-archive:$BASE_IMAGE_ARCHIVE" >/dev/null
}
