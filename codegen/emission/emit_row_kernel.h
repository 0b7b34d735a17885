// One row kernel's text, for a given configuration.
#pragma once

#include "codegen/emission/emit_context.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_value.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/row_config.h"

namespace sinter {

/// Element values that stay in registers.
struct Residents {
  std::map<std::string, KeptValue> kept;
  std::vector<ValueEmitter::EarlyLoad> early;
};

class RowKernel {
 public:
  RowKernel(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
            llvm::ArrayRef<SymbolId> parameters, const RowConfig& config, const BlockForm& block,
            Residents* residents)
      : form_(form),
        space_(form, symbols, parameters),
        values_(form, space_),
        config_(config),
        block_(block) {
    if (!residents) return;
    kept_ = &residents->kept;
    early_ = residents->early;
    values_.keep(kept_);
  }

  Result<KernelBody> emit();
  std::vector<ValueEmitter::EarlyLoad> early_loads() const { return values_.early_loads(); }

 private:
  void walk(uint32_t stage, uint32_t pass);
  void open_reductions(llvm::ArrayRef<Task> tasks);
  bool is_max_of_pairs(const Task& task) const;
  bool has_values_of_bf16(ValueId id) const;
  void take(const Task& task, const std::string& lane);
  void close_reductions(llvm::ArrayRef<Task> tasks);
  std::string loop(const std::string& whole_chunk, const std::string& valid, bool reduces);
  void declare_kept(uint32_t stage, uint32_t pass);
  std::string preamble() const;
  std::string prefetches() const;

  const Op& op(const Task& task) const { return form_.graph[task.value]; }
  const char* combine(const Task& task) const { return reduction_type(op(task)); }
  int64_t owners() const { return config_.owners(stage_->lanes); }
  int64_t lanes_per_thread() const { return stage_->lanes == 0 ? 1 : stage_->lanes / owners(); }
  RowProblem::Stage problem_stage() const {
    const int64_t width = stage_->width.upper_bound(space_.symbols());
    return {.lanes = stage_->lanes, .chunks = ceil_div(width, 8)};
  }

  const GroupForm& form_;
  LoopSpace space_;
  ValueEmitter values_;
  const RowConfig& config_;
  const BlockForm& block_;
  std::map<std::string, KeptValue>* kept_ = nullptr;  // null: looped
  llvm::ArrayRef<ValueEmitter::EarlyLoad> early_;
  CodeScope row_;
  const Stage* stage_ = nullptr;
  std::map<uint32_t, uint32_t> numbers_;  // of reductions, by value
  int64_t shared_floats_ = 0;
  bool meets_in_cluster_ = false;
};

}  // namespace sinter
