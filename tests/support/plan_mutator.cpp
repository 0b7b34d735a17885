// One function for each kind of change; longer than most files because they are many.
#include "support/plan_mutator.h"

#include <algorithm>

#include "ir/op_roles.h"
#include "ir/text.h"
#include "plan/kernel_text.h"
#include "plan/plan_file.h"
#include "plan/plan_text.h"

namespace sinter::test {
namespace {

using Json = PlanMutator::Json;

/// Every number, string, flag and list of a document, each with its key.
void collect(Json& json, const std::string& key, std::vector<std::pair<std::string, Json*>>& all) {
  all.emplace_back(key, &json);
  if (json.is_object())
    for (auto& [name, item] : json.items()) collect(item, name, all);
  if (json.is_array())
    for (auto& item : json) collect(item, key, all);
}

std::string joined(const Json& lines) {
  std::string text;
  for (const Json& line : lines)
    if (line.is_string()) text += line.get<std::string>() + "\n";
  return text;
}

/// The numbers of the buffers that a step writes.
std::vector<Json> written_by(const Json& step) {
  if (step.contains("gemm")) return {step["gemm"].at("c").at("buffer")};
  if (step.contains("copy")) return {step["copy"].at("to")};
  return step.at("outputs").get<std::vector<Json>>();
}

bool is_arena(const Json& buffer) {
  return buffer.is_object() && buffer.value("place", Json()) == "arena";
}

}  // namespace

void PlanMutator::mutate(Json& plan) {
  plan_ = &plan;
  static constexpr void (PlanMutator::*kChanges[])() = {&PlanMutator::change_field,
                                                        &PlanMutator::redirect,
                                                        &PlanMutator::redirect,
                                                        &PlanMutator::add_twin,
                                                        &PlanMutator::alias,
                                                        &PlanMutator::cut,
                                                        &PlanMutator::retype,
                                                        &PlanMutator::change_steps,
                                                        &PlanMutator::change_group,
                                                        &PlanMutator::change_group,
                                                        &PlanMutator::change_interface,
                                                        &PlanMutator::change_product,
                                                        &PlanMutator::change_row_checks,
                                                        &PlanMutator::exchange};
  for (size_t count = 1 + below(3); count > 0; --count) {
    // A change before may have left a document that this one does not understand.
    try {
      (this->*kChanges[below(std::size(kChanges))])();
    } catch (const std::exception&) {
    }
  }
  if (one_in(5)) return;
  try {
    repair();
  } catch (const std::exception&) {
  }
}

void PlanMutator::change_field() {
  std::vector<std::pair<std::string, Json*>> all;
  collect(plan(), "", all);
  const auto& [key, json] = all[below(all.size())];
  if (one_in(3)) {  // another value of a field of that name
    std::vector<const Json*> same;
    for (const auto& [other, value] : all)
      if (other == key) same.push_back(value);
    *json = Json(*same[below(same.size())]);
  } else if (one_in(20)) {
    *json = Json(*all[below(all.size())].second);
  } else if (json->is_number()) {
    change_number(*json);
  } else if (json->is_string()) {
    change_text(*json);
  } else if (json->is_array()) {
    change_list(*json);
  } else if (json->is_boolean()) {
    *json = !json->get<bool>();
  }
}

void PlanMutator::change_number(Json& number) {
  static constexpr int64_t kNumbers[] = {0,   1,    2,         7,         8,        16,  32,
                                         63,  64,   128,       256,       512,      513, -1,
                                         255, 4096, 1ll << 31, 1ll << 40, INT64_MAX};
  number = one_in(2) ? Json(kNumbers[below(std::size(kNumbers))])
                     : Json(number.get<int64_t>() + (one_in(2) ? 1 : -1));
}

void PlanMutator::change_text(Json& json) {
  std::string text = json;
  const size_t digit = text.find_first_of("0123456789", below(text.size()));
  if (one_in(2) && digit != text.npos)
    text[digit] = static_cast<char>('0' + below(10));
  else if (one_in(2))
    text = size();
  else if (!text.empty())
    text += one_in(2) ? " + " + size() : "*" + size();
  json = text;
}

void PlanMutator::change_list(Json& list) {
  if (list.empty()) return;
  const auto at = list.begin() + static_cast<int64_t>(below(list.size()));
  const size_t kind = below(3);
  if (kind == 0)
    list.erase(at);
  else if (kind == 1)
    list.insert(at, Json(*at));
  else
    std::swap(*at, any(list));
}

std::string PlanMutator::size() {
  static constexpr const char* kSizes[] = {"0", "1", "2", "4", "8", "16", "32", "64"};
  std::vector<std::string> symbols;
  for (const Json& line : plan()["module"])
    if (const std::string text = line; text.starts_with("  symbol "))
      symbols.push_back(text.substr(9, text.find(' ', 9) - 9));
  std::string text = kSizes[below(std::size(kSizes))];
  if (symbols.empty() || one_in(2)) return text;
  const std::string& symbol = symbols[below(symbols.size())];
  return one_in(3) ? symbol : one_in(2) ? text + "*" + symbol : symbol + " - 1";
}

std::vector<Json*> PlanMutator::references(Json& entry) {
  std::vector<Json*> found;
  const auto add_all = [&](Json& list) {
    for (Json& item : list) found.push_back(&item);
  };
  for (Json& step : entry["steps"]) {
    if (step.contains("gemm")) {
      Json& gemm = step["gemm"];
      for (const char* name : {"a", "b", "c"}) found.push_back(&gemm[name]["buffer"]);
      for (const char* name : {"bias", "residual"})
        if (gemm.contains(name)) found.push_back(&gemm[name]);
    } else if (step.contains("copy")) {
      for (const char* name : {"from", "to"}) found.push_back(&step["copy"][name]);
    } else {
      add_all(step["inputs"]), add_all(step["outputs"]);
    }
  }
  add_all(entry["outputs"]);
  if (entry.contains("row_checks"))
    for (Json& check : entry["row_checks"]) found.push_back(&check["buffer"]);
  return found;
}

void PlanMutator::point_at(Json& reference, Json& entry) {
  Json& buffers = entry["buffers"];
  const Json type = buffers.at(reference.get<size_t>())["type"];
  std::vector<size_t> same;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i]["type"] == type) same.push_back(i);
  reference = one_in(4) || same.empty() ? below(buffers.size()) : same[below(same.size())];
}

