// sinter: reads the command line, runs one command, turns its result into an exit code.
#include <llvm/ADT/StringRef.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "cli/commands.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "driver/shell_word.h"
#include "driver/text_file.h"

namespace {

using namespace sinter;

constexpr const char* kFooter = R"(
MODEL is a Hugging Face folder, a llama2.c .bin, a spec .json or a module .sir.
Results go to stdout, everything else to stderr.

Exit codes: 0 done, 1 internal error, 2 usage, 3 a check or a required fusion failed,
4 bad or unsupported input, 5 device or driver, 6 out of memory, 130 interrupted, 143 terminated.

Examples:
  sinter inspect samples/llama-2-7b.json
  sinter compile samples/llama-2-7b.json -o plan
  sinter explain samples/llama-2-7b.json --why l0.norm1 l0.res1)";

/// The commands in the groups of `sinter --help`.
void add_commands(CLI::App& program, Action& action) {
  using Add = void (*)(CLI::App&, Action&);
  const std::pair<const char*, std::vector<Add>> groups[] = {
      {"Run a model", {add_generate, add_embed, add_run, add_ppl, add_tokenize}},
      {"Compile and understand", {add_inspect, add_compile, add_explain, add_opt, add_quantize}},
      {"Check and measure", {add_verify, add_bisect, add_reduce, add_bench, add_profile}},
      {"This machine", {add_devices, add_cache, add_completion}}};
  for (const auto& [group, commands] : groups)
    for (Add add : commands) {
      add(program, action);
      program.get_subcommands([](const CLI::App*) { return true; }).back()->group(group);
    }
}

/// The command that was chosen, and its name for a hint, "sinter compile".
std::pair<const CLI::App*, std::string> chosen_command(const CLI::App& program) {
  std::string name = program.get_name();
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    name += " " + app->get_name();
  }
  return {app, name};
}

