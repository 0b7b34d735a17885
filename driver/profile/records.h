// From records of a device to tokens: which kernels belong to which step of which token (or call),
// and where its time went.
#pragma once

#include "runtime/cuda/cupti_trace.h"

namespace sinter {

/// A kernel that a step launched.
struct ProfiledKernel {
  static constexpr size_t kNoStep = SIZE_MAX;
  size_t step = kNoStep;  // of the token's steps, in the plan's order
  KernelRecord record;
};

/// The device's work for one token, in the order of start.
struct ProfiledToken {
  std::vector<ProfiledKernel> kernels;
  /// Copies of its results to the host, and other copies made while it was the last to begin.
  std::vector<CopyRecord> copies;
  uint64_t before_ns = 0;  // the end of all kernels of the tokens before it; 0: there are none
};

/// Tokens launched step by step: kernels are tagged token * `steps` + step. Kernels without a tag
/// belong to none. An error where a token has no kernels.
Result<std::vector<ProfiledToken>> tokens_by_tag(DeviceRecords records, size_t steps,
                                                 size_t tokens);

/// Tokens that all launch as many kernels, whatever recorded graphs they share, without steps yet.
/// An error if the kernels do not divide into `tokens` such tokens.
Result<std::vector<ProfiledToken>> tokens_in_order(DeviceRecords records, size_t tokens);

/// Gives the kernels the steps of `reference`'s kernels, in order; false, and nothing changes, if
/// the kernels' names differ.
bool take_steps(const ProfiledToken& reference, ProfiledToken& token);

/// For each kernel, the seconds that it adds to the time in which any kernel runs: counted from its
/// start, or from the end of all that began before it if that is later. Until then a kernel that
/// was launched early (kernels/common/launch.cuh) waits.
std::vector<double> added_seconds(const ProfiledToken& token);

/// Seconds. period = kernels - overlapped + gaps + pause.
struct TokenTimes {
  double period = 0;      // from the end of the token before to its own
  double kernels = 0;     // sum over the kernels
  double overlapped = 0;  // of that, while one that began before ran too
  double gaps = 0;        // between its first and last kernel, without any running
  double pause = 0;       // from the end of the token before to its first kernel
};
/// Medians over the tokens; of period and pause, which differ where a graph of several tokens ends,
/// means.
TokenTimes token_times(const std::vector<ProfiledToken>& tokens);

/// Copies of one kind and size, per token.
struct TokenCopies {
  CopyRecord::Kind kind = CopyRecord::Kind::other;
  uint64_t bytes = 0;  // of one
  double count = 0;    // mean over the tokens
};
std::vector<TokenCopies> token_copies(const std::vector<ProfiledToken>& tokens);

}  // namespace sinter