void PlanMutator::redirect() {
  Json& entry = any_entry();
  const std::vector<Json*> all = references(entry);
  if (!all.empty()) point_at(*all[below(all.size())], entry);
}

/// A buffer more, on the memory of another or of its own, which a step reads or writes instead.
void PlanMutator::add_twin() {
  Json& entry = any_entry();
  Json& buffers = entry["buffers"];
  const std::vector<Json*> all = references(entry);
  if (all.empty()) return;
  Json& reference = *all[below(all.size())];
  Json twin = buffers.at(reference.get<size_t>());
  Json& other = any(buffers);
  for (const char* field : {"place", "index", "version", "type"})
    if (one_in(2) && other.contains(field)) twin[field] = other[field];
  if (one_in(4)) twin["type"] = fmt::format("f32[{}, {}]", size(), size());
  if (twin["place"] == "arena") {
    twin["slot"] = buffers.size();
    for (const char* field : {"bytes", "steps"})
      if (!twin.contains(field)) twin[field] = other.value(field, Json());
  } else {
    if (!twin.contains("index") || one_in(4)) twin["index"] = below(3);
    if (!twin.contains("version") || one_in(4)) twin["version"] = below(3);
  }
  reference = buffers.size();
  buffers.push_back(std::move(twin));
}

/// A buffer of the same type on the memory of another input, weight or state, which a step reads
/// instead.
void PlanMutator::alias() {
  Json& entry = any_entry();
  Json& buffers = entry["buffers"];
  const std::vector<Json*> all = references(entry);
  std::vector<const Json*> given;
  for (const Json& buffer : buffers)
    if (!is_arena(buffer)) given.push_back(&buffer);
  if (all.empty() || given.empty()) return;
  Json& reference = *all[below(all.size())];
  const Json& memory = *given[below(given.size())];
  Json twin = {{"value", "alias"}, {"type", buffers.at(reference.get<size_t>())["type"]}};
  for (const char* field : {"place", "index"}) twin[field] = memory.at(field);
  twin["version"] = memory.value("version", 0);
  reference = buffers.size();
  buffers.push_back(std::move(twin));
}

