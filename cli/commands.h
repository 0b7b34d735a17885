// The commands: each adds itself to the program and, when chosen, leaves what it will do.
#pragma once

#include <functional>
#include <string>

#include "ir/error.h"

namespace CLI {
class App;
}

namespace sinter {

/// Runs after the arguments are read; an error ends the program with its exit code.
using Action = std::function<Status()>;

/// The program's command line, in a form that a shell takes.
inline std::string command_line;

void add_inspect(CLI::App& program, Action& action);
void add_compile(CLI::App& program, Action& action);
void add_explain(CLI::App& program, Action& action);
void add_opt(CLI::App& program, Action& action);
void add_bisect(CLI::App& program, Action& action);
void add_quantize(CLI::App& program, Action& action);
void add_reduce(CLI::App& program, Action& action);
void add_run(CLI::App& program, Action& action);
void add_verify(CLI::App& program, Action& action);
void add_generate(CLI::App& program, Action& action);
void add_tokenize(CLI::App& program, Action& action);
void add_ppl(CLI::App& program, Action& action);
void add_embed(CLI::App& program, Action& action);
void add_bench(CLI::App& program, Action& action);
void add_profile(CLI::App& program, Action& action);
void add_devices(CLI::App& program, Action& action);
void add_cache(CLI::App& program, Action& action);
void add_completion(CLI::App& program, Action& action);

}  // namespace sinter
