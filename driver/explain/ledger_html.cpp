// The ledger as a page: its records as JSON, equal layers once, for driver/page/explain.js.
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <map>
#include <set>

#include "driver/compile/predicted.h"
#include "driver/explain/layers.h"
#include "driver/explain/page_answers.h"
#include "driver/explain/worth.h"
#include "driver/page/page.h"
#include "ir/c_locale.h"
#include "ir/text.h"
#include "ir/variants.h"
#include "kernels/registry.h"

namespace sinter {
namespace {

using Json = nlohmann::ordered_json;

Json bytes_json(double bytes) { return static_cast<int64_t>(bytes); }

/// The texts of kernels: each line once, a text as the numbers of its lines.
class KernelTexts {
 public:
  /// The number of the kernel's text in texts().
  size_t add(const std::string& text) {
    const auto [at, is_new] = known_.try_emplace(text, texts_.size());
    if (!is_new) return at->second;
    llvm::SmallVector<llvm::StringRef, 0> lines;
    llvm::StringRef(text).split(lines, '\n');
    Json numbers = Json::array();
    for (llvm::StringRef line : lines) numbers.push_back(lines_.number(line.str()));
    texts_.push_back(std::move(numbers));
    return at->second;
  }
  const Json& lines() const { return lines_.json(); }
  const Json& texts() const { return texts_; }

 private:
  llvm::StringMap<size_t> known_;
  PageTexts lines_;
  Json texts_ = Json::array();
};

/// The records of one entry.
class EntryPage {
 public:
  EntryPage(const Compiled& compiled, const WhyAnswers& answers, const EntryLedger& ledger,
            const PageParts& parts, PageTexts& texts, KernelTexts& kernels)
      : compiled_(compiled),
        answers_(answers),
        ledger_(ledger),
        parts_(parts),
        texts_(texts),
        kernels_(kernels),
        graph_(compiled.module.entries[ledger.entry].graph),
        sizes_(compiled.sizes_of(ledger.entry)),
        sections_(layer_sections(ledger)),
        shown_(shown_steps(ledger, sections_)) {
    for (uint32_t i = 0; i < graph_.size(); ++i) value_[graph_.ops()[i].name] = {i};
    number_values();
  }

  Json run() {
    const std::vector<Json> fused = steps();
    Json json = {{"title", ledger_.title},
                 {"name", ledger_.name},
                 {"sizes", ledger_.sizes},
                 {"headline", ledger_headline(ledger_)},
                 {"choices", Json::array()},
                 {"sections", Json::array()},
                 {"fused", {{"total", total()}, {"steps", fused}, {"edges", edges()}}}};
    for (const LedgerChoice& choice : ledger_.choices)
      json["choices"].push_back(choice_text(choice));
    for (size_t i = 0; i < sections_.size(); ++i)
      json["sections"].push_back({{"title", section_title(sections_, i)},
                                  {"repeats", repeats_text(sections_[i])},
                                  {"stack", sections_[i].stack},
                                  {"layer", sections_[i].layer},
                                  {"count", sections_[i].repeats + 1},
                                  {"steps", section_steps(sections_[i])}});
    json["classes"] = Json::array();
    for (const ClassCosts& one : ledger_.classes())
      json["classes"].push_back({{"class", to_string(one.step_class)},
                                 {"launches", one.launches},
                                 {"bytes", bytes_json(one.bytes.total())},
                                 {"seconds", one.seconds}});
    json["unfused"] = unfused();
    json["worths"] = worths();
    json["reasons"] = Json::array();
    for (const ReasonWorth& reason : ledger_.reasons)
      json["reasons"].push_back({{"reason", reason.reason},
                                 {"text", reason.text},
                                 {"count", reason.count},
                                 {"seconds", reason.seconds},
                                 {"final", is_final(reason.reason)}});
    json["decisions"] = decisions();
    json["fusions"] = fusions();
    json["answers"] = page_answers(answers_, compiled_, ledger_.entry, computed_, number_, texts_);
    if (parts_.module_text) json["module"] = module_text();
    json["values"] = values_;  // last: the parts above add what they show
    json["views"] = views();
    return json;
  }

 private:
  const Op* find(const std::string& name) const {
    const auto at = value_.find(name);
    return at == value_.end() ? nullptr : &graph_[at->second];
  }