/// The entry ends earlier; its results are some of the values that are there then.
void PlanMutator::cut() {
  Json& entry = any_entry();
  Json& steps = entry["steps"];
  const size_t count = below(steps.size()) + 1;
  while (steps.size() > count) steps.erase(steps.size() - 1);
  entry["outputs"] = Json::array({written_by(steps.back()).at(0)});
  if (one_in(2))
    for (const Json& id : written_by(any(steps))) entry["outputs"].push_back(id);
}

/// Another type, of one buffer or of all that have it, in the kernels too.
void PlanMutator::retype() {
  Json& entry = any_entry();
  Json& buffers = entry["buffers"];
  const std::string from = any(buffers)["type"];
  std::string to = any(buffers)["type"];
  if (one_in(2)) {
    Json text = from;
    change_text(text);
    to = text;
  } else if (one_in(2)) {
    static constexpr const char* kTypes[] = {"f32", "f16", "bf16", "i32", "i64", "i1"};
    to = kTypes[below(std::size(kTypes))] + from.substr(std::min(from.find('['), from.size()));
  }
  if (one_in(2)) {
    for (Json& buffer : buffers)
      if (buffer["type"] == from && (!one_in(4))) {
        buffer["type"] = to;
        break;
      }
    return;
  }
  std::vector<std::pair<std::string, Json*>> all;
  collect(plan(), "", all);
  for (auto& [key, json] : all) {
    if (!json->is_string()) continue;
    std::string text = *json;
    for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
      text.replace(at, from.size(), to);
    *json = text;
  }
}

void PlanMutator::change_steps() {
  Json& entry = any_entry();
  Json& steps = entry["steps"];
  const size_t kind = below(4);
  if (kind < 3) return change_list(steps);
  Json copy = {
      {"values", Json::array({"copy"})},
      {"copy", {{"from", below(entry["buffers"].size())}, {"to", below(entry["buffers"].size())}}}};
  steps.insert(steps.begin() + static_cast<int64_t>(below(steps.size() + 1)), std::move(copy));
}

/// A line of a kernel's ops: another op, operand, number, type, or a line of another kernel.
void PlanMutator::change_group() {
  Json& kernel = any(plan()["kernels"]);
  Json& lines = kernel["group"];
  const size_t at = below(lines.size());
  std::string line = lines[at];
  const auto word_after = [&](std::string_view mark) -> std::pair<size_t, size_t> {
    const size_t begin = line.find(mark);
    if (begin == line.npos) return {0, 0};
    const size_t end = line.find_first_of(" ,)", begin + mark.size());
    return {begin + mark.size(), std::min(end, line.size()) - begin - mark.size()};
  };
  switch (below(6)) {
    case 0: {  // another op
      static constexpr const char* kOps[] = {"neg",   "add",  "copy",    "place", "kv_append",
                                             "slice", "cast", "softmax", "exp",   "reshape"};
      const auto [begin, length] = word_after("= ");
      if (length > 0) line.replace(begin, length, kOps[below(std::size(kOps))]);
      break;
    }
    case 1: {  // another operand
      const std::string other = any(lines);
      const size_t name = other.find('%'), operand = line.rfind('%');
      if (name == other.npos || operand == line.npos) return;
      const size_t name_end = std::min(other.find_first_of(" ,:)", name), other.size());
      const size_t end = std::min(line.find_first_of(" ,:)", operand), line.size());
      line.replace(operand, end - operand, other.substr(name, name_end - name));
      break;
    }
    case 2: {  // an attribute or an extent
      const size_t digit = line.find_first_of("0123456789", below(line.size()));
      if (digit != line.npos) line[digit] = static_cast<char>('0' + below(10));
      break;
    }
    case 3:  // more results, or fewer
      line = lines[0];
      if (const size_t result = line.find("-> ("); result != line.npos && lines.size() > 2) {
        const std::string other = lines[1 + below(lines.size() - 2)];
        const size_t name = other.find('%');
        if (name != other.npos)
          line.insert(result + 4, other.substr(name, other.find(' ', name) - name) + ", ");
      }
      lines[0] = line;
      return;
    case 4:
      change_list(lines);
      return;
    default: {
      const Json& other = any(any(plan()["kernels"])["group"]);
      line = other;
    }
  }
  lines[at] = line;
}

