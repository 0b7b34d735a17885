// Calls of a model's entries in one session: which entries, at what sizes, on what inputs.
#pragma once

#include <optional>
#include <set>

#include "frontends/files/tensor_file.h"
#include "frontends/load_model.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

class RankGroup;

struct CallsOptions {
  /// In the order of the calls; an entry may stand in it several times. Empty: every entry of a
  /// module in its order, the first entry of a language model.
  std::vector<std::string> entries;
  int64_t repeat = 1;            // how many times the list is called
  std::string inputs;            // a file of tensors, see EntryCalls; empty: random inputs
  std::optional<uint64_t> seed;  // of random inputs; 1 if there is none
  /// Values of symbols. Other symbols take their values from the tensors' shapes. A symbol that
  /// nothing determines is as small as possible with a file, and near 19 with random inputs.
  std::vector<std::pair<std::string, int64_t>> symbols;

  RankGroup* ranks = nullptr;  // that collectives meet; null: one rank
  size_t rank = 0;             // which of them calls

  /// Whether one of the options above says something.
  bool given() const;
};

/// The calls of one session, their sizes bound and all tensors of the file checked.
///
/// An input NAME of an entry ENTRY is the file's tensor `ENTRY.NAME`, else `NAME`. A tensor that is
/// called like no input and no output of an entry is an error: a file may hold both. A .npy is the
/// tensor of the only input.
class EntryCalls {
 public:
  struct Call {
    const Entry* entry;
    std::vector<int64_t> symbol_values;
  };

  /// Borrows the model's module. Errors name the file, the tensor, the entry or the symbol.
  static Result<EntryCalls> open(const Model& model, const CallsOptions& options);

  /// Calls of the session: the list of entries, as often as it is repeated.
  size_t count() const { return list_.size() * repeat_; }
  /// The number of calls in one repetition.
  size_t list_size() const { return list_.size(); }
  const Call& operator[](size_t number) const { return list_[number % list_.size()]; }
  /// Whether the list is at its last repetition.
  bool is_last(size_t number) const { return number + list_.size() >= count(); }
  /// For Executable::new_session: every call has these values for the symbols of states.
  llvm::ArrayRef<int64_t> session_values() const { return list_.front().symbol_values; }
  /// One tensor per input. Random inputs differ from call to call.
  Result<std::vector<HostTensor>> inputs(size_t number) const;
  /// The name of an entry's value in a file of results: `ENTRY.NAME` if several entries are called,
  /// else `NAME`.
  std::string result_name(const Entry& entry, std::string_view value) const;

 private:
  explicit EntryCalls(const Module& module) : module_(&module) {}

  const Module* module_;
  std::vector<Call> list_;
  size_t repeat_ = 1;
  std::optional<TensorFile> file_;
  uint64_t seed_ = 1;
};

/// The tensor that a file has for a value of an entry: `ENTRY.NAME`, else `NAME`, else null.
const FileTensor* tensor_of(const TensorFile& file, const Entry& entry, std::string_view name);

/// The tensor of a .npy gets the name, where `names` has one alone. An error that counts the names
/// as "inputs" or `what` else. Nothing for other files.
Status name_only_tensor(TensorFile& file, const std::set<std::string>& names,
                        std::string_view what);

/// Fails on a tensor that is called like no input and no output of the module's entries.
Status refuse_unknown_tensors(const TensorFile& file, const Module& module);

}  // namespace sinter
