// status: written by the operator alone. Loose on purpose (types, no ranges), so that a status is never
// refused.
#include "contract/job/field_builder.h"
#include "contract/job/schema.h"

namespace evenkeel::contract {
namespace {

Field count(const char* name, const char* description) {
  return FieldBuilder(FieldType::kInteger, name, description);
}

Field real(const char* name, const char* description) {
  return number(name, description);
}

Field words(const char* name, const char* description) {
  return FieldBuilder(FieldType::kString, name, description);
}

Field time(const char* name, const char* description) {
  return FieldBuilder(FieldType::kString, name, description).format("date-time");
}

Field array(const char* name, const char* description, Field item) {
  return FieldBuilder(FieldType::kArray, name, description).members_are(std::move(item));
}

Field restarts_field() {
  return object(
      "restarts", "Restarts so far; everything that restart.maxRestarts is judged by.",
      {count("total", "Incidents that led to a restart."),
       count("countedTowardsMax", "Those of them that count towards restart.maxRestarts."),
       array("handled", "UIDs of failed pods whose incident has been counted.", words("", "UID of a pod.")),
       time("nextRetryTime", "When the next attempt begins; absent if none is waiting.")});
}

Field pods_field() {
  return object("pods", "The operator's own book of an attempt with restart.scope Worker; for it alone.",
                {count("wanted", "Workers that the attempt has pods for."),
                 count("made", "Ranks below this have had their pod."),
                 count("incarnation", "Incarnation of the pods of the ranks from made on."),
                 array("replacing", "Pods of the open incident that are still to be made, e.g. worker-2-7.",
                       words("", "Role, rank and incarnation.")),
                 array("replaced", "Pods of the open incident that have been made.",
                       words("", "Role, rank and incarnation.")),
                 array("lost", "Pods that run, but that the coordinator does not hear.",
                       object("", "One pod.",
                              {words("pod", "Role, rank and incarnation."), time("since", "Since when.")}))});
}

Field workers_field() {
  return object(
      "workers", "Worker pods by state.",
      {count("desired", "Workers that the job wants now; 0 while suspended or finished."),
       count("pending", "Pods that wait for a node or an image."),
       count("running", "Pods whose container runs."), count("ready", "Pods whose rank has joined the job."),
       count("succeeded", "Pods that ended with exit code 0."),
       count("failed", "Pods that ended with another exit code."),
       count("terminating", "Pods that are being deleted."),
       words("selector", "Label selector of the worker pods, for the scale subresource."),
       words("readyText", "Ready and desired workers for people, e.g. 3/4.")});
}

Field progress_field() {
  return object("progress", "How far the training is; at most 30 s old while it runs.",
                {count("epoch", "Epochs completed."), count("step", "Steps committed since the job began."),
                 count("targetSteps", "Steps of the whole training."),
                 count("samples", "Training samples committed since the job began."),
                 real("loss", "Mean loss over the last window of training steps."),
                 real("accuracy", "Accuracy of the last evaluation, 0 to 1."),
                 real("evalLoss", "Mean loss of the last evaluation."),
                 real("samplesPerSecond", "Training samples per second over all ranks."),
                 time("estimatedCompletionTime", "When the training should be done at this speed."),
                 words("eta", "Time left for people, e.g. 12m."),
                 count("percent", "Share of the training that is done, in percent.")});
}

Field time_field() {
  Field unproductive = object(
      "unproductiveSeconds", "Seconds without training, by cause.",
      {real("scheduling", "Waiting for nodes."), real("imagePull", "Pulling images."),
       real("startup", "Starting containers and programs."),
       real("rendezvous", "Waiting for all ranks to join."), real("inputWait", "Waiting for data."),
       real("stragglerWait", "Waiting for slow ranks."), real("checkpointSave", "Writing checkpoints."),
       real("checkpointRestore", "Reading checkpoints."), real("recompute", "Doing lost steps again."),
       real("restart", "Between a failure and the next attempt."), real("suspended", "Suspended."),
       real("other", "Everything else.")});
  return object("time", "Where the time went, in seconds since the job began.",
                {real("activeSeconds", "Seconds not suspended; what deadlines.activeSeconds is judged by."),
                 real("productiveSeconds", "Seconds of training that count."), unproductive});
}

Field diagnosis_field() {
  Field losses =
      object("losses", "Shares of the step time, 0 to 1; with compute they add up to 1.",
             {real("compute", "Own work of the ranks."),
              real("fixedCost", "Cost that does not shrink with more ranks."),
              real("inputWait", "Waiting for data."), real("imbalance", "Waiting for the slowest rank, and the speed that slow ranks lack."),
              real("communication", "Averaging gradients.")});
  Field remedy = object("", "One remedy.",
                        {words("action", "What would be done."),
                         real("predictedGain", "Predicted gain in speed, 0.1 is 10 percent."),
                         real("measuredGain", "Measured gain in speed, if it was applied."),
                         words("state", "Proposed, Applied, Reverted or NotAllowed.")});
  return object(
      "diagnosis", "Why N ranks are not N times faster than one.",
      {words("verdict",
             "The main reason in one word, e.g. Straggler; Measuring until there is enough to say."),
       words("message", "The reason as a sentence."), losses,
       array("remedies", "What would help, best first.", remedy)});
}

Field replicas_field() {
  Field item =
      object("", "One rank.",
             {count("rank", "Rank, from 0."), words("pod", "Name of its pod."),
              words("node", "Node of its pod."), words("state", "joined, ready, stepping, done or lost."),
              real("samplesPerSecond", "Training samples per second."),
              real("busySeconds", "Mean own work in a step, in seconds."),
              real("share", "Share of the global batch, 0 to 1."),
              real("relativePerformance", "Speed compared with the other ranks; 1 is equal."),
              count("shardSamples", "Samples of this epoch dealt to it."),
              count("consumed", "Training samples since the job began.")});
  return array("replicas", "The ranks; above 64 the slowest 8.", item);
}

Field conditions_field() {
  Field item =
      object("", "One condition.",
             {FieldBuilder(words("type",
                                 "Accepted, PodsReady, Running, Restarting, Suspended, Complete, Failed, "
                                 "Balanced or NameConflict."))
                  .required(),
              choice("status", "True, False or Unknown.", {"True", "False", "Unknown"}).required(),
              count("observedGeneration", "Generation of the spec that it was judged by."),
              time("lastTransitionTime", "When status last changed."),
              words("reason", "The cause as one word."), words("message", "The cause as a sentence.")});
  return FieldBuilder(array("conditions", "What holds for the job now, one entry for each type.", item))
      .keyed_by("type");
}

Field make_status() {
  return object(
      "status", "What the job does; written by the operator.",
      {count("observedGeneration", "Generation of the spec that this status belongs to."),
       choice("phase", "The job's state in one word; Running once all ranks have joined.",
              {"Pending", "Starting", "Running", "Restarting", "Suspended", "Succeeded", "Failed"}),
       count("attempt",
             "Raised on every job-level restart and resume; pods of an older attempt are fenced off."),
       count("incarnation", "Raised before any pod is replaced; part of the pod's name."), restarts_field(),
       pods_field(), time("startTime", "When the job was first accepted."),
       time("completionTime", "When the job ended."), workers_field(), progress_field(), time_field(),
       object("balance", "How evenly the ranks work.",
              {real("imbalanceRatio", "Slowest over mean own work of a step, less 1; 0 is even."),
               count("slowestRank", "Rank below balance.stragglerThreshold, or that others wait for."),
               real("scalingEfficiency", "Speed over ranks times the speed of one, 0 to 1."),
               count("rebalances", "Times that work was moved.")}),
       diagnosis_field(), replicas_field(),
       object("lastFailure", "The newest failure of a pod.",
              {words("role", "Role of the pod."), count("rank", "Rank of the pod."),
               words("pod", "Name of the pod."), words("node", "Node of the pod."),
               count("attempt", "Attempt it belonged to."), count("exitCode", "Exit code of the trainer."),
               words("reason", "The cause as one word."), words("message", "The cause as a sentence."),
               time("time", "When it was seen.")}),
       conditions_field()});
}

}  // namespace

const Field& status_schema() {
  static const Field field = make_status();
  return field;
}

}  // namespace evenkeel::contract
