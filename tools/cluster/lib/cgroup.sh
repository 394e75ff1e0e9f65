# The cgroups of the containers, in whatever layout the machine has (v1, hybrid, v2): containerd puts each container in
# /k8s.io/<id> and keeps one folder for each id in its state. So they are found and ended without containerd's help, and
# containers of another cluster on this machine are left alone. Sourced, never run.

container_ids() { # [NODE]
  local folder
  for folder in "$STATE_DIR"/nodes/${1:-*}/run/io.containerd.runtime.v2.task/k8s.io/*/; do
    [[ -d $folder ]] && basename "$folder"
  done
  return 0
}

cgroup_folders() { # [NODE] -> every container's folder in every hierarchy
  local id root
  for id in $(container_ids "${1:-}"); do
    for root in /sys/fs/cgroup /sys/fs/cgroup/*; do
      [[ -d $root/k8s.io/$id && ! -L $root ]] && printf '%s\n' "$root/k8s.io/$id"
    done
  done
  return 0
}

cgroup_processes() { # [NODE]
  local folders
  mapfile -t folders < <(cgroup_folders "${1:-}")
  ((${#folders[@]} > 0)) || return 0
  find "${folders[@]}" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un
}

# Ends every process of the containers and waits until they are gone.
cgroup_kill() { # [NODE]
  local processes
  for _ in $(seq 100); do
    mapfile -t processes < <(cgroup_processes "${1:-}")
    ((${#processes[@]} > 0)) || return 0
    kill -KILL "${processes[@]}" 2>/dev/null || true
    sleep 0.05
  done
  say "cluster: processes that cannot be ended: ${processes[*]}"
}

cgroup_remove() {
  local folder
  for folder in $(cgroup_folders); do
    find "$folder" -depth -type d -exec rmdir {} \; 2>/dev/null || true
  done
  # The parents too, when no other cluster has containers there; pods that ended earlier left them behind.
  rmdir /sys/fs/cgroup/k8s.io /sys/fs/cgroup/*/k8s.io 2>/dev/null || true
}
