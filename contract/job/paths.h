// Paths inside a pod, as a job may name them. Used by the schema and by operator/render, so that both compare
// places and not spellings. Pure.
#pragma once

#include <string>
#include <string_view>

namespace evenkeel::contract {

// Absolute, and with one spelling only: no //, /./ or /../ inside and no / at the end.
inline bool is_plain_path(std::string_view path) {
  if (path.size() < 2 || path.front() != '/') return false;
  const std::string closed = std::string(path) + "/";
  for (const char* odd : {"//", "/./", "/../"}) {
    if (closed.find(odd) != std::string::npos) return false;
  }
  return true;
}

// Where the operator mounts something, or a folder above it: a volume there would cover what is ours.
inline bool is_own_path(std::string_view path) {
  for (const char* ours : {"/etc", "/dev", "/dev/shm", "/dev/termination-log"}) {
    if (path == ours) return true;
  }
  return (std::string(path) + "/").starts_with("/etc/evenkeel/");
}

// A part of a volume: never outside of it.
inline bool is_inside_volume(std::string_view sub_path) {
  return !sub_path.starts_with('/') && ("/" + std::string(sub_path) + "/").find("/../") == std::string::npos;
}

}  // namespace evenkeel::contract
