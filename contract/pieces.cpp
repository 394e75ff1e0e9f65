#include "contract/pieces.h"

#include <algorithm>
#include <optional>

namespace evenkeel::contract {
namespace {

constexpr std::int64_t kMaxPosition = std::int64_t{1} << 53;  // exact in JSON readers that hold doubles
constexpr std::size_t kMaxPieces = 100000;

std::optional<Piece> read_piece(const Json& item) {
  if (!item.is_array() || item.size() != 3) return std::nullopt;
  for (const Json& number : item) {
    if (!number.is_number_integer() || number.get<std::int64_t>() < 0 || number.get<std::int64_t>() > kMaxPosition)
      return std::nullopt;
  }
  const Piece piece{static_cast<int>(std::min<std::int64_t>(item[0].get<std::int64_t>(), 65536)),
                    item[1].get<std::int64_t>(), item[2].get<std::int64_t>()};
  if (piece.rank > 65535 || piece.end < piece.begin) return std::nullopt;
  return piece;
}

}  // namespace

Json pieces_json(const std::vector<Piece>& pieces) {
  Json out = Json::array();
  for (const Piece& piece : pieces) out.push_back(Json::array({piece.rank, piece.begin, piece.end}));
  return out;
}

std::vector<Piece> read_pieces(base::JsonReader& reader, std::string_view key) {
  std::vector<Piece> out;
  const Json& list = reader.any(key);
  if (list.is_null()) return out;
  if (!list.is_array() || list.size() > kMaxPieces) {
    reader.fail(key, "must be a list of at most 100000 [rank, begin, end]");
    return out;
  }
  for (const Json& item : list) {
    const std::optional<Piece> piece = read_piece(item);
    if (!piece) {
      reader.fail(key, "must be a list of [rank, begin, end] with begin <= end");
      break;
    }
    out.push_back(*piece);
  }
  return out;
}

}  // namespace evenkeel::contract
