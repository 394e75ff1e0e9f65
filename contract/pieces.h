// Lists of pieces as JSON, in messages and in manifests of checkpoints: [[rank, begin, end], ...]. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "contract/messages.h"

namespace evenkeel::contract {

Json pieces_json(const std::vector<Piece>& pieces);
// Absent: none. The reader fails where it is no such list, or a piece ends before it begins.
std::vector<Piece> read_pieces(base::JsonReader& reader, std::string_view key);

}  // namespace evenkeel::contract
