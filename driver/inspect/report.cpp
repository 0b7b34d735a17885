#include <nlohmann/json.hpp>

#include "driver/compile/predicted.h"
#include "driver/generate/prefill_report.h"
#include "driver/inspect/inspect.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

const char* bound(const NodeClass& c, double ridge) {
  return c.intensity() > ridge ? "compute" : "memory";
}

std::string bytes_text(int64_t bytes) { return with_unit(static_cast<double>(bytes), "B"); }

std::string prompts_text(const PromptMemory& memory) {
  const auto& [sequences, length] = memory.prompts;
  TextTable table("ll");
  table.add({"weights", bytes_text(memory.weight_bytes)});
  table.add({"caches", bytes_text(memory.cache_bytes)});
  table.add(
      {"activations", fmt::format("{} (fed at once: {})", bytes_text(memory.prefill.arena_bytes),
                                  bytes_text(memory.at_once_bytes))});
  table.add({"in all", bytes_text(memory.bytes())});
  table.add({"fed in", prefill_text(memory.prefill)});
  return fmt::format("\n{} of {}\n{}", counted(static_cast<uint64_t>(sequences), "prompt"),
                     counted(static_cast<uint64_t>(length), "token"), table.str(2));
}

nlohmann::ordered_json prompts_json(const PromptMemory& memory) {
  return {{"sequences", memory.prompts.sequences},
          {"tokens", memory.prompts.length},
          {"weight_bytes", memory.weight_bytes},
          {"cache_bytes", memory.cache_bytes},
          {"prefill", prefill_json(memory.prefill)},
          {"at_once_bytes", memory.at_once_bytes},
          {"bytes", memory.bytes()}};
}

}  // namespace

std::string inspection_text(const Inspection& inspection) {
  TextTable facts("ll");
  for (const auto& [what, value] : inspection.facts) facts.add({what, value});
  facts.add({"parameters", with_unit(static_cast<double>(inspection.parameters), "")});
  std::string weights;
  for (const auto& [form, bytes] : inspection.weight_bytes)
    weights += fmt::format("{}{} {}", weights.empty() ? "" : ", ", with_unit(bytes, "B"), form);
  facts.add({"weights", weights.empty() ? "none" : weights});
  if (inspection.cache_bytes_per_token > 0)  // an encoder has none
    facts.add({"cache per token", with_unit(inspection.cache_bytes_per_token, "B")});
  std::string text = printable(inspection.name) + "\n\n" + facts.str(2);
  for (const EntryCosts& entry : inspection.entries) {
    text += fmt::format("\n{}, {}\n", printable(entry.name),
                        entry.sizes.empty() ? "all sizes fixed" : entry.sizes);
    TextTable table("lrrrrrl");
    table.add({"class", "ops", "FLOP", "bytes", "predicted", "FLOP/byte", "bound by"});
    const auto add = [&](const NodeClass& c) {
      table.add({printable(c.name), std::to_string(c.count), with_unit(c.flops, ""),
                 with_unit(c.bytes, "B"), duration(c.predicted_s),
                 fmt::format("{:.3g}", c.intensity()), bound(c, inspection.ridge())});
    };
    for (const NodeClass& c : entry.classes) add(c);
    add(entry.total);
    text += table.str(2);
    text += fmt::format("  arena: {}; with a kernel for each op {}\n",
                        bytes_text(entry.arena_bytes), bytes_text(entry.unfused_arena_bytes));
  }
  if (inspection.prompts) text += prompts_text(*inspection.prompts);
  return text + fmt::format(
                    "\n{}: {}/s, {}/s; above {:.0f} FLOP/byte arithmetic is the limit; predicted "
                    "times: {}\n",
                    inspection.device.name, with_unit(inspection.device.tensor_flops_per_s, "FLOP"),
                    with_unit(inspection.device.memory_bytes_per_s, "B"), inspection.ridge(),
                    estimates_for(inspection.device.name));
}

std::string inspection_json(const Inspection& inspection) {
  using Json = nlohmann::ordered_json;
  Json facts = Json::object(), weights = Json::object(), entries = Json::array();
  for (const auto& [what, value] : inspection.facts) facts[what] = value;
  for (const auto& [form, bytes] : inspection.weight_bytes) weights[form] = bytes;
  for (const EntryCosts& entry : inspection.entries) {
    const auto row = [&](const NodeClass& c) {
      return Json{{"class", c.name},
                  {"ops", c.count},
                  {"flops", c.flops},
                  {"bytes", c.bytes},
                  {"predicted_s", c.predicted_s},
                  {"flops_per_byte", c.intensity()},
                  {"bound", bound(c, inspection.ridge())}};
    };
    Json classes = Json::array();
    for (const NodeClass& c : entry.classes) classes.push_back(row(c));
    entries.push_back({{"name", entry.name},
                       {"sizes", entry.sizes},
                       {"arena_bytes", entry.arena_bytes},
                       {"unfused_arena_bytes", entry.unfused_arena_bytes},
                       {"classes", classes},
                       {"total", row(entry.total)}});
  }
  Json json = {{"name", inspection.name},
               {"facts", facts},
               {"parameters", inspection.parameters},
               {"weight_bytes", weights},
               {"cache_bytes_per_token", inspection.cache_bytes_per_token},
               {"device", inspection.device.name},
               {"ridge_flops_per_byte", inspection.ridge()},
               {"entries", entries}};
  if (inspection.prompts) json["prompts"] = prompts_json(*inspection.prompts);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace sinter
