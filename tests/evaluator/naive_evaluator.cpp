// An independent evaluator: shares no line with the trainer. Reads a checkpoint's safetensors and the IDX
// test set, runs the MLP with plain loops in double, and prints how many images it classifies right.
//   naive_evaluator WEIGHTS.safetensors IMAGES.gz LABELS.gz      -> "correct 8712 of 10000"
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

std::string read_gz(const char* path) {
  gzFile file = gzopen(path, "rb");
  std::string out;
  char buffer[1 << 16];
  for (int n; file != nullptr && (n = gzread(file, buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<size_t>(n));
  if (file != nullptr) gzclose(file);
  return out;
}

struct Layer {
  size_t in, out;
  std::vector<float> kernel, bias;  // (in, out), (out)
};

std::vector<float> tensor(const std::string& file, const nlohmann::json& header, const std::string& name) {
  uint64_t header_bytes;
  std::memcpy(&header_bytes, file.data(), 8);
  const size_t begin = header[name]["data_offsets"][0], end = header[name]["data_offsets"][1];
  std::vector<float> out((end - begin) / 4);
  std::memcpy(out.data(), file.data() + 8 + header_bytes + begin, end - begin);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  std::ifstream stream(argv[1], std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  if (file.size() < 8) return 65;
  uint64_t header_bytes;
  std::memcpy(&header_bytes, file.data(), 8);
  const nlohmann::json header = nlohmann::json::parse(file.substr(8, header_bytes));
  std::vector<Layer> layers;
  for (int i = 1; header.contains("dense_" + std::to_string(i) + ".kernel"); ++i) {
    const std::string name = "dense_" + std::to_string(i);
    const auto shape = header[name + ".kernel"]["shape"];
    layers.push_back(
        {shape[0], shape[1], tensor(file, header, name + ".kernel"), tensor(file, header, name + ".bias")});
  }
  const std::string images = read_gz(argv[2]), labels = read_gz(argv[3]);
  if (layers.empty() || labels.size() < 8 || images.size() != 16 + (labels.size() - 8) * layers[0].in)
    return 65;

  const size_t samples = labels.size() - 8;
  size_t correct = 0;
  for (size_t s = 0; s < samples; ++s) {
    std::vector<double> x(layers[0].in);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<unsigned char>(images[16 + s * x.size() + i]) / 255.0;
    for (size_t l = 0; l < layers.size(); ++l) {
      std::vector<double> y(layers[l].bias.begin(), layers[l].bias.end());
      for (size_t i = 0; i < layers[l].in; ++i) {
        if (x[i] == 0) continue;
        for (size_t o = 0; o < layers[l].out; ++o) y[o] += x[i] * layers[l].kernel[i * layers[l].out + o];
      }
      if (l + 1 < layers.size())
        for (double& value : y) value = value > 0 ? value : 0;
      x = y;
    }
    size_t best = 0;
    for (size_t o = 1; o < x.size(); ++o)
      if (x[o] > x[best]) best = o;
    correct += best == static_cast<unsigned char>(labels[8 + s]);
  }
  std::printf("correct %zu of %zu\n", correct, samples);
}