  /// Numbers the values that shown steps compute, in the graph's order, and gives the values of
  /// other layers the numbers of the values that are shown instead.
  void number_values() {
    for (const LayerSection& section : sections_)
      for (size_t step : section.steps)
        for (const std::string& name : ledger_.steps[step].values)
          if (const auto at = value_.find(name); at != value_.end())
            computed_.push_back(at->second);
    llvm::sort(computed_);
    for (ValueId id : computed_) add_value(graph_[id]);
    for (size_t i = 0; i < ledger_.steps.size(); ++i) {
      const std::vector<std::string>& own = ledger_.steps[i].values;
      const std::vector<std::string>& stand_in = ledger_.steps[shown_[i]].values;
      for (size_t k = 0; k < own.size(); ++k) {
        if (k < stand_in.size())
          if (const auto at = number_.find(stand_in[k]); at != number_.end())
            number_.try_emplace(own[k], at->second);
        if (shown_[i] == i && number_.contains(own[k])) step_of_[number_[own[k]]] = i;
      }
    }
    for (size_t i = 0; i < computed_.size(); ++i) {
      Json operands = Json::array();
      for (ValueId operand : graph_[computed_[i]].operands) {
        const std::string& root = graph_[root_of(graph_, operand)].name;
        const size_t number = number_of(root);
        if (std::find(operands.begin(), operands.end(), number) == operands.end())
          operands.push_back(number);
      }
      values_[i].push_back(place_.at(step_of_.at(i)));
      values_[i].push_back(std::move(operands));
    }
  }

  size_t add_value(const Op& op) {
    const size_t number = values_.size();
    number_[op.name] = number;
    values_.push_back(
        {op.name, std::string(algorithm_name(op)), to_string(op.type, compiled_.module.symbols)});
    return number;
  }

  size_t number_of(const std::string& name) {
    if (const auto at = number_.find(name); at != number_.end()) return at->second;
    const Op* op = find(name);
    if (op) return add_value(*op);
    const size_t number = values_.size();
    number_[name] = number;
    values_.push_back({name, "", ""});
    return number;
  }

  Json section_steps(const LayerSection& section) const {
    Json list = Json::array();
    for (size_t step : section.steps) list.push_back(place_.at(step));
    return list;
  }

  Json total() const {
    double bytes = 0;
    size_t calls = 0;
    for (const LedgerStep& step : ledger_.steps) {
      bytes += step.bytes.total();
      calls += step.kind == "gemm";
    }
    return {{"launches", ledger_.steps.size() - calls},
            {"calls", calls},
            {"bytes", bytes_json(bytes)},
            {"seconds", ledger_.seconds()},
            {"predicted", ledger_.predicted_s()},
            {"measured", ledger_.measured()}};
  }

  std::vector<Json> steps() {
    std::vector<Json> list;
    for (const LayerSection& section : sections_)
      for (size_t i : section.steps) list.push_back(step_json(i));
    return list;
  }

  Json step_json(size_t index) {
    const LedgerStep& step = ledger_.steps[index];
    Json values = Json::array();
    for (const std::string& value : step.values) values.push_back(number_of(value));
    Json json = {{"index", index},
                 {"name", step.name},
                 {"kind", step.kind},
                 {"values", values},
                 {"read", bytes_json(step.bytes.read)},
                 {"written", bytes_json(step.bytes.written)},
                 {"predicted", step.predicted_s}};
    if (step.measured_s) json["measured"] = *step.measured_s;
    if (!step.early.empty()) {
      json["early"] = Json::array();
      for (const std::string& value : step.early) json["early"].push_back(value);
    }
    const Program& program = *compiled_.program;
    const StepFacts facts = step_facts(program, program.entries[ledger_.entry].steps[index]);
    if (facts.kernel) {
      const Launch& launch = facts.kernel->launch;
      json["threads"] = launch.threads;
      if (const auto grid = grid_of(launch, sizes_)) {
        json["blocks"] = grid->blocks;
        if (grid->cluster > 1) json["cluster"] = grid->cluster;
      }
      if (const auto bytes = shared_bytes(launch, sizes_)) json["shared"] = *bytes;
      if (parts_.kernel_text) json["cuda"] = kernels_.add(facts.kernel->source);
    }
    if (step.launch)
      json["launch"] = {{"grid", step.launch->grid},
                        {"block", step.launch->block},
                        {"registers", step.launch->registers},
                        {"shared", step.launch->shared_bytes}};
    return json;
  }

  /// [from or -1, to, value, bytes], of a value that a repeated layer takes from the one before it
  /// with a 1 behind.
  Json edges() {
    std::set<std::tuple<int64_t, size_t, size_t>> drawn;
    Json list = Json::array();
    for (const bool repeated : {false, true})
      for (const LedgerEdge& edge : ledger_.edges) {
        if ((shown_[edge.to] != edge.to) != repeated || (repeated && !edge.from)) continue;
        const int64_t from =
            edge.from ? static_cast<int64_t>(place_.at(shown_[*edge.from])) : int64_t{-1};
        const size_t to = place_.at(shown_[edge.to]), value = number_of(edge.value);
        const bool leads_back = from >= static_cast<int64_t>(to);
        if (repeated && !leads_back) continue;
        if (!drawn.insert({from, to, value}).second) continue;
        Json one = {from, to, value, bytes_json(edge.bytes)};
        if (leads_back) one.push_back(1);
        list.push_back(std::move(one));
      }
    return list;
  }