void PlanMutator::change_interface() {
  Json& entry = any_entry();
  Json& outputs = entry["outputs"];
  Json& names = entry["output_names"];
  switch (below(4)) {
    case 0:
      outputs.push_back(below(entry["buffers"].size()));
      names.push_back("more");
      return;
    case 1:
      if (outputs.empty()) return;
      outputs.erase(outputs.size() - 1);
      names.erase(names.size() - 1);
      return;
    case 2:
      return change_list(entry["inputs"]);
    default:
      for (Json* list : {&outputs, &entry["inputs"]})
        if (!list->empty() && one_in(2)) any(*list) = below(entry["buffers"].size());
  }
}

void PlanMutator::change_row_checks() {
  Json& entry = any_entry();
  Json& checks = entry["row_checks"];
  if (checks.is_null()) checks = Json::array();
  if (!checks.empty() && one_in(2)) return change_list(checks);
  checks.push_back({{"buffer", below(entry["buffers"].size())}, {"rows", size()}, {"op", "x"}});
}

void PlanMutator::change_product() {
  Json& entry = any_entry();
  std::vector<Json*> products;
  for (Json& step : entry["steps"])
    if (step.contains("gemm")) products.push_back(&step["gemm"]);
  if (products.empty()) return redirect();
  Json& gemm = *products[below(products.size())];
  for (size_t count = 1 + below(3); count > 0; --count) {
    static constexpr const char* kSizes[] = {"m", "n", "k"};
    static constexpr const char* kStrides[] = {"offset", "row_stride", "column_stride"};
    static constexpr const char* kOperands[] = {"a", "b", "c"};
    switch (below(5)) {
      case 0:
        gemm[kSizes[below(3)]] = size();
        break;
      case 1:
        gemm[kOperands[below(3)]][kStrides[below(3)]] = size();
        break;
      case 2:
        std::swap(gemm[kOperands[below(3)]], gemm[kOperands[below(3)]]);
        break;
      case 3:
        gemm["loops"].push_back(
            {{"count", size()}, {"a_stride", size()}, {"b_stride", size()}, {"c_stride", size()}});
        break;
      default:
        gemm[one_in(2) ? "bias" : "residual"] = below(entry["buffers"].size());
    }
  }
}

/// Exchanges a part of one kernel or entry with that of another.
void PlanMutator::exchange() {
  Json& list = plan()[one_in(2) ? "kernels" : "entries"];
  Json &one = any(list), &other = any(list);
  std::vector<std::string> keys;
  for (const auto& [key, value] : one.items()) keys.push_back(key);
  if (keys.empty()) return;
  const std::string key = keys[below(keys.size())];
  if (other.contains(key)) std::swap(one[key], other[key]);
}

