#include "trainer/launch/output_pump.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

namespace evenkeel::trainer {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::pipe(fds.data()), 0);
    read = base::Socket(fds[0]);
    write = base::Socket(fds[1]);
  }
  void put(const std::string& text) {
    EXPECT_EQ(::write(write.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  base::Socket read, write;
};

struct Output {
  Output() : file(std::tmpfile()) {}
  ~Output() { std::fclose(file); }
  std::string text() {
    std::rewind(file);
    std::string all(1 << 22, '\0');
    all.resize(std::fread(all.data(), 1, all.size(), file));
    return all;
  }
  std::FILE* file;
};

TEST(OutputPump, lines_of_many_processes_come_out_whole) {
  constexpr int kRanks = 4, kLines = 50;
  Output output;
  std::vector<Pipe> pipes(kRanks);
  {
    std::vector<std::unique_ptr<OutputPump>> pumps;
    for (Pipe& pipe : pipes) pumps.push_back(std::make_unique<OutputPump>(pipe.read.fd(), output.file));
    std::vector<std::thread> writers;
    for (int rank = 0; rank < kRanks; ++rank) {
      writers.emplace_back([&, rank] {
        const std::string line(9000, static_cast<char>('a' + rank));  // longer than a pipe takes at once
        for (int i = 0; i < kLines; ++i) {
          pipes[static_cast<std::size_t>(rank)].put(line.substr(0, 4000));
          pipes[static_cast<std::size_t>(rank)].put(line.substr(4000) + "\n");
        }
        pipes[static_cast<std::size_t>(rank)].write.close();
      });
    }
    for (std::thread& writer : writers) writer.join();
  }
  std::map<char, int> seen;
  std::istringstream lines(output.text());
  for (std::string line; std::getline(lines, line);) {
    ASSERT_EQ(line.size(), 9000u);
    ASSERT_EQ(line.find_first_not_of(line[0]), std::string::npos);
    ++seen[line[0]];
  }
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(seen[static_cast<char>('a' + rank)], kLines);
}

TEST(OutputPump, what_a_killed_process_left_is_handed_on_with_an_end_to_its_line) {
  Output output;
  Pipe pipe;
  pipe.put("one\ntw");
  {
    OutputPump pump(pipe.read.fd(), output.file);
    pipe.put("o");
    pipe.write.close();
  }
  EXPECT_EQ(output.text(), "one\ntwo\n");
}

TEST(OutputPump, it_ends_though_somebody_keeps_the_stream_open) {
  Output output;
  Pipe pipe;
  pipe.put("line\n");
  { OutputPump pump(pipe.read.fd(), output.file); }
  EXPECT_EQ(output.text(), "line\n");
}

}  // namespace
}  // namespace evenkeel::trainer