  /// The plan with a kernel for each op: what stands before fusion.
  Json unfused() {
    FusionOptions options;
    options.enabled = false;
    const Fusion fusion = fuse(
        graph_, narrowed(compiled_.module.symbols, compiled_.module.entries[ledger_.entry].range),
        *find_device(compiled_.program->target), options);
    const FusionCosts costs(fusion, sizes_);
    Json steps = Json::array(), edges = Json::array();
    double bytes = 0, seconds = 0;
    size_t calls = 0;
    const auto is_call = [&](const Group& group) {
      return costs.parts(group)[0].shape.family->kind == KernelFamily::Kind::call;
    };
    for (const Group& group : fusion.grouping.groups) {
      bytes += costs.bytes(group).total();
      seconds += costs.seconds(group);
      calls += is_call(group);
    }
    // In the order of the sections, so that both pictures have the same frames.
    std::map<size_t, size_t> step_of_value;
    for (const LayerSection& section : sections_) {
      std::vector<size_t> values;
      for (size_t step : section.steps)
        for (const std::string& value : ledger_.steps[step].values)
          if (const auto at = number_.find(value); at != number_.end())
            values.push_back(at->second);
      llvm::sort(values);
      for (size_t value : values) {
        const uint32_t at = fusion.grouping.group_of[computed_[value].index];
        if (at == UINT32_MAX) continue;
        const Group& group = fusion.grouping.groups[at];
        const Bytes moved = costs.bytes(group);
        step_of_value[value] = steps.size();
        steps.push_back({{"kind", is_call(group) ? "gemm" : "kernel"},
                         {"values", {value}},
                         {"read", bytes_json(moved.read)},
                         {"written", bytes_json(moved.written)},
                         {"predicted", costs.seconds(group)}});
      }
    }
    for (const auto& [value, to] : step_of_value) {
      const Group& group = fusion.grouping.groups[fusion.grouping.group_of[computed_[value].index]];
      for (const auto& [root, read] : costs.reads(group)) {
        const size_t number = number_of(graph_[root].name);
        const auto from = step_of_value.find(number);
        const bool is_computed = from != step_of_value.end();
        Json one = {is_computed ? Json(from->second) : Json(-1), to, number, bytes_json(read)};
        if (is_computed && from->second >= to) one.push_back(1);
        edges.push_back(std::move(one));
      }
    }
    return {{"total",
             {{"launches", fusion.grouping.groups.size() - calls},
              {"calls", calls},
              {"bytes", bytes_json(bytes)},
              {"seconds", seconds},
              {"predicted", seconds},
              {"measured", false}}},
            {"steps", steps},
            {"edges", edges}};
  }

  Json worths() {
    const std::vector<const RefusalWorth*> matter = worths_that_matter(ledger_);
    Json list = Json::array();
    const auto add = [&](const RefusalWorth& worth, bool matters) {
      const LedgerDecision& d = ledger_.decisions[worth.first];
      Json json = {{"a", number_of(d.a)},
                   {"b", number_of(d.b)},
                   {"count", worth.count},
                   {"reason", texts_.number(d.text + "\n" + d.reason)},
                   {"seconds", worth.seconds},
                   {"stated", stated_text(worth)},
                   {"share", ledger_.seconds() > 0 ? stated_s(worth) / ledger_.seconds() : 0}};
      if (matters) json["matters"] = true;
      if (!worth.option.empty()) json["option"] = worth.option;
      list.push_back(std::move(json));
    };
    for (const RefusalWorth* worth : matter) add(*worth, true);  // in the order of the text
    for (const RefusalWorth& worth : ledger_.worths)
      if (worth.seconds > 0 && !llvm::is_contained(matter, &worth)) add(worth, false);
    return list;
  }

  /// [fused, a, b, count, reason, detail, path, change or saving]
  Json decisions() {
    Json list = Json::array();
    for (const bool fused : {false, true})
      for (const DecisionReason& reason : decisions_by_reason(ledger_, fused))
        for (const DecisionKind& kind : reason.kinds) {
          const LedgerDecision& d = kind.first();
          list.push_back({fused ? 1 : 0, number_of(d.a), number_of(d.b), kind.count(),
                          texts_.number(d.text + "\n" + d.reason), texts_.number(d.detail),
                          texts_.number(path_text(d.path)),
                          texts_.number(fused ? savings_text(kind) : d.change)});
        }
    return list;
  }