/// The name that is nearest to `word`. A word of which less than half is right is no misspelt name.
std::string nearest_name(llvm::StringRef word, const std::vector<std::string>& names) {
  std::string nearest;
  unsigned least = static_cast<unsigned>(word.size() / 2 + 1);
  for (const std::string& name : names) {
    const unsigned distance = word.edit_distance(name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

/// The names of a command's options: --prompt, -n.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// Options of version 0.1.0 that have another name now (docs/renames.md).
constexpr std::pair<std::string_view, std::string_view> kRenamedOptions[] = {
    {"--own-products", "--slow-products"}};

/// The error for a word that the command does not take, with what it may have been meant to be.
Error refuse_words(const CLI::App& command, const std::string& path) {
  const std::vector<std::string> words = command.remaining();
  const std::string help = fmt::format("see `{} --help`", path);
  const auto is_option = [](const std::string& word) {
    return word.size() > 1 && word[0] == '-' && word != "--";
  };
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  if (option == words.end()) {
    for (const char* name : {"--text", "--prompt"})
      if (const CLI::Option* text = command.get_option_no_throw(name))
        return {fmt::format("\"{}\" stands alone", printable(words.front())), "",
                fmt::format("a text is given as {} {}; {}", name, text->get_type_name(), help),
                ExitCode::usage};
    return {fmt::format("\"{}\" is one argument too many", printable(words.front())), "", help,
            ExitCode::usage};
  }
  const std::string given = option->substr(0, option->find('='));
  const std::vector<std::string> names = option_names(command);
  for (const auto& [old, name] : kRenamedOptions)
    if (given == old && llvm::is_contained(names, name))
      return {fmt::format("no option is called \"{}\"", given), "",
              fmt::format("its name is {} now; {}", name, help), ExitCode::usage};
  const bool letter = given.size() == 2 && given[1] != '-';
  std::string nearest;
  if (letter)  // the first option that begins with it
    for (const std::string& name : names)
      if (nearest.empty() && name.starts_with("-" + given)) nearest = name;
  if (!letter) nearest = nearest_name(given[1] == '-' ? given : "-" + given, names);
  return {fmt::format("no option is called \"{}\"", printable(given)), "",
          nearest.empty() ? help : fmt::format("the nearest is {}; {}", nearest, help),
          ExitCode::usage};
}

/// A word in place of a command, of the program or of one of its commands.
Status refuse_unknown_command(const CLI::App& app, const std::string& prefix, int argc, char** argv,
                              int at) {
  const std::vector<const CLI::App*> commands =
      app.get_subcommands([](const CLI::App*) { return true; });
  if (commands.empty() || (at < argc && argv[at][0] == '-')) return {};
  if (at >= argc)
    return fail("no command is given", {}, fmt::format("see `sinter {}--help`", prefix),
                ExitCode::usage);
  const std::string word = argv[at];
  std::vector<std::string> names;
  for (const CLI::App* command : commands) {
    names.push_back(command->get_name());
    if (command->get_name() == word)
      return refuse_unknown_command(*command, prefix + word + " ", argc, argv, at + 1);
  }
  const std::string nearest = nearest_name(word, names);
  const std::string likely =
      nearest.empty() ? "" : fmt::format("the nearest is {}{}; ", prefix, nearest);
  return fail(fmt::format("no command is called \"{}\"", printable(prefix + word)), {},
              fmt::format("{}see `sinter {}--help`", likely, prefix), ExitCode::usage);
}

/// The arguments, last one first, as the library wants them. It takes "--text=" for an option
/// without a value, so the empty value becomes an argument of its own.
std::vector<std::string> arguments(const CLI::App& program, int argc, char** argv) {
  std::vector<std::string> words;
  const CLI::App* command = &program;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    for (const CLI::App* named :
         command->get_subcommands([&](const CLI::App* one) { return one->get_name() == word; }))
      command = named;
    const CLI::Option* option = nullptr;
    if (word.starts_with("--") && word.find('=') == word.size() - 1)
      option = command->get_option_no_throw(word.substr(0, word.size() - 1));
    if (option && option->get_items_expected_max() > 0) {
      words.push_back(word.substr(0, word.size() - 1));
      words.emplace_back();
    } else {
      words.push_back(word);
    }
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int exit_with(ExitCode code) { return static_cast<int>(code); }

int run(int argc, char** argv) {
  command_line = "sinter";
  for (int i = 1; i < argc; ++i) command_line += " " + shell_word(argv[i]);
  CLI::App program("Compiles transformers into fused execution plans and says why.", "sinter");
  program.set_version_flag("--version", "sinter " SINTER_VERSION);
  program.set_help_flag("-h,--help", "this text");
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  if (const Status known = set_up_progress(); !known) {
    print_error(known.error());
    return exit_with(ExitCode::usage);
  }
  Action action;
  add_commands(program, action);
  program.footer(kFooter);  // after the commands, which would show it too
  if (argc == 1) {
    print_result(program.help());
    return exit_with(flush_results() ? ExitCode::done : ExitCode::bad_input);
  }
  if (const Status known = refuse_unknown_command(program, "", argc, argv, 1); !known) {
    print_error(known.error());
    return exit_with(ExitCode::usage);
  }
  try {
    program.parse(arguments(program, argc, argv));
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text, ignored;
    program.exit(asked, text, ignored);
    print_result(text.str());
  } catch (const CLI::ParseError& error) {
    const auto [command, path] = chosen_command(program);
    const bool rests = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    print_error(rests && !command->remaining().empty()
                    ? refuse_words(*command, path)
                    : Error{error.what(), "", fmt::format("see `{} --help`", path), {}});
    return exit_with(ExitCode::usage);
  }
  keep_inputs();
  Status status;
  if (action) status = action();
  const Status flushed = flush_results();
  if (status && !flushed) status = flushed;
  if (status) return exit_with(ExitCode::done);
  print_error(status.error());
  return exit_with(status.error().code);
}

}  // namespace

int main(int argc, char** argv) {
  set_up_streams();
  set_up_signals();
  set_up_memory();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc& error) {
    end_without_memory(error);
  } catch (const std::exception& error) {
    print_error({error.what(), "", "", ExitCode::internal_error});
    return exit_with(ExitCode::internal_error);
  }
}
