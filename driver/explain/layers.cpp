#include "driver/explain/layers.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringMap.h>

#include <map>
#include <optional>
#include <tuple>

namespace sinter {
namespace {

constexpr size_t kMaxDigits = 9;

struct LayerNumber {
  size_t begin = 0;  // in the name
  std::string_view text;
};

std::optional<LayerNumber> layer_number(std::string_view value) {
  for (size_t begin = 0; begin < value.size();) {
    const size_t end = std::min(value.find('.', begin), value.size());
    // The frontends' names go on behind the layer.
    const bool is_short = begin == 0 && value[0] == 'l' && end < value.size();
    const size_t at = is_short ? 1 : begin;
    const std::string_view digits = value.substr(at, end - at);
    if ((is_short || begin > 0) && !digits.empty() && digits.size() <= kMaxDigits &&
        digits.find_first_not_of("0123456789") == std::string_view::npos)
      return LayerNumber{at, digits};
    begin = end + 1;
  }
  return std::nullopt;
}

/// A layer of one stack of them.
using LayerKey = std::pair<std::string, int64_t>;
LayerKey layer_key_of(const LedgerStep& step) {
  const std::string& value = step.values.front();
  return {std::string(stack_of(value)), layer_of(value)};
}

/// True for the name of a value that has none of its own: "t19".
bool is_numbered(std::string_view value) {
  return value.size() > 1 && value[0] == 't' &&
         value.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

/// "l7.res2 l8.norm1" of layer 7 -> "l+0.res2 l+1.norm1"; values without a name of their own are
/// equal.
std::string relative(const std::string& value, int64_t layer) {
  if (is_numbered(value)) return "t";
  return with_layer(value, fmt::format("{:+}", layer_of(value) - layer));
}

/// Equal for steps that do the same in layers of their own.
std::string signature(const EntryLedger& ledger, const LayerSection& section) {
  std::string text;
  for (size_t i : section.steps) {
    const LedgerStep& step = ledger.steps[i];
    text += section.stack + step.name;
    for (const auto* values : {&step.values, &step.early})
      for (const std::string& value : *values) text += "\n" + relative(value, section.layer);
    text += '\0';
  }
  return text;
}

/// A stretch of a path within one layer.
struct Stretch {
  int64_t layer;
  size_t begin, end;
};

std::vector<Stretch> stretches(const std::vector<std::string>& path) {
  std::vector<Stretch> result;
  for (size_t i = 0; i < path.size(); ++i) {
    const int64_t layer = layer_of(path[i]);
    if (result.empty() || result.back().layer != layer) result.push_back({layer, i, i});
    result.back().end = i + 1;
  }
  return result;
}

/// True if relative() gives the same for `x` of layer `of_x` and `y` of layer `of_y`.
bool same_relative(const std::string& x, int64_t of_x, const std::string& y, int64_t of_y) {
  const auto a = layer_number(x), b = layer_number(y);
  if (!a || !b)
    return a.has_value() == b.has_value() && (x == y || (is_numbered(x) && is_numbered(y)));
  const std::string_view end_x = std::string_view(x).substr(a->begin + a->text.size()),
                         end_y = std::string_view(y).substr(b->begin + b->text.size());
  return end_x == end_y && stack_of(x) == stack_of(y) && layer_of(x) - of_x == layer_of(y) - of_y;
}

bool same_way(const std::vector<std::string>& path, const Stretch& x, const Stretch& y) {
  if (x.layer < 0 || y.layer < 0 || x.end - x.begin != y.end - y.begin) return false;
  for (size_t i = 0; i < x.end - x.begin; ++i)
    if (!same_relative(path[x.begin + i], x.layer, path[y.begin + i], y.layer)) return false;
  return true;
}

}  // namespace

int64_t layer_of(std::string_view value) {
  const auto number = layer_number(value);
  if (!number) return -1;
  int64_t layer = 0;
  for (char digit : number->text) layer = 10 * layer + (digit - '0');
  return layer;
}

std::string_view stack_of(std::string_view value) {
  const auto number = layer_number(value);
  return number ? value.substr(0, number->begin) : std::string_view();
}

std::string with_layer(const std::string& value, const std::string& layer) {
  const auto number = layer_number(value);
  if (!number) return value;
  return value.substr(0, number->begin) + layer + value.substr(number->begin + number->text.size());
}

std::vector<LayerSection> layer_sections(const EntryLedger& ledger) {
  LayerSection before, after;
  std::vector<LayerSection> layers;  // in the order of their first steps
  std::map<LayerKey, size_t> known;
  for (size_t i = 0; i < ledger.steps.size(); ++i) {
    const LayerKey key = layer_key_of(ledger.steps[i]);
    if (key.second < 0) {
      (layers.empty() ? before : after).steps.push_back(i);
      continue;
    }
    const auto [at, is_new] = known.try_emplace(key, layers.size());
    if (is_new) {
      LayerSection& section = layers.emplace_back();
      std::tie(section.stack, section.layer) = key;
    }
    layers[at->second].steps.push_back(i);
  }
  std::vector<LayerSection> result;
  if (!before.steps.empty()) result.push_back(std::move(before));
  std::string last;  // of the section that may repeat
  for (LayerSection& section : layers) {
    std::string own = signature(ledger, section);
    if (!last.empty() && own == last &&
        section.layer == result.back().layer + static_cast<int64_t>(result.back().repeats) + 1) {
      ++result.back().repeats;
      continue;
    }
    last = std::move(own);
    result.push_back(std::move(section));
  }
  if (!after.steps.empty()) result.push_back(std::move(after));
  return result;
}

std::vector<size_t> shown_steps(const EntryLedger& ledger,
                                const std::vector<LayerSection>& sections) {
  std::map<LayerKey, const LayerSection*> shown_for;
  for (const LayerSection& section : sections)
    for (size_t k = 0; section.layer >= 0 && k <= section.repeats; ++k)
      shown_for[{section.stack, section.layer + static_cast<int64_t>(k)}] = &section;
  std::map<LayerKey, size_t> next;  // the place of the layer's next step
  std::vector<size_t> shown(ledger.steps.size());
  for (size_t i = 0; i < shown.size(); ++i) {
    const LayerKey key = layer_key_of(ledger.steps[i]);
    shown[i] = key.second < 0 ? i : shown_for.at(key)->steps.at(next[key]++);
  }
  return shown;
}

std::string section_title(const std::vector<LayerSection>& sections, size_t index) {
  const LayerSection& own = sections[index];
  if (own.layer >= 0)
    return own.stack == "l" ? fmt::format("layer {}", own.layer)
                            : fmt::format("{}{}", own.stack, own.layer);
  if (llvm::none_of(sections, [](const LayerSection& s) { return s.layer >= 0; })) return "";
  return index == 0 ? "before the layers" : "after the layers";
}

std::string repeats_text(const LayerSection& section) {
  if (section.repeats == 0) return "";
  if (section.repeats == 1)
    return fmt::format("layer {}: as layer {}", section.layer + 1, section.layer);
  return fmt::format("layers {}–{}: as layer {}", section.layer + 1,
                     section.layer + static_cast<int64_t>(section.repeats), section.layer);
}

std::vector<DecisionReason> decisions_by_reason(const EntryLedger& ledger, bool fused) {
  std::vector<DecisionReason> reasons;
  llvm::StringMap<std::pair<size_t, size_t>> known;  // reason and kind
  for (const LedgerDecision& d : ledger.decisions) {
    if (d.fused != fused) continue;
    auto reason =
        llvm::find_if(reasons, [&](const DecisionReason& r) { return r.first->text == d.text; });
    if (reason == reasons.end()) reason = reasons.insert(reason, {&d, 0, {}});
    ++reason->count;
    const int64_t layer = std::max(layer_of(d.a), layer_of(d.b));
    std::string key = d.text + "\n" + relative(d.a, layer) + "\n" + relative(d.b, layer);
    if (fused) key += fmt::format("\n{}", d.saved_bytes);
    for (const std::string& value : d.path) key += "\n" + relative(value, layer);
    const auto [at, is_new] =
        known.try_emplace(key, static_cast<size_t>(reason - reasons.begin()), reason->kinds.size());
    if (is_new) reason->kinds.emplace_back();
    reasons[at->second.first].kinds[at->second.second].all.push_back(&d);
  }
  return reasons;
}

std::string savings_text(const DecisionKind& kind) {
  return fmt::format("{}saves {}", kind.count() > 1 ? "each " : "", saved_text(kind.first()));
}

std::string path_text(const std::vector<std::string>& path) {
  const std::vector<Stretch> all = stretches(path);
  std::vector<std::string> parts;
  for (size_t i = 0; i < all.size();) {
    for (size_t k = all[i].begin; k < all[i].end; ++k) parts.push_back(path[k]);
    size_t next = i + 1;
    while (next < all.size() && same_way(path, all[i], all[next])) ++next;
    if (next == i + 2)
      parts.push_back(fmt::format("(layer {} likewise)", all[i + 1].layer));
    else if (next > i + 2)
      parts.push_back(
          fmt::format("(layers {}–{} likewise)", all[i + 1].layer, all[next - 1].layer));
    i = next;
  }
  return fmt::format("{}", fmt::join(parts, " → "));
}

}  // namespace sinter
