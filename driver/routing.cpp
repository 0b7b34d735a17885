#include "driver/routing.h"

#include <cmath>
#include <numeric>
#include <random>

#include "driver/text_table.h"
#include "ir/integers.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr const char* kOption = "--routing";
// Far above every probability and logit.
constexpr double kBias = 0x1p20;
constexpr int64_t kMinPeriod = 2048;

void draw_experts(const Experts& experts, std::mt19937_64& engine, std::vector<int64_t>& chosen) {
  std::vector<double> weights;
  for (int64_t e = 0; e < experts.count; ++e) weights.push_back(1 / static_cast<double>(e + 1));
  for (int64_t r = 0; r < experts.chosen; ++r) {
    const double share = static_cast<double>(engine() >> 11) * 0x1p-53;  // [0, 1)
    const double drawn = share * std::accumulate(weights.begin(), weights.end(), 0.0);
    size_t e = 0;
    for (double sum = weights[0]; sum <= drawn; sum += weights[e]) ++e;
    weights[e] = 0;
    chosen.push_back(static_cast<int64_t>(e));
  }
}

/// A row for each token of the period: kBias for its experts, 0 for the others.
Weight bias_table(const Experts& experts, ExpertRouting routing, uint64_t seed) {
  const std::vector<int64_t> chosen = routed_experts(experts, routing, seed);
  std::vector<Number> values(static_cast<size_t>(routing_period(experts) * experts.count), 0.0);
  for (size_t i = 0; i < chosen.size(); ++i)
    values[i / static_cast<size_t>(experts.chosen) * static_cast<size_t>(experts.count) +
           static_cast<size_t>(chosen[i])] = kBias;
  Weight table{"routing.table", {DType::f32, {routing_period(experts), experts.count}}, {}};
  Builder builder(table.init, {});
  table.init.outputs.push_back(builder.op(OpKind::literal, {},
                                          Attributes()
                                              .set(AttrName::dims, table.type.dims)
                                              .set(AttrName::dtype, DType::f32)
                                              .set(AttrName::values, std::move(values)),
                                          table.name));
  return table;
}

/// The rows of the table for a call's tokens, whose positions are `pos`.
ValueId bias_rows(Builder& b, const Weight& table, ValueId pos) {
  const Dims tokens = b.type(pos).dims;
  const ValueId row = b.iota(tokens, 0);
  const ValueId token = b.add(row, b.slice(pos, 0, 0, 1));
  const ValueId period = b.constant(static_cast<double>(table.type.dims[0].constant()), DType::i32);
  const ValueId number = b.op(OpKind::mod_floor, {token, period}, {}, "routing.token");
  return b.op(OpKind::embedding, {b.leaf(OpKind::weight, table.type, table.name), number}, {},
              "routing.bias");
}

}  // namespace

std::string_view to_string(ExpertRouting routing) {
  switch (routing) {
    case ExpertRouting::random:
      return "random";
    case ExpertRouting::uniform:
      return "uniform";
    case ExpertRouting::skewed:
      return "skewed";
  }
  SINTER_CHECK(false, "routing");
}

Result<ExpertRouting> parse_expert_routing(std::string_view text) {
  for (ExpertRouting routing :
       {ExpertRouting::random, ExpertRouting::uniform, ExpertRouting::skewed})
    if (text == to_string(routing)) return routing;
  return fail(fmt::format("no such routing: \"{}\"", printable(text)), kOption,
              "give random, uniform or skewed", ExitCode::usage);
}

/// A multiple of E, so that uniform choices go on as they began.
int64_t routing_period(const Experts& experts) {
  return ceil_div(kMinPeriod, experts.count) * experts.count;
}

std::vector<int64_t> routed_experts(const Experts& experts, ExpertRouting routing, uint64_t seed) {
  SINTER_CHECK(routing != ExpertRouting::random, "weights choose");
  std::vector<int64_t> chosen;
  std::mt19937_64 engine(seed);
  const auto shift = static_cast<int64_t>(seed % static_cast<uint64_t>(experts.count));
  for (int64_t token = 0; token < routing_period(experts); ++token) {
    if (routing == ExpertRouting::skewed)
      draw_experts(experts, engine, chosen);
    else
      for (int64_t r = 0; r < experts.chosen; ++r)
        chosen.push_back((token * experts.chosen + r + shift) % experts.count);
  }
  return chosen;
}

Status set_routing(OpenedModel& model, ExpertRouting routing, uint64_t seed) {
  if (routing == ExpertRouting::random) return {};
  if (!model.spec || !model.spec->experts)
    return fail(fmt::format("{} {} in a model without experts", kOption, to_string(routing)),
                model.origin, fmt::format("leave out {}", kOption), ExitCode::usage);
  if (model.compiled_with)
    return fail("a plan has the routing that it was compiled with", model.origin,
                fmt::format("leave out {}, or give the model itself", kOption), ExitCode::usage);
  const Weight table = bias_table(*model.spec->experts, routing, seed);
  rewrite_graphs(
      model.module, [](const Op& op) { return op.kind == OpKind::top_k; },
      [&](const Graph& from, Builder& builder, GraphRewriter& rewriter) {
        const ValueId pos = from.find("pos");
        SINTER_CHECK(pos.valid(), "an entry with experts that has no positions");
        ValueId bias;
        rewriter.rewrite([&](ValueId, Op op) {
          if (op.kind != OpKind::top_k) return rewriter.add(std::move(op));
          if (!bias.valid()) bias = bias_rows(builder, table, rewriter[pos]);
          op.operands[0] = builder.op(OpKind::add, {op.operands[0], bias}, {}, op.name + ".scores");
          return rewriter.add(std::move(op));
        });
        return true;
      });
  model.module.weights.push_back(table);
  return {};
}

StepExperts step_experts(const Experts& experts, ExpertRouting routing, uint64_t seed,
                         int64_t tokens) {
  StepExperts step{routing, tokens, experts.count, 0};
  const auto count = static_cast<double>(experts.count);
  if (routing == ExpertRouting::random) {
    step.read = count * (1 - std::pow(1 - static_cast<double>(experts.chosen) / count, tokens));
    return step;
  }
  const std::vector<int64_t> chosen = routed_experts(experts, routing, seed);
  const int64_t period = routing_period(experts);
  // A step that begins at each token of the period: a window that slides over the choices.
  std::vector<int64_t> readers(static_cast<size_t>(experts.count), 0);
  const auto add = [&](int64_t token, int64_t more) {
    for (int64_t r = 0; r < experts.chosen; ++r)
      readers[static_cast<size_t>(
          chosen[static_cast<size_t>(token % period * experts.chosen + r)])] += more;
  };
  for (int64_t token = 0; token < tokens; ++token) add(token, 1);
  for (int64_t begin = 0; begin < period; ++begin) {
    step.read += static_cast<double>(experts.count - llvm::count(readers, 0));
    add(begin, -1);
    add(begin + tokens, 1);
  }
  step.read /= static_cast<double>(period);
  return step;
}

std::string step_experts_text(const StepExperts& step) {
  return fmt::format("{}; {} {} {:.1f} of a layer's {} experts", to_string(step.routing),
                     counted(static_cast<uint64_t>(step.tokens), "token"),
                     step.tokens == 1 ? "reads" : "read", step.read, step.count);
}

}  // namespace sinter
