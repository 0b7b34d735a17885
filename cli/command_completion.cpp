// Completion of commands, options and files in a shell. Each script is a table, for every command
// its options and commands, made from the program's own command line.
#include <llvm/ADT/STLExtras.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/output.h"

namespace sinter {
namespace {

struct Words {
  std::string path;  // "cache status"; "" for the program
  std::vector<std::string> words;
};

void collect(const CLI::App& app, const std::string& path, std::vector<Words>& all) {
  Words words{path, {}};
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    for (const std::string& name : option->get_lnames()) words.words.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.words.push_back("-" + name);
  }
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : commands) words.words.push_back(command->get_name());
  all.push_back(std::move(words));
  for (const CLI::App* command : commands)
    collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), all);
}

/// For bash, and for zsh by its bashcompinit.
std::string bash_script(llvm::ArrayRef<Words> all) {
  std::string cases;
  for (const Words& words : all)
    cases += fmt::format("    \"{}\") words=\"{}\" ;;\n", words.path, fmt::join(words.words, " "));
  return fmt::format(R"(_sinter() {{
  local word path="" words="" current="${{COMP_WORDS[COMP_CWORD]}}"
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
{}      *) ;;
    esac
  done
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ $current == -* ]] || COMPREPLY+=($(compgen -f -- "$current"))
}}
complete -o filenames -F _sinter sinter
)",
                     [&] {
                       std::string paths;
                       for (const Words& words : all.drop_front()) {
                         const bool nested = words.path.find(' ') != std::string::npos;
                         paths += fmt::format("      \"{}{}\") path=\"{}\" ;;\n", nested ? "" : " ",
                                              words.path, words.path);
                       }
                       return paths;
                     }(),
                     cases);
}

std::string zsh_script(llvm::ArrayRef<Words> all) {
  return "autoload -U +X bashcompinit && bashcompinit\n" + bash_script(all);
}

std::string fish_script(llvm::ArrayRef<Words> all) {
  std::string text;
  for (const Words& words : all) {
    const std::string condition = words.path.empty()
                                      ? "__fish_use_subcommand"
                                      : fmt::format("__fish_seen_subcommand_from {}",
                                                    words.path.substr(words.path.rfind(' ') + 1));
    for (const std::string& word : words.words) {
      std::string what = "-a " + word;
      if (word.starts_with("--"))
        what = "-l " + word.substr(2);
      else if (word.starts_with("-"))
        what = "-s " + word.substr(1);
      text += fmt::format("complete -c sinter -n '{}' {}\n", condition, what);
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand(
      "completion", "a script that completes commands and options in a shell");
  command.require_subcommand(1);
  using Script = std::string (*)(llvm::ArrayRef<Words>);
  const auto add = [&](const char* shell, const char* help, Script script) {
    command.add_subcommand(shell, help)->callback([script, &program, &action] {
      action = [script, &program]() -> Status {
        std::vector<Words> all;
        collect(program, "", all);
        print_result(script(all));
        return {};
      };
    });
  };
  add("bash", "source <(sinter completion bash)", bash_script);
  add("zsh", "source <(sinter completion zsh)", zsh_script);
  add("fish", "sinter completion fish | source", fish_script);
}

}  // namespace sinter
