// Bilinear resizing with half-pixel centres; when shrinking, the triangle grows with the factor, so that
// every source pixel counts (antialiasing). Pure, integer arithmetic: the same bytes on every machine and
// thread.
#pragma once

#include "trainer/data/augment.h"
#include "trainer/data/image.h"

namespace evenkeel::trainer {

// `box` of `source`, resized. Pixels outside the box but inside the picture count at its edges, as if the
// whole picture had been resized and then cropped. REQUIRES: 1 or 3 channels; the box has a positive size and
// lies within the picture (rounding apart), height, width >= 1, `target` is not `source`.
void resize_box(const Image& source, const Box& box, int height, int width, Image& target);

}  // namespace evenkeel::trainer
