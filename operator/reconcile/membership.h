// Scope Worker: which pod holds each rank of an attempt, and how the book of pods (status.h) moves on. A
// rank's pod is the newest of its incarnations that no incident has disposed of; all others are on their way
// out. Called by Turn and reconcile. Pure.
#pragma once

#include <vector>

#include "contract/report.h"
#include "operator/reconcile/children.h"
#include "operator/reconcile/failure.h"
#include "operator/reconcile/status.h"

namespace evenkeel::oper {

bool replaces_workers(const contract::TrainingJob& job);

// The book of an attempt that begins with `incarnation`.
PodBook open_book(int workers, std::int64_t incarnation);
// A status without its book (somebody wiped it): what is there is taken as it is.
PodBook guess_book(int workers, std::int64_t incarnation, const contract::ObjectMeta& job,
                   const std::vector<Pod>& pods);

// The pods that the attempt needs, the coordinator first.
std::vector<PodPlan> members(const contract::ObjectMeta& job, const PodBook& book,
                             const std::vector<std::string>& handled, const std::vector<Pod>& pods);

// The pods of the plan stay `current`, with the role and rank that their name says; the others of the
// attempt, and all that an incident has disposed of, become `retired`.
void retire_others(Children& children, const contract::ObjectMeta& job, const JobPlan& plan,
                   const std::vector<std::string>& handled);

// What the pods show: those that have been seen are made. True if the book has changed.
bool note_made(PodBook& book, const JobPlan& plan, const std::vector<Pod>& current);

// True if the size follows the spec now. Growth waits until the pods of the last change have been made, so
// that no rank ever has two names to be made under. `incarnation` is raised before pods are added.
bool take_size(PodBook& book, int workers, std::int64_t& incarnation);

// Keeps since when the coordinator does not hear a pod that runs. Without a report nothing is known, and
// nothing changes. Times are whole seconds.
void note_lost(PodBook& book, const std::vector<Pod>& current,
               const std::optional<contract::JobReport>& report, WallTimeValue now);

// The ranks of `failures` get another pod, of a new incarnation.
void plan_replacements(PodBook& book, const std::vector<Failure>& failures, std::int64_t& incarnation);

// The rank's pod was itself made in the open incident.
bool was_replaced(const PodBook& book, contract::Role role, int rank);

}  // namespace evenkeel::oper