void PlanMutator::repair() {
  for (Json& entry : plan()["entries"]) {
    leave_out_unwritten(entry);
    repair_sizes(entry);
    repair_lives(entry);
    while (entry["output_names"].size() < entry["outputs"].size())
      entry["output_names"].push_back("more");
    while (entry["output_names"].size() > entry["outputs"].size())
      entry["output_names"].erase(entry["output_names"].size() - 1);
    // A slot for each, so that lives that meet are no fault.
    if (one_in(2))
      for (size_t i = 0; i < entry["buffers"].size(); ++i)
        if (is_arena(entry["buffers"][i])) entry["buffers"][i]["slot"] = i;
  }
  repair_kernels();
}

void PlanMutator::leave_out_unwritten(Json& entry) {
  Json& buffers = entry["buffers"];
  std::vector<bool> stays;
  for (const Json& buffer : buffers) stays.push_back(!is_arena(buffer));
  for (const Json& step : entry["steps"])
    for (const Json& id : written_by(step)) stays.at(id.get<size_t>()) = true;
  std::vector<size_t> numbers;
  Json left = Json::array();
  for (size_t i = 0; i < stays.size(); ++i) {
    numbers.push_back(left.size());
    if (stays[i]) left.push_back(buffers[i]);
  }
  if (left.size() == buffers.size()) return;
  std::vector<Json*> all = references(entry);
  for (Json& input : entry["inputs"]) all.push_back(&input);
  for (Json* id : all) *id = numbers.at(id->get<size_t>());
  buffers = std::move(left);
}

void PlanMutator::repair_lives(Json& entry) {
  Json& buffers = entry["buffers"];
  const auto used = [&](const Json& id, size_t step, bool is_written) {
    if (!id.is_number_unsigned() || id.get<size_t>() >= buffers.size()) return;
    Json& buffer = buffers[id.get<size_t>()];
    if (!is_arena(buffer)) return;
    if (is_written) buffer["steps"] = {step, step};
    buffer["steps"][1] = step;
  };
  const Json& steps = entry["steps"];
  for (size_t i = 0; i < steps.size(); ++i) {
    const Json& step = steps[i];
    if (step.contains("gemm")) {
      const Json& gemm = step["gemm"];
      for (const char* name : {"a", "b"}) used(gemm.at(name).at("buffer"), i, false);
      for (const char* name : {"bias", "residual"})
        if (gemm.contains(name)) used(gemm[name], i, false);
    } else if (step.contains("copy")) {
      used(step["copy"].at("from"), i, false);
    } else {
      for (const Json& id : step.at("inputs")) used(id, i, false);
    }
    for (const Json& id : written_by(step)) used(id, i, true);
  }
  for (const Json& id : entry["outputs"]) used(id, steps.size(), false);
  if (entry.contains("row_checks"))
    for (const Json& check : entry["row_checks"]) used(check.at("buffer"), steps.size(), false);
}

void PlanMutator::repair_sizes(Json& entry) {
  const auto module = parse_module(joined(plan()["module"]), "module");
  if (!module) return;
  for (Json& buffer : entry["buffers"]) {
    const auto type = plan_text::parse_type(buffer["type"].get<std::string>(), module->symbols);
    if (type && is_arena(buffer))
      buffer["bytes"] = to_string(storage_bytes(*type), module->symbols);
  }
}

void PlanMutator::repair_kernels() {
  auto module = parse_module(joined(plan()["module"]), "module");
  if (!module) return;
  Program program;
  program.symbols = module->symbols;
  program.weights = module->weights;
  plan()["weights_fingerprint"] = weights_fingerprint(program);
  for (Json& kernel : plan()["kernels"]) {
    const auto group = parse_graph(joined(kernel["group"]), "group", module->symbols);
    if (!group) continue;
    kernel["symbols"] = Json::array();
    for (SymbolId id : symbols_of(*group))
      kernel["symbols"].push_back(module->symbols[id.index].name);
    kernel["appends"] = Json::array();
    for (size_t i = 0; i < group->outputs.size(); ++i)
      if (writes_state((*group)[group->outputs[i]])) kernel["appends"].push_back(i);
  }
}

}  // namespace sinter::test
