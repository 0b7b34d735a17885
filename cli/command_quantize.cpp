#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/quantize/cost.h"
#include "driver/quantize/quantize.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

struct QuantizeCommand : CommandOptions {
  std::string format, output;
  bool head = false, embeddings = false, no_text = false;
};

std::string to_text(const QuantizeCommand& options, const QuantizedFolder& folder,
                    const TextCost& cost) {
  const auto before = static_cast<double>(folder.bytes_before),
             after = static_cast<double>(folder.bytes_after);
  std::string text =
      fmt::format("{} in {} → {}\nweights: {} → {}, {:.3g} %\n",
                  counted(static_cast<uint64_t>(folder.matrices), "matrix", "matrices"),
                  options.format, printable(options.output, 4096), with_unit(before, "B"),
                  with_unit(after, "B"), 100 * after / before);
  if (!cost.not_told.empty())
    return text + fmt::format("perplexity: not measured, {}\n", cost.not_told);
  return text + fmt::format("perplexity of {}: {:.6g} → {:.6g}, {:+.3g} %\n",
                            counted(static_cast<uint64_t>(cost.predicted), "token"), cost.before,
                            cost.after, 100 * (cost.after / cost.before - 1));
}

std::string to_json(const QuantizeCommand& options, const QuantizedFolder& folder,
                    const TextCost& cost) {
  nlohmann::ordered_json json = {{"folder", printable(options.output, 4096)},
                                 {"format", options.format},
                                 {"matrices", folder.matrices},
                                 {"elements", folder.elements},
                                 {"bytes_before", folder.bytes_before},
                                 {"bytes_after", folder.bytes_after}};
  if (cost.not_told.empty())
    json["perplexity"] = {
        {"predicted", cost.predicted}, {"before", cost.before}, {"after", cost.after}};
  else
    json["not_measured"] = cost.not_told;
  return json.dump(2) + "\n";
}

Status quantize_command(const QuantizeCommand& options) {
  SINTER_LET(request, to_request(options));
  QuantizeOptions rounding;
  rounding.format = *find_rounded_format(options.format);
  rounding.head = options.head;
  rounding.embeddings = options.embeddings;
  rounding.ignored_keys = options.ignored_keys;
  rounding.stage = [](const std::string& text) { progress(text); };
  SINTER_LET(model, open_model(request.path, request.load));
  SINTER_TRY(check_quantizable(model, options.output, rounding));
  // A device that is not there is said before minutes of work.
  std::shared_ptr<Backend> backend;
  if (!options.no_text) {
    SINTER_LET(opened, open_backend(options));
    backend = std::move(opened);
  }
  SINTER_LET(folder, quantize(model, options.output, rounding));
  TextCost cost;
  cost.not_told = "by --no-text";
  if (backend) {
    SINTER_LET(rounded, open_model(options.output, request.load));
    SINTER_LET(measured, text_cost(model, rounded, backend, rounding.stage));
    cost = std::move(measured);
  }
  print_result(options.json ? to_json(options, folder, cost) : to_text(options, folder, cost));
  return {};
}

}  // namespace

void add_quantize(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand(
      "quantize", "rounds a model's weights to 8 or 4 bits: a folder of compressed-tensors");
  auto options = std::make_shared<QuantizeCommand>();
  command.add_option("MODEL", options->model, "Hugging Face folder")->required();
  std::vector<std::string> names;
  for (const RoundedFormat& format : rounded_formats()) names.emplace_back(format.name);
  command
      .add_option("--to", options->format,
                  "fp8 and int8: a scale a row; int4: a scale for 32, 64 or 128 columns")
      ->required()
      ->check(CLI::IsMember(names))
      ->type_name("FORMAT");
  command.add_option("-o,--output", options->output, "the folder to write")
      ->required()
      ->type_name("DIR");
  command.add_flag("--head", options->head, "round the output projection, too");
  command.add_flag("--embeddings", options->embeddings,
                   "round the embedding tables, too, to 8 bits; of a tied model also the output "
                   "projection, for Sinter alone");
  command.add_flag("--no-text", options->no_text,
                   "do not predict a text before and after, which tells what rounding cost");
  add_ignored_keys(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback(
      [options, &action] { action = [options] { return quantize_command(*options); }; });
}

}  // namespace sinter
