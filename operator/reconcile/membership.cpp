#include "operator/reconcile/membership.h"

#include <algorithm>
#include <map>
#include <set>

#include "operator/reconcile/text.h"

namespace evenkeel::oper {
namespace {

using contract::PodIdentity;
using contract::Role;
using Place = std::pair<Role, int>;

std::map<Place, std::int64_t> entries(const std::vector<std::string>& list) {
  std::map<Place, std::int64_t> places;
  for (const std::string& text : list) {
    if (const auto identity = contract::parse_identity(text))
      places[{identity->role, identity->rank}] = identity->incarnation;
  }
  return places;
}

// Ranks that have not been made yet belong to the newest size: an older pod of such a rank was sent away.
std::int64_t oldest_allowed(const PodBook& book, Place place) {
  const bool is_made = place.first == Role::kCoordinator ? book.made > 0 : place.second < book.made;
  return is_made ? 0 : book.incarnation;
}

std::map<Place, std::int64_t> holders(const contract::ObjectMeta& job, const PodBook& book,
                                      const std::vector<std::string>& handled, const std::vector<Pod>& pods) {
  const std::set<std::string> done(handled.begin(), handled.end());
  std::map<Place, std::int64_t> newest;
  for (const Pod& pod : pods) {
    const auto identity = contract::parse_pod_name(job.name, pod.name);
    if (!identity || done.contains(pod.uid)) continue;
    const Place place{identity->role, identity->rank};
    if (identity->incarnation < oldest_allowed(book, place)) continue;
    std::int64_t& held = newest[place];
    held = std::max(held, identity->incarnation);
  }
  return newest;
}

void drop(std::vector<std::string>& list, const std::set<Place>& places) {
  std::erase_if(list, [&](const std::string& text) {
    const auto identity = contract::parse_identity(text);
    return !identity || places.contains({identity->role, identity->rank});
  });
}

void drop_beyond(std::vector<std::string>& list, int workers) {
  std::erase_if(list, [&](const std::string& text) {
    const auto identity = contract::parse_identity(text);
    return !identity || (identity->role == Role::kWorker && identity->rank >= workers);
  });
}

}  // namespace

bool replaces_workers(const contract::TrainingJob& job) {
  return job.spec.restart.scope == contract::RestartScope::kWorker;
}

PodBook open_book(int workers, std::int64_t incarnation) {
  PodBook book;
  book.wanted = workers;
  book.incarnation = incarnation;
  return book;
}

PodBook guess_book(int workers, std::int64_t incarnation, const contract::ObjectMeta& job,
                   const std::vector<Pod>& pods) {
  PodBook book = open_book(workers, incarnation);
  for (const Pod& pod : pods) {
    if (const auto identity = contract::parse_pod_name(job.name, pod.name))
      book.incarnation = std::min(book.incarnation, identity->incarnation);
  }
  return book;
}

std::vector<PodPlan> members(const contract::ObjectMeta& job, const PodBook& book,
                             const std::vector<std::string>& handled, const std::vector<Pod>& pods) {
  const auto replacing = entries(book.replacing);
  const auto replaced = entries(book.replaced);
  const auto held = holders(job, book, handled, pods);
  const auto member = [&](Role role, int rank) {
    const Place place{role, rank};
    if (const auto at = replacing.find(place); at != replacing.end())
      return plan_pod(job, role, rank, at->second);
    const auto newest = held.find(place);
    const auto entry = replaced.find(place);
    std::int64_t incarnation = entry != replaced.end() ? entry->second : book.incarnation;
    if (newest != held.end() && (entry == replaced.end() || newest->second > incarnation))
      incarnation = newest->second;
    PodPlan pod = plan_pod(job, role, rank, incarnation);
    pod.made = entry != replaced.end() || oldest_allowed(book, place) == 0;
    return pod;
  };
  std::vector<PodPlan> plan{member(Role::kCoordinator, 0)};
  for (int rank = 0; rank < book.wanted; ++rank) plan.push_back(member(Role::kWorker, rank));
  return plan;
}

void retire_others(Children& children, const contract::ObjectMeta& job, const JobPlan& plan,
                   const std::vector<std::string>& handled) {
  const std::set<std::string> done(handled.begin(), handled.end());
  std::set<std::string> planned;
  for (const PodPlan& pod : plan.pods) planned.insert(pod.name);
  std::vector<Pod> found = std::move(children.current);
  children.current.clear();
  for (Pod& pod : found) {
    if (const auto identity = contract::parse_pod_name(job.name, pod.name)) {
      pod.role = identity->role;
      pod.rank = identity->rank;
      pod.incarnation = identity->incarnation;
    }
    const bool stays = planned.contains(pod.name) && !done.contains(pod.uid);
    (stays ? children.current : children.retired).push_back(std::move(pod));
  }
}

bool note_made(PodBook& book, const JobPlan& plan, const std::vector<Pod>& current) {
  std::set<std::string> there;
  for (const Pod& pod : current) there.insert(contract::identity_text({pod.role, pod.rank, pod.incarnation}));
  bool changed = false;
  if (book.made != book.wanted && current.size() == plan.pods.size()) {
    book.made = book.wanted;
    changed = true;
  }
  std::vector<std::string> left;
  for (std::string& entry : book.replacing) {
    const bool is_there = there.contains(entry);
    changed = changed || is_there;
    (is_there ? book.replaced : left).push_back(std::move(entry));
  }
  book.replacing = std::move(left);
  return changed;
}

void note_lost(PodBook& book, const std::vector<Pod>& current,
               const std::optional<contract::JobReport>& report, WallTimeValue now) {
  if (!report) return;
  std::set<std::string> unheard;
  for (const contract::ReplicaReport& replica : report->replicas) {
    if (replica.state == "lost") unheard.insert(replica.pod);
  }
  std::map<std::string, WallTimeValue> known;
  for (const LostPod& lost : book.lost) known[lost.pod] = lost.since;
  book.lost.clear();
  for (const Pod& pod : current) {
    if (!pod.runs() || !unheard.contains(pod.name)) continue;
    const std::string text = contract::identity_text({pod.role, pod.rank, pod.incarnation});
    const auto before = known.find(text);
    book.lost.push_back({text, before == known.end() ? ceil_second(now) : before->second});
  }
}

bool take_size(PodBook& book, int workers, std::int64_t& incarnation) {
  if (workers == book.wanted) return false;
  if (workers > book.wanted) {
    if (book.made < book.wanted) return false;
    book.incarnation = ++incarnation;
  } else {
    drop_beyond(book.replacing, workers);
    drop_beyond(book.replaced, workers);
  }
  book.wanted = workers;
  book.made = std::min(book.made, workers);
  return true;
}

void plan_replacements(PodBook& book, const std::vector<Failure>& failures, std::int64_t& incarnation) {
  ++incarnation;
  std::set<Place> places;
  for (const Failure& failure : failures) places.insert({failure.role, failure.rank});
  drop(book.replacing, places);
  drop(book.replaced, places);
  for (const auto& [role, rank] : places)
    book.replacing.push_back(contract::identity_text({role, rank, incarnation}));
}

bool was_replaced(const PodBook& book, Role role, int rank) {
  const auto is_it = [&](const std::string& text) {
    const auto identity = contract::parse_identity(text);
    return identity && identity->role == role && identity->rank == rank;
  };
  return std::any_of(book.replaced.begin(), book.replaced.end(), is_it) ||
         std::any_of(book.replacing.begin(), book.replacing.end(), is_it);
}

}  // namespace evenkeel::oper