  /// The fusions that answers name: [place from 1, saving, members by number].
  Json fusions() {
    Json list = Json::array();
    const std::vector<GroupMerge>& merges = answers_.merges(ledger_.entry);
    const std::set<ValueId> shown(computed_.begin(), computed_.end());
    for (size_t i = 0; i < merges.size(); ++i) {
      Json members = Json::array();
      for (const auto* side : {&merges[i].first, &merges[i].second})
        for (ValueId id : *side)
          if (shown.contains(id)) members.push_back(number_of(graph_[id].name));
      if (members.empty()) continue;
      list.push_back({i + 1, bytes_json(merges[i].saved_bytes), std::move(members)});
    }
    return list;
  }

  /// [name, the number of the value that it reads]
  Json views() {
    Json list = Json::array();
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Op& op = graph_.ops()[i];
      const ValueId root = root_of(graph_, {i});
      if (root.index == i || number_.contains(op.name)) continue;
      const auto at = number_.find(graph_[root].name);
      if (at != number_.end() && values_[at->second][0] == graph_[root].name)
        list.push_back({op.name, at->second});
    }
    return list;
  }

  /// The lines of the entry, equal layers once.
  std::string module_text() const {
    std::map<std::pair<std::string, int64_t>, const LayerSection*> repeated;
    for (const LayerSection& section : sections_)
      for (size_t k = 1; k <= section.repeats; ++k)
        repeated[{section.stack, section.layer + static_cast<int64_t>(k)}] = &section;
    llvm::SmallVector<llvm::StringRef, 0> lines;
    const std::string printed = print_graph(graph_, compiled_.module.symbols);
    llvm::StringRef(printed).rtrim().split(lines, '\n');
    std::string text = lines.empty() ? "" : lines[0].str() + '\n';
    const LayerSection* told = nullptr;
    size_t line = 1;
    for (const Op& op : graph_.ops()) {
      if (op.kind == OpKind::input) continue;
      const auto at = repeated.find({std::string(stack_of(op.name)), layer_of(op.name)});
      if (at == repeated.end())
        text += line < lines.size() ? lines[line].str() + '\n' : "";
      else if (std::exchange(told, at->second) != at->second)
        text += "  // " + repeats_text(*told) + '\n';
      ++line;
    }
    return text + "}\n";
  }

  const Compiled& compiled_;
  const WhyAnswers& answers_;
  const EntryLedger& ledger_;
  const PageParts& parts_;
  PageTexts& texts_;
  KernelTexts& kernels_;
  const Graph& graph_;
  const std::vector<int64_t> sizes_;
  const std::vector<LayerSection> sections_;
  const std::vector<size_t> shown_;
  std::map<size_t, size_t> place_ = places();  // of a shown step in the page's list
  llvm::StringMap<ValueId> value_;
  std::vector<ValueId> computed_;     // by shown steps; ascending
  llvm::StringMap<size_t> number_;    // of a value in values_
  std::map<size_t, size_t> step_of_;  // of a computed value, by number
  Json values_ = Json::array();  // [name, op, type], of computed ones also [.., step, operands]

  std::map<size_t, size_t> places() const {
    std::map<size_t, size_t> places;
    for (const LayerSection& section : sections_)
      for (size_t step : section.steps) {
        const size_t next = places.size();
        places[step] = next;
      }
    return places;
  }
};

std::string page_of(const Compiled& compiled, const ReportHeader& header,
                    const std::vector<EntryLedger>& ledgers, const WhyAnswers& answers,
                    bool measured_board, const PageParts& parts) {
  const Program& program = *compiled.program;
  PageTexts texts;
  KernelTexts kernels;
  Json entries = Json::array();
  for (const EntryLedger& entry : ledgers)
    entries.push_back(EntryPage(compiled, answers, entry, parts, texts, kernels).run());
  Json json = {{"sinter", SINTER_VERSION},
               {"model", header.model.empty() ? program.name : header.model},
               {"target", program.target},
               {"numerics", to_string(program.numerics)},
               {"command", header.command},
               {"times", estimates_for(program.target, measured_board)},
               {"entries", entries},
               {"texts", texts.json()},
               {"cuda", {{"lines", kernels.lines()}, {"texts", kernels.texts()}}}};
  if (!parts.comparison.empty()) {
    const CLocale numbers_with_a_point;
    json["against"] = Json::parse(parts.comparison, nullptr, false);
  }
  return page(program.name + ": fusion", "explain.js",
              json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string ledger_html(const Compiled& compiled, const ReportHeader& header,
                        const ReportInputs& inputs, PageParts parts) {
  const std::vector<EntryLedger> ledgers = ledger(compiled, header.only, inputs);
  const WhyAnswers answers(compiled);
  const auto made = [&] {
    return page_of(compiled, header, ledgers, answers, inputs.board.has_value(), parts);
  };
  std::string text = made();
  if (text.size() < kMaxPageBytes || !parts.kernel_text) return text;
  parts.kernel_text = false;
  return made();
}

}  // namespace sinter
