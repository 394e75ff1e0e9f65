// Writes down what becomes of the objects that the judges look at: each event of a watch as a line
// {"type", "seen", "object"}, for trace.h. A test makes one before anything else happens. `drain` and the destructor
// belong to one thread; the watches have their own.
#pragma once

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "operator/kube/client.h"

namespace evenkeel::oper {

class EventRecorder {
 public:
  // `client` must outlive this.
  EventRecorder(ApiClient& client, const std::string& file);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;
  // Waits until all that the API server holds now, and all that it no longer holds, is written down; false at the
  // limit.
  bool drain(base::Duration limit);

 private:
  struct Feed {
    Resource resource;
    std::string version;                        // the watch goes on from here; its own thread alone
    std::map<std::string, std::string> objects;  // UID: version; what is written down as there
    std::shared_ptr<Stream> stream;
    std::thread thread;
  };
  void follow(Feed& feed);
  bool relist(Feed& feed);
  void watch(Feed& feed);
  void take_line(Feed& feed, const std::string& line);
  void write_down(Feed& feed, const std::string& type, const Json& object);
  bool is_level(Feed& feed);

  ApiClient& client_;
  std::FILE* file_;
  std::mutex mutex_;  // guards file_, and `objects` and `stream` of each feed
  std::atomic<bool> stopped_{false};
  std::vector<std::unique_ptr<Feed>> feeds_;
};

}  // namespace evenkeel::oper
