// The built graphs compute what transformers computed: every golden model, both entries, on the
// host.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>

#include "frontends/files/safetensors.h"
#include "frontends/load_model.h"
#include "frontends/model/build_model.h"
#include "golden/models.h"
#include "runtime/evaluate/evaluate.h"

namespace sinter::golden_models_test {
namespace {

constexpr int64_t kSequences = 2, kLength = 23, kCacheRows = 48;

template <typename T>
HostTensor tensor_of(DType dtype, std::vector<int64_t> dims, const std::vector<T>& values) {
  HostTensor tensor{dtype, std::move(dims), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

HostTensor ints(const std::vector<int32_t>& values) {
  return tensor_of(DType::i32, {static_cast<int64_t>(values.size())}, values);
}

/// A loaded model and its evaluated weights and caches, by name.
class HostModel {
 public:
  HostModel(const std::string& name, const LoadOptions& options) {
    const std::string folder = fmt::format("{}/golden/{}", SINTER_TESTS_DIR, name);
    auto loaded = load_model(folder, options);
    REQUIRE_MESSAGE(loaded, loaded.error().message());
    model_ = std::move(*loaded);
    reference_.emplace(*open_safetensors(folder + "/reference.safetensors"));
    for (const Weight& weight : model_.module.weights) {
      auto values =
          evaluate(weight.init, {}, {}, {}, {.precise = false, .source = model_.tensors.get()});
      REQUIRE_MESSAGE(values, values.error().message());
      leaves_[weight.name] = std::move(values->front());
    }
    for (const State& state : model_.module.states) {
      std::vector<int64_t> dims{kCacheRows};
      for (Dim dim : DimsRef(state.type.dims).drop_front()) dims.push_back(dim.constant());
      int64_t count = 1;
      for (int64_t dim : dims) count *= dim;
      leaves_[state.name] =
          tensor_of(DType::f32, std::move(dims), std::vector<float>(static_cast<size_t>(count)));
    }
  }

  /// Runs an entry on these inputs; the caches keep what it appends. Returns logits, then `keep`.
  std::vector<HostTensor> run(const std::string& entry, const std::vector<HostTensor>& inputs,
                              const std::vector<std::string>& keep = {}) {
    Graph graph = model_.module.find_entry(entry)->graph;
    const size_t arguments = graph.inputs.size();
    REQUIRE(arguments == inputs.size());
    std::vector<const HostTensor*> values = addresses_of(inputs);
    // The evaluator knows arguments only: weights and states become some.
    for (uint32_t index = 0; index < graph.size(); ++index) {
      Op& op = graph[ValueId{index}];
      if (op.kind != OpKind::weight && op.kind != OpKind::state) continue;
      op.kind = OpKind::input;
      graph.inputs.push_back(ValueId{index});
      values.push_back(&leaves_.at(op.name));
    }
    for (const std::string& name : keep) {
      REQUIRE_MESSAGE(graph.find(name).valid(), name);
      graph.outputs.push_back(graph.find(name));
    }
    std::vector<std::string> states;
    for (const Op& op : graph.ops())
      if (op.kind == OpKind::kv_append) {
        states.push_back(graph[op.operands[0]].name);
        graph.outputs.push_back(graph.find(op.name));
      }
    const int64_t tokens = inputs[0].dims[0];
    const int64_t decoded = entry == "decode" ? tokens : 1;
    const int64_t wanted = inputs.size() > 4 ? inputs[4].dims[0] : 1;
    std::vector<int64_t> symbols{tokens, wanted, decoded, kCacheRows, kCacheRows};
    symbols.resize(model_.module.symbols.size());
    auto results = evaluate(graph, model_.module.symbols, symbols, values);
    REQUIRE_MESSAGE(results, results.error().message());
    for (size_t i = 0; i < states.size(); ++i)
      leaves_[states[i]] = std::move((*results)[results->size() - states.size() + i]);
    results->resize(results->size() - states.size());
    return std::move(*results);
  }

  LoadedTensor reference(const std::string& name) const { return *reference_->read_tensor(name); }
  const ModelSpec& spec() const { return *model_.spec; }

 private:
  Model model_;
  std::optional<TensorFile> reference_;
  std::map<std::string, HostTensor> leaves_;
};

/// Largest difference between rows of `got` and the rows `positions` of `expected` [tokens, width].
double largest_difference(const HostTensor& got, const LoadedTensor& expected,
                          const std::vector<int32_t>& positions) {
  const int64_t width = got.dims[1];
  REQUIRE(got.dims[0] == static_cast<int64_t>(positions.size()));
  REQUIRE(expected.dims.back() == width);
  const auto* reference = reinterpret_cast<const float*>(expected.bytes.data());
  double largest = 0;
  for (size_t row = 0; row < positions.size(); ++row)
    for (int64_t column = 0; column < width; ++column) {
      const double difference = std::abs(
          static_cast<double>(got.data<float>()[static_cast<int64_t>(row) * width + column]) -
          reference[positions[row] * width + column]);
      largest = difference <= largest ? largest : difference;  // NaN stays
    }
  return largest;
}

/// The five arguments of a prefill of these tokens of the batch (numbered row by row).
std::vector<HostTensor> arguments(const HostModel& model, const std::vector<int32_t>& which) {
  const LoadedTensor ids = model.reference("input_ids");
  const auto* all = reinterpret_cast<const int64_t*>(ids.bytes.data());
  std::vector<int32_t> tokens, pos, first, wanted(which.size());
  for (int32_t token : which) {
    tokens.push_back(static_cast<int32_t>(all[token]));
    pos.push_back(token % kLength);
    first.push_back(token / kLength * kLength);
  }
  std::iota(wanted.begin(), wanted.end(), 0);
  return {ints(tokens), ints(pos), ints(which), ints(first), ints(wanted)};
}

void check_golden(const std::string& name, const LoadOptions& options = {}) {
  CAPTURE(name);
  constexpr double kTolerance = 5e-5;  // float32 in two orders of summation
  HostModel model(name, options);
  std::vector<int32_t> all(kSequences * kLength);
  std::iota(all.begin(), all.end(), 0);

  std::vector<std::string> stream;
  for (int64_t i = 0; i <= model.spec().layers; ++i)
    stream.push_back(hidden_state_name(model.spec(), i));
  const auto results = model.run("prefill", arguments(model, all), stream);
  CHECK(largest_difference(results[0], model.reference("logits"), all) < kTolerance);
  for (size_t i = 0; i < stream.size(); ++i) {
    CAPTURE(stream[i]);
    CHECK(largest_difference(results[i + 1], model.reference(fmt::format("hidden_{}", i)), all) <
          kTolerance);
  }

  // The last token of each sequence, decoded after a prefill of the others.
  HostModel stepwise(name, options);
  std::vector<int32_t> prompt, last;
  for (int32_t token : all) (token % kLength == kLength - 1 ? last : prompt).push_back(token);
  auto prefill = arguments(stepwise, prompt);
  prefill[4] = ints({0});  // the other rows' logits are not wanted
  CHECK(stepwise.run("prefill", prefill)[0].dims[0] == 1);
  auto decode = arguments(stepwise, last);
  decode.pop_back();
  CHECK(largest_difference(stepwise.run("decode", decode)[0], stepwise.reference("logits"), last) <
        kTolerance);
}

/// Both sequences packed into one call: no token sees the other sequence.
void check_encoder(const std::string& name) {
  CAPTURE(name);
  constexpr double kTolerance = 5e-5;
  HostModel model(name, {});
  const LoadedTensor ids = model.reference("input_ids");
  const auto* all = reinterpret_cast<const int64_t*>(ids.bytes.data());
  const auto length = static_cast<int32_t>(ids.dims[1]);
  std::vector<int32_t> tokens, pos, first, last, rows;
  for (int32_t row = 0; row < kSequences * length; ++row) {
    rows.push_back(row);
    tokens.push_back(static_cast<int32_t>(all[row]));
    pos.push_back(row % length);
    first.push_back(row / length * length);
    last.push_back(first.back() + length - 1);
  }
  std::vector<HostTensor> inputs{ints(tokens), ints(pos), ints(first), ints(last)};
  if (model.spec().token_types != 0)
    inputs.insert(inputs.begin() + 2, ints(std::vector<int32_t>(tokens.size())));
  std::vector<std::string> stream;
  for (int64_t i = 0; i < model.spec().layers; ++i)
    stream.push_back(hidden_state_name(model.spec(), i));
  const auto results = model.run("encode", inputs, stream);
  CHECK(largest_difference(results[0], model.reference("last_hidden_state"), rows) < kTolerance);
  for (size_t i = 0; i < stream.size(); ++i) {
    CAPTURE(stream[i]);
    CHECK(largest_difference(results[i + 1], model.reference(fmt::format("hidden_{}", i)), rows) <
          kTolerance);
  }
}

TEST_CASE("every folder with a reference is in the list of golden models") {
  std::set<std::string> found;
  for (const auto& folder : std::filesystem::directory_iterator(SINTER_TESTS_DIR "/golden"))
    if (std::filesystem::exists(folder.path() / "reference.safetensors"))
      found.insert(folder.path().filename().string());
  const std::vector<std::string> names = golden_models();
  CHECK(found == std::set<std::string>(names.begin(), names.end()));
}

TEST_CASE("decoders of every family") {
  for (const char* name : kGoldenDecoders) check_golden(name);
}

TEST_CASE("encoders of every family") {
  for (const char* name : kGoldenEncoders) check_encoder(name);
}

TEST_CASE("texts beyond the original context have the long factors") {
  LoadOptions options;
  options.context = 64;
  check_golden("phi3_longrope_long", options);
}

}  // namespace
}  // namespace sinter::golden_models_test
