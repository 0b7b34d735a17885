// Two plans side by side: a compilation against another one, or against a saved ledger of another
// model, target, option or version.
#pragma once

#include "driver/explain/ledger.h"

namespace sinter {

/// The parts of a saved ledger (`explain --json`, a plan's fusion.json) that comparisons read:
/// titles, values with their steps, steps with kind, values, bytes and predicted times, decisions
/// with reason and text. Errors: another format, a file that is damaged.
Result<std::vector<EntryLedger>> read_ledger(const std::string& path);

/// True for a JSON file of that format. Errors: a .json file that is no JSON.
Result<bool> is_ledger(const std::string& path);

/// Kernels of both plans that compute the same values, where the two plans divide these differently
/// or predict other times. Equal ones of different layers are counted.
struct ComparedKernels {
  std::vector<std::string> here, there;  // "gemm: l*.qkv"
  size_t count = 0;
  double here_s = 0, there_s = 0;  // all of them
};

/// Two values that one plan puts in a kernel and the other does not, or both refuse for different
/// reasons. `l*` stands for each layer.
struct ComparedDecision {
  std::string a, b;
  size_t count = 0;
  std::string here, there;  // "they share a kernel", "a library call: ... (port.closed)"
};

struct ComparedEntry {
  std::string title, against;  // of the entries; one is empty where its plan has no such
  size_t launches[2] = {}, calls[2] = {};  // kernels and copies; library calls
  double bytes[2] = {}, seconds[2] = {};   // here, there
  std::vector<ComparedKernels> kernels;    // the largest differences first
  std::vector<ComparedDecision> decisions;
};

/// Entries are compared by title, or else by name. `here` and `there` may be about different
/// models: values are compared by name.
std::vector<ComparedEntry> compare_ledgers(const std::vector<EntryLedger>& here,
                                           const std::vector<EntryLedger>& there);

std::string comparison_text(const std::vector<ComparedEntry>& entries);
std::string comparison_json(const std::vector<ComparedEntry>& entries);

}  // namespace sinter
