// One API server for all tests of a suite, started with its first. For the suites of this folder.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "tests/operator/judged_run.h"
#include "tests/operator/world.h"

namespace evenkeel::oper {

class ServerFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<ApiServer>(); }
  static void TearDownTestSuite() { server_.reset(); }
  static ApiServer& server() { return *server_; }

 private:
  static inline std::unique_ptr<ApiServer> server_;
};

}  // namespace evenkeel::oper
