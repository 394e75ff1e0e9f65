# `cluster status`: what runs, what it uses, where its logs are. Sourced, never run.

status_processes() {
  local record_path pid state memory_kib total_kib=0
  printf '%-28s %-8s %-8s %s\n' PROCESS PID STATE MEMORY
  for record_path in "$STATE_DIR"/run/*; do
    [[ -e $record_path ]] || continue
    pid=$(process_id "$record_path") state=dead memory_kib=0
    if process_is_alive "$record_path"; then
      state=runs
      memory_kib=$(awk '/^VmRSS/ {print $2}' "/proc/$pid/status")
    fi
    total_kib=$((total_kib + memory_kib))
    printf '%-28s %-8s %-8s %d MiB\n' "$(basename "$record_path")" "$pid" "$state" $((memory_kib / 1024))
  done
  printf '%-28s %-8s %-8s %d MiB\n' "all of them" "" "" $((total_kib / 1024))
  printf '%-28s %-8s %-8s %d MiB\n' "containers" "" "" $(($(status_container_memory_kib) / 1024))
}

status_container_memory_kib() {
  local pid total_kib=0 kib
  for pid in $(cgroup_processes); do
    kib=$(awk '/^VmRSS/ {print $2}' "/proc/$pid/status" 2>/dev/null) || kib=0
    total_kib=$((total_kib + ${kib:-0}))
  done
  printf '%d' "$total_kib"
}

command_status() {
  if [[ -e $CONTEXT_FILE ]]; then
    printf 'cluster %s: context %s\n' "$CLUSTER_NAME" "$(<"$CONTEXT_FILE")"
  elif [[ ! -e $COMPLETE_MARK ]]; then
    [[ -d $STATE_DIR/run ]] && printf 'cluster %s is half up; run `up` or `down`\n' "$CLUSTER_NAME" && return 1
    printf 'cluster %s is down\n' "$CLUSTER_NAME"
    return 1
  else
    status_processes
    printf '\nlogs: %s (pods: %s)\n\n' "$STATE_DIR/logs" "$STATE_DIR/nodes/*/pod-logs"
  fi
  (command_kubectl --request-timeout=10s get nodes -o wide)
  echo
  (command_kubectl --request-timeout=10s get pods --all-namespaces -o wide)
}
