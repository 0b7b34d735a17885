// The ledger as JSON. A line for each record: files that a person can compare.
#include <nlohmann/json.hpp>

#include "driver/explain/layers.h"
#include "driver/explain/worth.h"

namespace sinter {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;  // grows when a field changes its meaning or goes

std::string line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename Records, typename ToJson>
std::string list(const Records& records, ToJson to_json) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < records.size(); ++i)
    lines.push_back("      " + line(to_json(records[i], i)));
  return lines.empty() ? "[]" : fmt::format("[\n{}\n    ]", fmt::join(lines, ",\n"));
}

Json value_json(const LedgerValue& value) {
  const int64_t layer = layer_of(value.name);
  return {{"name", value.name},
          {"op", value.op},
          {"type", value.type},
          {"layer", layer < 0 ? Json() : Json(layer)},
          {"step", value.step ? Json(*value.step) : Json()}};
}

Json step_json(const LedgerStep& step, size_t index) {
  Json json = {{"index", index},
               {"name", step.name},
               {"kind", step.kind},
               {"class", to_string(step.step_class)},
               {"values", step.values},
               {"read_bytes", static_cast<int64_t>(step.bytes.read)},
               {"written_bytes", static_cast<int64_t>(step.bytes.written)},
               {"predicted_s", step.predicted_s},
               {"early", step.early},
               {"triggers_after_wait", step.triggers_after_wait}};
  if (step.measured_s) json["measured_s"] = *step.measured_s;
  return json;
}

Json worth_json(const EntryLedger& entry, const RefusalWorth& worth) {
  const LedgerDecision& d = entry.decisions[worth.first];
  Json json = {{"a", d.a},
               {"b", d.b},
               {"count", worth.count},
               {"reason", d.reason},
               {"kernels", {worth.kernels.first, worth.kernels.second}},
               {"seconds", worth.seconds},
               {"bytes", static_cast<int64_t>(worth.bytes)},
               {"unasked", worth.unasked},
               {"final", is_final(d.reason)}};
  if (!worth.option.empty()) {
    json["option"] = worth.option;
    json["option_s"] = worth.option_s;
  }
  return json;
}

Json reason_json(const ReasonWorth& reason) {
  return {{"reason", reason.reason},
          {"text", reason.text},
          {"count", reason.count},
          {"seconds", reason.seconds},
          {"bytes", static_cast<int64_t>(reason.bytes)}};
}

Json choice_json(const LedgerChoice& choice) {
  return {{"what", choice.what}, {"by", choice.by}, {"why", choice.why}, {"values", choice.values}};
}

/// A line of the entry's record; empty where nobody asked.
std::string relaxed_line(const std::optional<RelaxedSavings>& relaxed) {
  if (!relaxed) return {};
  const Json json = {{"places", relaxed->places},
                     {"saved_s", relaxed->seconds},
                     {"saved_bytes", static_cast<int64_t>(relaxed->bytes)},
                     {"text", savings_text(*relaxed)}};
  return fmt::format("    \"relaxed_attention\": {},\n", line(json));
}

Json class_json(const EntryLedger& entry, const ClassCosts& one) {
  Json json = {{"class", to_string(one.step_class)},
               {"launches", one.launches},
               {"read_bytes", static_cast<int64_t>(one.bytes.read)},
               {"written_bytes", static_cast<int64_t>(one.bytes.written)},
               {"predicted_s", one.predicted_s}};
  if (entry.measured()) json["measured_s"] = one.seconds;
  return json;
}

Json edge_json(const LedgerEdge& edge) {
  return {{"from", edge.from ? Json(*edge.from) : Json()},
          {"to", edge.to},
          {"value", edge.value},
          {"bytes", static_cast<int64_t>(edge.bytes)}};
}

Json decision_json(const LedgerDecision& d) {
  Json json = {{"a", d.a}, {"b", d.b}, {"fused", d.fused}, {"reason", d.reason}, {"text", d.text}};
  if (!d.detail.empty()) json["detail"] = d.detail;
  if (d.fused) {
    json["fusion"] = d.merge;
    json["with"] = d.with;
    json["saved_bytes"] = static_cast<int64_t>(d.saved_bytes);
  } else {
    if (!d.path.empty()) json["path"] = d.path;
    json["change"] = d.change;
    json["worth_s"] = d.worth_s;
    json["worth_bytes"] = static_cast<int64_t>(d.worth_bytes);
  }
  return json;
}

std::string entry_json(const EntryLedger& entry) {
  const auto plain = [](auto to_json) {
    return [to_json](const auto& record, size_t) { return to_json(record); };
  };
  return fmt::format(
      "  {{\n    \"name\": {},\n    \"title\": {},\n    \"sizes\": {},\n    \"saved_bytes\": {},\n"
      "    \"predicted_s\": {},\n{}    \"classes\": {},\n"
      "    \"worth\": {},\n    \"reasons\": {},\n"
      "    \"choices\": {},\n{}    \"values\": {},\n"
      "    \"kernels\": {},\n    \"edges\": {},\n"
      "    \"decisions\": {}\n  }}",
      line(entry.name), line(entry.title), line(entry.sizes),
      static_cast<int64_t>(entry.saved_bytes()), line(entry.predicted_s()),
      entry.measured() ? fmt::format("    \"measured_s\": {},\n", line(entry.seconds())) : "",
      list(entry.classes(), plain([&](const ClassCosts& one) { return class_json(entry, one); })),
      list(entry.worths,
           [&](const RefusalWorth& worth, size_t) { return worth_json(entry, worth); }),
      list(entry.reasons, plain(reason_json)), list(entry.choices, plain(choice_json)),
      relaxed_line(entry.relaxed), list(entry.values, plain(value_json)),
      list(entry.steps, step_json), list(entry.edges, plain(edge_json)),
      list(entry.decisions, plain(decision_json)));
}

}  // namespace

std::string ledger_json(const Compiled& compiled, const ReportHeader& header,
                        const ReportInputs& inputs) {
  const Program& program = *compiled.program;
  Json sizes = Json::object();
  for (size_t i = 0; i < program.symbols.size() && i < compiled.sizes.size(); ++i)
    sizes[program.symbols[i].name] = compiled.sizes[i];
  std::vector<std::string> entries;
  for (const EntryLedger& entry : ledger(compiled, header.only, inputs))
    entries.push_back(entry_json(entry));
  return fmt::format(
      "{{\n\"format\": \"sinter.ledger\",\n\"version\": {},\n\"sinter\": {},\n\"command\": {},\n"
      "\"model\": {},\n\"target\": {},\n\"numerics\": {},\n\"sizes\": {},\n"
      "\"entries\": [\n{}\n]}}\n",
      kVersion, line(SINTER_VERSION), line(header.command.empty() ? Json() : Json(header.command)),
      line(program.name), line(program.target), line(std::string(to_string(program.numerics))),
      line(sizes), fmt::join(entries, ",\n"));
}

}  // namespace sinter
