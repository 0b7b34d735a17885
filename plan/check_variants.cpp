// The variants of an entry cover their symbol's values, and a call has the same inputs, outputs and
// written states whichever of them it meets.
#include <map>

#include "ir/variants.h"
#include "plan/check_parts.h"

namespace sinter::checker {
namespace {

class Variants {
 public:
  Variants(const Program& program, llvm::ArrayRef<EntryPlan> entries)
      : program_(program), entries_(entries) {}

  Status run() const {
    std::vector<std::optional<SymbolRange>> ranges;
    for (const EntryPlan& entry : entries_) ranges.push_back(entry.range);
    if (const auto fault = fault_of_ranges(ranges, program_.symbols)) return bad(*fault);
    for (const EntryPlan& other : entries_.drop_front()) {
      SINTER_TRY(equal("inputs", inputs(entries_[0]), inputs(other)));
      SINTER_TRY(equal("outputs", outputs(entries_[0]), outputs(other)));
      SINTER_TRY(equal("written states", states(entries_[0]), states(other)));
      // Ranks wait for one another: all of a call's sizes reach the same collectives.
      SINTER_TRY(equal("collectives", collectives(entries_[0]), collectives(other)));
    }
    return {};
  }

 private:
  /// Names, each with what is said of it. Names are any text: joined lists would be ambiguous.
  using Listed = std::vector<std::pair<std::string, std::string>>;

  Status equal(std::string_view what, const Listed& a, const Listed& b) const {
    if (a == b) return {};
    const auto text = [](const Listed& listed) {
      std::string text;
      for (const auto& [name, said] : listed) text += fmt::format("%{}: {}; ", name, said);
      return printable(text);
    };
    return bad(fmt::format("has a variant with the {} \"{}\" and one with \"{}\"", what, text(a),
                           text(b)));
  }

  std::string type(const EntryPlan& entry, uint32_t buffer) const {
    return to_string(entry.buffers[buffer].type, program_.symbols);
  }

  Listed inputs(const EntryPlan& entry) const {
    Listed listed;
    for (uint32_t id : entry.inputs) listed.emplace_back(entry.buffers[id].value, type(entry, id));
    return listed;
  }

  Listed outputs(const EntryPlan& entry) const {
    Listed listed;
    for (size_t i = 0; i < entry.outputs.size(); ++i)
      listed.emplace_back(entry.output_names[i], type(entry, entry.outputs[i]));
    return listed;
  }

  Listed states(const EntryPlan& entry) const {
    std::map<uint32_t, uint32_t> versions;  // the newest of each written state
    for (const Buffer& buffer : entry.buffers)
      if (buffer.place == Buffer::Place::state && buffer.version > 0)
        versions[buffer.index] = std::max(versions[buffer.index], buffer.version);
    Listed listed;
    for (const auto& [state, version] : versions)
      listed.emplace_back(program_.states[state].name, fmt::format("{} times", version));
    return listed;
  }

  Listed collectives(const EntryPlan& entry) const {
    Listed listed;
    for (const Step& step : entry.steps)
      visit(
          step, [](const KernelStep&) {}, [](const GemmStep&) {}, [](const CopyStep&) {},
          [&](const CollectiveStep& run) {
            listed.emplace_back(
                entry.buffers[run.to].value,
                fmt::format("{} {} of {}", to_string(run.kind), type(entry, run.to), run.group));
          });
    return listed;
  }

  tl::unexpected<Error> bad(std::string what) const {
    return violation(std::move(what), "entry " + printable(entries_[0].name));
  }

  const Program& program_;
  llvm::ArrayRef<EntryPlan> entries_;
};

}  // namespace

Status check_variants(const Program& program) {
  for (size_t i = 0; i < program.entries.size(); ++i) {
    const EntryPlan& entry = program.entries[i];
    if (i > 0 && entry.name == program.entries[i - 1].name) continue;
    const auto variants = variants_of(program.entries, entry.name);
    if (variants.data() != &entry)
      return violation("another entry stands between variants of this name",
                       "entry " + printable(entry.name));
    SINTER_TRY(Variants(program, variants).run());
  }
  return {};
}

}  // namespace sinter::checker
