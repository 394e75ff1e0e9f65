// Short questions that several judges ask of a record. Pure.
#pragma once

#include <optional>
#include <string>

#include "tests/support/invariants/trace.h"

namespace evenkeel::invariants {

std::string label(const Json& object, const char* name);
std::int64_t label_number(const Json& object, const char* name);  // -1: none
std::string job_uid(const Json& object);                         // of a child; "" if it is none
std::string controller_uid(const Json& object);                  // of its controller, a TrainingJob
std::string phase(const Json& object);
bool is_job(const Change& change);
bool is_child(const Change& change);  // has the label of a job
bool terminal(const std::string& phase);
bool terminating(const Json& object);
// A pod that is there, has not ended, and whose node is not lost.
bool holds_its_place(const Change& pod, const Facts& facts);

std::string where(const Call& call);
std::string where(const Change& change);
std::string object_of(const Call& call);
std::string object_of(const Change& change);

}  // namespace evenkeel::invariants
