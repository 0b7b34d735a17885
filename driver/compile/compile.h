// Module → passes → fusion → Program, checked.
#pragma once

#include "device/tuned_form.h"
#include "driver/compile/stated_sizes.h"
#include "passes/fusion/fusion.h"
#include "passes/pipeline.h"
#include "plan/program.h"

namespace sinter {

struct CompileOptions {
  std::string target = "sm_90a";     // a named device description
  std::vector<std::string> entries;  // entry points to keep; empty: all
  FusionOptions fusion;              // not enabled: numerics are strict whatever it says
  TunedForms forms;  // measured on the device; other kernels have their schedule's own
  /// Calls give their inputs in device memory, where nothing looks at them before the call: kernels
  /// compare the row numbers among them, and the numbers are looked at after it. Concerns freeze()
  /// and compile().
  bool device_inputs = false;
  /// Names of outputs, each with the name of an input whose memory the output is wanted to have in
  /// calls. may_share_memory() says which ones may (plan/shared_outputs.h). Not stored with a plan.
  std::vector<std::pair<std::string, std::string>> overwritten;
  /// Concerns freeze().
  Recipe recipe;
  /// Sizes at which reports state bytes and times, where they are not the usual ones. Changes no
  /// plan.
  GivenSizes sizes;
};

/// The result of a compilation: the frozen module (after the passes), and a fusion and a plan for
/// each of its entries.
struct Compiled {
  Module module;
  std::vector<Fusion> fusions;
  std::shared_ptr<const Program> program;
  std::vector<int64_t> sizes;  // a value for each symbol, at which costs are stated

  /// The sizes for an entry: of a variant, in its range.
  std::vector<int64_t> sizes_of(size_t entry) const;
  /// "main", of a variant "main, N in [1, 8]".
  std::string title_of(size_t entry) const;
};

/// A module that went through the passes. Both the fused and the unfused plan of a comparison start
/// from the same frozen module.
Result<Module> freeze(Module module, llvm::ArrayRef<std::string> entries,
                      const PassObserver& observer = {}, const PassOptions& options = {});

/// The options of the passes for a plan. Families whose kernels the target cannot run choose no
/// ops.
PassOptions pass_options(const CompileOptions& options);

/// A model in a command that is printed where its path is not known.
inline constexpr std::string_view kModelWord = "MODEL";

/// Every name is an entry's of the module, and stands there once; else an error, of usage, that
/// names those that there are.
Status check_entry_names(const Module& module, llvm::ArrayRef<std::string> names);

/// Fuses and lowers a frozen module. The numbers of its fusions (FusionOptions::only) go on from
/// one entry to the next. Errors: an unknown target; names in `required` or `forbidden` that the
/// module lacks; sizes that the symbols cannot have; a required pair that stays apart
/// (ExitCode::check_failed, with the verdict; in the command of its hint kModelWord is the model).
Result<Compiled> compile(Module frozen, const CompileOptions& options);
/// The fusion of an entry of a frozen module. Names in `required` and `forbidden` that the entry
/// lacks count for nothing, and a required pair may stay apart.
Fusion fuse_entry(const Module& frozen, size_t entry, const DeviceDescription& device,
                  const CompileOptions& options);
/// The plan of the same module and fusions with the options' forms: the products that the forms
/// name get other kernels, and nothing else changes. `options`: otherwise as for compile().
Result<std::shared_ptr<const Program>> plan_with_forms(const Compiled& compiled,
                                                       const CompileOptions& options);

/// "tiled", "composed" or "relaxed", which replaces the earlier choice. `where`: the option, for
/// the error.
Status choose_attention(std::string_view text, std::string where, Recipe& recipe);

/// "auto", "library" or "own", in the same way.
Status choose_products(std::string_view text, std::string where, Recipe& recipe);

/// A token's results will not depend on its neighbours (docs/invariance.md). An error if an option
/// that was read before rules it out.
Status choose_invariant(std::string_view where, CompileOptions& options);

/// "fp32", "fp16", "bf16", and the IR's own names of these.
Result<DType> parse_dtype_option(std::string_view text);

/// The verdict in a sentence: "refused (convexity.path): a path leaves ... : a → b → c".
std::string describe(const Verdict& verdict, const Graph& graph);

}  // namespace sinter
