# Background processes by process id. A record is a file "PID STARTTIME"; the start time tells a process from a later
# one that got the same id, so nothing foreign is ever ended. Sourced, never run.

# Ticks since boot at which the process began; empty when there is none (or it is a zombie).
process_start_time() { # PID
  local stat rest
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  rest=${stat##*) }
  set -- $rest
  [[ $1 == Z ]] || printf '%s' "${20}"
}

process_is_alive() { # RECORD_FILE
  local pid start
  [[ -s $1 ]] || return 1
  read -r pid start <"$1" || return 1
  [[ -n $start && $(process_start_time "$pid") == "$start" ]]
}

process_id() { # RECORD_FILE
  local pid rest
  read -r pid rest <"$1" && printf '%s' "$pid"
}

# Starts a process that outlives this script. It writes its own record before it becomes the program: were the
# record written from here, a kill between the two steps would leave a process that nobody knows.
# Descriptors 8 and 9 are the callers' locks: a daemon must not hold them.
process_start() { # RECORD_FILE LOG_FILE COMMAND...
  local record=$1 log=$2
  shift 2
  process_is_alive "$record" && return 0
  rm -f "$record"
  setsid bash -c '
    source "$0/lib/process.sh"
    printf "%s %s\n" "$$" "$(process_start_time $$)" >"$1.new" && mv "$1.new" "$1"
    shift
    exec "$@"' "$CLUSTER_DIR" "$record" "$@" </dev/null >>"$log" 2>&1 8>&- 9>&- &
  disown
  wait_for 10 "process for $record did not start; see $log" test -s "$record"
}

# Asks with SIGTERM, insists with SIGKILL after a while.
process_stop() { # RECORD_FILE [SECONDS]
  local record=$1 grace_s=${2:-5}
  if process_is_alive "$record"; then
    kill -TERM "$(process_id "$record")" 2>/dev/null || true
    local deadline_ms=$(($(now_ms) + grace_s * 1000))
    while process_is_alive "$record"; do
      if (($(now_ms) > deadline_ms)); then
        kill -KILL "$(process_id "$record")" 2>/dev/null || true
      fi
      sleep 0.05
    done
  fi
  rm -f "$record"
}

process_kill() { # RECORD_FILE: at once, as a crash would
  if process_is_alive "$1"; then
    kill -KILL "$(process_id "$1")" 2>/dev/null || true
    wait_for 5 "process $(process_id "$1") does not end" process_is_gone "$1"
  fi
  rm -f "$1"
}

process_is_gone() { ! process_is_alive "$1"; }
