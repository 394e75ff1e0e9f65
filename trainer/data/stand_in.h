// Pictures in the place of records that are skipped. A skipped record has no part in loss, gradient and count (its
// label says so), but batch statistics see every picture of a group. Leaving it out would shift all samples behind it
// into other groups; a picture of zeros, which is what the reader leaves, looks like no sample at all. So another
// sample of the same group stands in for it, with no weight. Used by the loop on training batches. Pure.
#pragma once

#include <cstdint>

#include "trainer/data/batch.h"

namespace evenkeel::trainer {

// `group`: samples that share statistics, from the start of the batch on; 0: all of it. Which sample stands in is
// decided inside the group, so the result does not depend on ranks or shares: the next one that can be used, after
// the last one the first. Only where a whole group is skipped does it come from another group of the batch; a batch
// without any sample is left as it is.
void stand_in_for_skipped(HostBatch& batch, std::int64_t group);

}  // namespace evenkeel::trainer
