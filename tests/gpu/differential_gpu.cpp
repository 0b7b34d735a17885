// sinter_differential_gpu: random graphs, fused against unfused on a CUDA device, bit for bit.
//
//   sinter_differential_gpu --seed 0 --count 20000 --check-host 50
//   sinter_differential_gpu --seed 0 --count 100 --compile-only     needs NVRTC, no device
//
// Exit codes: 0 all equal, 2 usage, 3 something differs, 5 no device or no compiler.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <set>
#include <thread>

#include "gpu/case_runner.h"

namespace sinter {
namespace {

struct Options {
  uint64_t seed = 0, count = 1000, batch = 8, check_host = 0;
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  int device = 0;
  std::string arch = "sm_90a", products, graphs;
  bool compile_only = false;
};

std::string replay(uint64_t seed, const Options& options) {
  return fmt::format("  replay: sinter_differential_gpu --seed {} --count 1 --check-host 1{}{}\n",
                     seed, options.products.empty() ? "" : " --products " + options.products,
                     options.graphs.empty() ? "" : " --graphs " + options.graphs);
}

// The text that a failed check or a fault of the host prints before the process ends.
thread_local char last_words[200];

void set_last_words(uint64_t seed, const Options& options) {
  const auto end = fmt::format_to_n(last_words, sizeof(last_words) - 1,
                                    "seed {} ended the process\n{}", seed, replay(seed, options))
                       .out;
  *end = '\0';
}

extern "C" void say_last_words(int signal) {
  [[maybe_unused]] const auto written =
      write(STDERR_FILENO, last_words, std::char_traits<char>::length(last_words));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// Adds the time of a scope.
class Timed {
 public:
  explicit Timed(std::atomic<double>& sum) : sum_(sum) {}
  ~Timed() {
    sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::atomic<double>& sum_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The state that the threads of a run share.
class Differential {
 public:
  Differential(const Options& options, CudaDevicePtr device, NvrtcFile nvrtc)
      : options_(options),
        device_(std::move(device)),
        target_(device_ ? device_->arch() : options.arch),
        kernels_(device_, std::move(nvrtc), target_) {}

  int run() {
    const auto begin = std::chrono::steady_clock::now();
    const uint64_t batches = (options_.count + options_.batch - 1) / options_.batch;
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < std::min<uint64_t>(options_.threads, batches); ++i)
      threads.emplace_back([this] { work(); });
    std::thread progress([this] { say_progress(); });
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_one();
    progress.join();
    return report(seconds.count());
  }

 private:
  /// Shows the progress: on a terminal a line that changes; in a file a line every half minute, so
  /// that a run that is cut off has said how far it came.
  void say_progress() {
    const bool terminal = isatty(STDERR_FILENO) == 1;
    const std::chrono::seconds pause(terminal ? 1 : 30);
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, pause, [this] { return over_; }))
      fmt::print(stderr, "{}{} of {} graphs, {} failed{}", terminal ? "\r" : "", done_.load(),
                 options_.count, failures_.size(), terminal ? "" : "\n");
    if (terminal) fmt::print(stderr, "\n");
  }

  void work() {
    std::optional<CaseRunner> runner;
    if (device_) {
      auto created = CaseRunner::create(device_, kernels_);
      if (!created) return stop(created.error().message());
      runner = std::move(*created);
    }
    for (uint64_t first; !stopped_ && (first = next_.fetch_add(options_.batch)) < options_.count;)
      work_on(first, std::min(first + options_.batch, options_.count), runner);
  }

  Case make_case(uint64_t seed) const {
    return options_.products == "own" ? generate_own_products(seed)
                                      : generator_of(options_.graphs)(seed);
  }

  void work_on(uint64_t first, uint64_t last, const std::optional<CaseRunner>& runner) {
    std::vector<PlannedCase> cases;
    {
      const Timed timed(planning_);
      for (uint64_t i = first; i < last; ++i) {
        set_last_words(options_.seed + i, options_);
        auto planned = plan_case(options_.seed + i, make_case(options_.seed + i), target_);
        if (planned)
          cases.push_back(std::move(*planned));
        else
          failed(options_.seed + i, planned.error());
      }
    }
    add_kernels(cases);
    const Timed timed(running_);
    for (const PlannedCase& test : cases) {
      if (stopped_) return;
      set_last_words(test.seed, options_);
      const bool check_host = options_.check_host > 0 && test.seed % options_.check_host == 0;
      const Status passed = runner ? runner->run(test, check_host) : compiled(test);
      if (!passed) failed(test.seed, passed.error());
      checked_ += runner && check_host;
      ++done_;
    }
  }

  void add_kernels(llvm::ArrayRef<PlannedCase> cases) {
    std::map<std::string_view, const Kernel*> kernels;
    for (const PlannedCase& test : cases)
      for (const auto& program : {test.fused, test.unfused})
        for (const Kernel& kernel : program->kernels) kernels.try_emplace(kernel.name, &kernel);
    std::vector<const Kernel*> list;
    for (const auto& [name, kernel] : kernels) list.push_back(kernel);
    kernels_.add(list);
  }

  Status compiled(const PlannedCase& test) const {
    for (const auto& program : {test.fused, test.unfused})
      for (const Kernel& kernel : program->kernels) SINTER_TRY(kernels_.find(kernel.name));
    return {};
  }

  /// After an error of the device nothing more can run in this process: other threads meet it too.
  void failed(uint64_t seed, const Error& error) {
    const std::lock_guard lock(mutex_);
    failures_[seed] = error.message();
    if (error.code == ExitCode::device) stopped_ = true;
  }
  void stop(const std::string& why) {
    const std::lock_guard lock(mutex_);
    why_stopped_ = why;
    stopped_ = true;
  }

  int report(double seconds) const {
    for (const auto& [seed, what] : failures_)
      fmt::print("seed {}: {}\n{}", seed, what, replay(seed, options_));
    if (stopped_ && !failures_.empty())
      fmt::print(
          "the device failed after {} of {} graphs, all threads share it: replay each seed above "
          "alone\n",
          done_.load(), options_.count);
    if (!why_stopped_.empty()) fmt::print("{}\n", why_stopped_);
    fmt::print("{} graphs, {} kernels, {} failed, {:.1f} s\n", done_.load(), kernels_.size(),
               failures_.size(), seconds);
    const double graphs = std::max<double>(1, static_cast<double>(done_.load())) * 1e-3;
    fmt::print(
        "  {} graphs checked against the host; in a thread and graph: {:.2f} ms planning, {:.1f} "
        "ms of a processor "
        "compiling, {:.2f} ms waiting for kernels, {:.2f} ms running\n",
        checked_.load(), planning_ / graphs, kernels_.compile_seconds() / graphs,
        kernels_.wait_seconds() / graphs, running_ / graphs);
    if (!why_stopped_.empty()) return static_cast<int>(ExitCode::device);
    return failures_.empty() ? 0 : static_cast<int>(ExitCode::check_failed);
  }

  const Options& options_;
  CudaDevicePtr device_;
  std::string target_;
  KernelStore kernels_;
  std::atomic<uint64_t> next_ = 0, done_ = 0, checked_ = 0;
  std::atomic<double> planning_ = 0, running_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::map<uint64_t, std::string> failures_;  // by seed
  std::string why_stopped_;
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Random graphs, fused against unfused on a CUDA device, bit for bit");
  app.add_option("--seed", options.seed, "first seed")->capture_default_str();
  app.add_option("--count", options.count, "seeds")->capture_default_str();
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--batch", options.batch, "graphs whose kernels are compiled as one program")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--check-host", options.check_host,
                 "compare the kernels of every K-th graph with the host; 0: of none")
      ->option_text("K");
  app.add_option("--device", options.device, "number of the device")->capture_default_str();
  app.add_option("--products", options.products,
                 "own: graphs of products by Sinter's own kernels, with their epilogues")
      ->check(CLI::IsMember({"own"}));
  app.add_option("--graphs", options.graphs,
                 "attention_gradients: graphs around gradients of attention")
      ->check(CLI::IsMember({std::string(kGradientGraphs), std::string(kQuantizedGraphs)}));
  app.add_flag("--compile-only", options.compile_only, "plan and compile; needs no device");
  app.add_option("--arch", options.arch, "what to compile for where there is no device")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto give_up = [](const Error& error) {
    fmt::print(stderr, "sinter_differential_gpu: {}\n", error.message());
    return static_cast<int>(error.code);
  };
  const auto nvrtc = find_nvrtc();
  if (!nvrtc) return give_up(nvrtc.error());
  CudaDevicePtr device;
  if (!options.compile_only) {
    auto opened = CudaDevice::open(options.device);
    if (!opened) return give_up(opened.error());
    device = std::move(*opened);
  }
  for (int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, say_last_words);
  return Differential(options, std::move(device), *nvrtc).run();
}

}  // namespace
}  // namespace sinter

int main(int argc, char** argv) { return sinter::run(argc, argv); }
