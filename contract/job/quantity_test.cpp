#include "contract/job/quantity.h"

#include <gtest/gtest.h>

namespace evenkeel::contract {
namespace {

using base::Json;

TEST(Quantity, every_suffix_has_its_factor) {
  const std::pair<const char*, double> cases[] = {
      {"0", 0},
      {"4", 4},
      {"1.5", 1.5},
      {".5", 0.5},
      {"2.", 2},
      {"500m", 0.5},
      {"250u", 250e-6},
      {"7n", 7e-9},
      {"2k", 2e3},
      {"2M", 2e6},
      {"2G", 2e9},
      {"2T", 2e12},
      {"2P", 2e15},
      {"2E", 2e18},
      {"1Ki", 1024},
      {"1.5Mi", 1572864},
      {"32Gi", 34359738368.0},
      {"1Ti", 1099511627776.0},
      {"1Pi", 1125899906842624.0},
      {"1Ei", 1152921504606846976.0},
      {"12e3", 12000},
      {"12E3", 12000},
      {"5e-3", 0.005},
      {"1e+2", 100},
  };
  for (const auto& [text, value] : cases) {
    auto result = parse_quantity(std::string_view(text));
    ASSERT_TRUE(result.ok()) << text;
    EXPECT_DOUBLE_EQ(*result, value) << text;
  }
}

TEST(Quantity, a_text_that_is_none_is_refused_with_the_text_in_the_message) {
  for (const char* text : {"", ".", "m", "four", "4 Gi", "4gi", "4KI", "-1", "+1", "1.2.3", "1e", "1e+",
                           "1e--3", "1e3m", "0x10", "1e999", "NaN", "inf", "1,5"}) {
    auto result = parse_quantity(std::string_view(text));
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().code, base::ErrorCode::kInvalidInput);
    EXPECT_NE(result.error().message.find(std::string("\"") + text + "\""), std::string::npos)
        << result.error().message;
  }
}

TEST(Quantity, cores_and_bytes_are_rounded_up_without_the_hair_of_a_double) {
  EXPECT_EQ(*quantity_milli_cores(Json("0.1")), 100);
  EXPECT_EQ(*quantity_milli_cores(Json("0.0001")), 1);
  EXPECT_EQ(*quantity_milli_cores(Json("1500u")), 2);
  EXPECT_EQ(*quantity_milli_cores(Json(4)), 4000);
  EXPECT_EQ(*quantity_bytes(Json("0.5Ki")), 512);
  EXPECT_EQ(*quantity_bytes(Json("1500m")), 2);
  EXPECT_FALSE(quantity_bytes(Json("4Ei")).ok());
}

TEST(Quantity, other_json_is_refused) {
  for (const Json& value : {Json(), Json(0.5), Json(-1), Json(true), Json::array(), Json::object()}) {
    EXPECT_FALSE(parse_quantity(value).ok()) << value.dump();
  }
  EXPECT_TRUE(parse_quantity(Json(7u)).ok());
}

}  // namespace
}  // namespace evenkeel::contract
