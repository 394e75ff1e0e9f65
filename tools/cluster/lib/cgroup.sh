# The containers' cgroup, in whatever layout the machine has (v1, hybrid, v2). All containers of a node lie below
# /<cluster>/<node>, so they are found and ended without any help from containerd. Sourced, never run.

cgroup_folders() { # [SUBFOLDER] -> the folder in every hierarchy that has it
  local root
  for root in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [[ -d $root/$CGROUP${1:+/$1} && ! -L $root ]] && printf '%s\n' "$root/$CGROUP${1:+/$1}"
  done
  return 0
}

cgroup_processes() { # [SUBFOLDER]
  local folders
  mapfile -t folders < <(cgroup_folders "${1:-}")
  ((${#folders[@]} > 0)) || return 0
  find "${folders[@]}" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un
}

# Ends every process in the cgroup and waits until it is empty.
cgroup_kill() { # [SUBFOLDER]
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
}
