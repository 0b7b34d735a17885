#include "runtime/weight_queue.h"

#include <algorithm>
#include <numeric>
#include <system_error>

#include "ir/guarded.h"

namespace sinter {
namespace {

constexpr unsigned kMaxWorkers = 16;

std::vector<size_t> all_weights(const Program& program) {
  std::vector<size_t> all(program.weights.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

}  // namespace

WeightQueue::WeightQueue(const Program& program, const TensorSource* source)
    : WeightQueue(program, source, all_weights(program)) {}

WeightQueue::WeightQueue(const Program& program, const TensorSource* source,
                         std::vector<size_t> wanted)
    : program_(program), source_(source), wanted_(std::move(wanted)) {
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  workers_ = std::min<unsigned>({processors, kMaxWorkers, static_cast<unsigned>(wanted_.size())});
  results_.resize(wanted_.size());
  for (unsigned i = 0; i < workers_; ++i) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      break;  // the system gives no more threads: fewer do the work
    }
  }
}

WeightQueue::~WeightQueue() {
  {
    const std::lock_guard lock(mutex_);
    next_ = results_.size();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Result<HostTensor> WeightQueue::take() {
  if (threads_.empty()) return evaluate_weight(program_, wanted_[taken_++], source_);
  std::unique_lock lock(mutex_);
  const size_t index = taken_;
  changed_.wait(lock, [&] { return results_[index].has_value(); });
  taken_ = index + 1;
  changed_.notify_all();
  Result<HostTensor> result = std::move(*results_[index]);
  results_[index] = Result<HostTensor>(HostTensor{});
  return result;
}

void WeightQueue::work() {
  for (;;) {
    size_t index;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock,
                    [&] { return next_ >= results_.size() || next_ < taken_ + 2 * workers_; });
      if (next_ >= results_.size()) return;
      index = next_++;
    }
    Result<HostTensor> tensor =
        guarded([&] { return evaluate_weight(program_, wanted_[index], source_); });
    {
      const std::lock_guard lock(mutex_);
      results_[index] = std::move(tensor);
    }
    changed_.notify_all();
  }
}

}  // namespace sinter
