#include "plan/kernel_text.h"

#include <fmt/ranges.h>
#include <llvm/ADT/STLExtras.h>

#include "ir/text.h"
#include "plan/plan_file.h"

namespace sinter {
namespace {

constexpr size_t kShownCharacters = 200;  // of a line in an error

/// The first line of `text` without its line break; it is removed from `text`.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string commented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) text += fmt::format("// {}\n", take_line(lines));
  return text;
}

/// The symbols with the names of the kernel's parameters.
std::vector<Symbol> named_as_parameters(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols) {
  std::vector<Symbol> named(symbols.begin(), symbols.end());
  for (size_t k = 0; k < kernel.symbols.size(); ++k)
    named[kernel.symbols[k].index].name = fmt::format("n{}", k);
  return named;
}

tl::unexpected<Error> mismatch(const Kernel& kernel, std::string_view wanted,
                               std::string_view found) {
  return fail(fmt::format("plan.json asks for the line \"{}\", the text has \"{}\"",
                          printable(std::string(wanted), kShownCharacters),
                          printable(std::string(found), kShownCharacters)),
              kernel_path(kernel), "compile the model again");
}

Status check_comments(const Kernel& kernel, std::string_view comments, std::string_view text) {
  while (!comments.empty()) {
    const std::string_view wanted = take_line(comments), found = take_line(text);
    if (wanted != found) return mismatch(kernel, wanted, found);
  }
  return {};
}

/// The line before the one that begins at `at`.
std::string_view line_before(std::string_view text, size_t at) {
  std::string_view before = text.substr(0, at > 0 ? at - 1 : 0);
  const size_t line_break = before.rfind('\n');
  return line_break == std::string_view::npos ? before : before.substr(line_break + 1);
}

std::string in_place_lines(const Kernel& kernel) {
  std::string lines;
  for (const InPlace& pair : kernel.in_place)
    lines += fmt::format("in_place: output {}, input {}\n", pair.output, pair.input);
  return lines;
}

std::string tensor_map_lines(const Kernel& kernel, llvm::ArrayRef<Symbol> named) {
  const auto texts = [&](llvm::ArrayRef<SymExpr> sizes) {
    std::vector<std::string> texts;
    for (const SymExpr& size : sizes) texts.push_back(to_string(size, named));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  std::string lines;
  for (const TensorMap& map : kernel.tensor_maps)
    lines += fmt::format(
        "tensor_map: input {}, offset {}, dims [{}], strides [{}], box [{}], swizzle {}\n",
        map.input, to_string(map.offset, named), texts(map.dims), texts(map.strides),
        fmt::join(map.box, ", "), map.swizzle);
  return lines;
}

}  // namespace

std::vector<SymbolId> symbols_of(const Graph& group) {
  std::vector<SymbolId> found;
  const auto add = [&](Dim dim) {
    if (!dim.is_constant() && !llvm::is_contained(found, dim.symbol()))
      found.push_back(dim.symbol());
  };
  for (const Op& op : group.ops()) {
    llvm::for_each(op.type.dims, add);
    for (const auto& [name, value] : op.attrs) {
      if (const auto* dim = std::get_if<Dim>(&value)) add(*dim);
      if (const auto* dims = std::get_if<Dims>(&value)) llvm::for_each(*dims, add);
    }
  }
  return found;
}

std::string parameters_of(const Graph& group, size_t symbols, bool restricted, size_t tensor_maps,
                          llvm::ArrayRef<InPlace> in_place) {
  const auto pointer = [&](size_t index, uint32_t InPlace::*side) {
    const bool shared = llvm::any_of(in_place, [&](const InPlace& p) { return p.*side == index; });
    return restricted && !shared ? "* __restrict__" : "*";
  };
  const auto element = [&](ValueId id) { return dtype_info(group[id].type.dtype).memory; };
  std::vector<std::string> parameters;
  for (size_t k = 0; k < group.inputs.size(); ++k)
    parameters.push_back(
        fmt::format("const {}{} x{}", element(group.inputs[k]), pointer(k, &InPlace::input), k));
  for (size_t k = 0; k < group.outputs.size(); ++k)
    parameters.push_back(
        fmt::format("{}{} y{}", element(group.outputs[k]), pointer(k, &InPlace::output), k));
  for (size_t k = 0; k < symbols; ++k) parameters.push_back(fmt::format("long long n{}", k));
  for (size_t k = 0; k < tensor_maps; ++k)
    parameters.push_back(fmt::format("const __grid_constant__ TensorMap t{}", k));
  return fmt::format("{}", fmt::join(parameters, ", "));
}

std::string group_comment(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols) {
  const std::vector<Symbol> named = named_as_parameters(kernel, symbols);
  std::string lines;
  for (SymbolId id : kernel.symbols) {
    const Symbol& symbol = named[id.index];
    lines += fmt::format("{} in [{}, {}]", symbol.name, symbol.low, symbol.high);
    lines += symbol.multiple == 1 ? "\n" : fmt::format(" step {}\n", symbol.multiple);
  }
  return commented(lines + print_graph(kernel.group, named));
}

std::string launch_comment(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols) {
  const std::vector<Symbol> named = named_as_parameters(kernel, symbols);
  const Launch& launch = kernel.launch;
  const Overlap& overlap = kernel.overlap;
  std::string lines = fmt::format(
      "launch: rows {}, items_per_row {}, symbolic_items {}, items_per_block {}, threads {},\n"
      "  shared_bytes {}, wanted_shared_bytes {}, cluster {}, items_without_clusters {}, "
      "most_blocks {}\n"
      "overlap: waits {}, triggers_after_wait {}, early_inputs [{}], early_caches [{}]\n"
      "minimum_arch: {}\n",
      to_string(launch.rows, named), launch.items_per_row, to_string(launch.symbolic_items, named),
      launch.items_per_block, launch.threads, launch.shared_bytes,
      to_string(launch.wanted_shared_bytes, named), launch.cluster, launch.items_without_clusters,
      launch.most_blocks, overlap.waits, overlap.triggers_after_wait,
      fmt::join(overlap.early_inputs, ", "), fmt::join(overlap.early_caches, ", "),
      kernel.minimum_arch);
  return commented(lines + tensor_map_lines(kernel, named) + in_place_lines(kernel));
}

std::string function_head(const Launch& launch, int64_t resident_blocks) {
  return fmt::format("extern \"C\" __global__ void __launch_bounds__({}{})\n", launch.threads,
                     resident_blocks == 0 ? "" : fmt::format(", {}", resident_blocks));
}

Status check_text(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols, std::string_view text) {
  SINTER_TRY(check_comments(
      kernel, group_comment(kernel, symbols) + launch_comment(kernel, symbols), text));
  const std::string function =
      fmt::format("{}({}) {{", kernel.name,
                  parameters_of(kernel.group, kernel.symbols.size(), !kernel.overlap.waits,
                                kernel.tensor_maps.size(), kernel.in_place));
  const size_t at = text.find(fmt::format("\n{}\n", function));
  if (at == std::string_view::npos) return mismatch(kernel, function, "no such line");
  // A second argument, the resident blocks, is the text's own.
  const std::string head = function_head(kernel.launch, 0);
  const std::string_view start = std::string_view(head).substr(0, head.size() - 2);
  const std::string_view found = line_before(text, at + 1);
  const std::string_view rest = found.starts_with(start) ? found.substr(start.size()) : "";
  if (!rest.starts_with(')') && !rest.starts_with(',')) return mismatch(kernel, head, found);
  return {};
}

}  // namespace sinter
