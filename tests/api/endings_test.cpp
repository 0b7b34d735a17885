// Programs that end while their threads are in the library: none ends with a signal.
//   test_endings                       runs each program below a few times
//   test_endings --times=N             ... N times
//   test_endings --program=NAME        is that program
//   test_endings --list                names the programs
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sinter.h"

namespace {

using namespace std::chrono_literals;

const char* const kModel = SINTER_SAMPLES_DIR "/tiny-llama";

/// Products that take a few milliseconds each.
constexpr const char* kProducts = R"(module @products {
  entry @main(%a: f32[512, 512], %b: f32[512, 512]) -> (%c) {
    %c = linear %a, %b : f32[512, 512]
  }
})";

/// The value of a result. The program cannot go on without it.
template <typename T>
T value(sinter::Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  ::_exit(70);
}
void check(const sinter::Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  ::_exit(71);
}

/// Each call after the other, until the process is gone.
void again_and_again(const std::function<void()>& work, int threads = 3) {
  for (int i = 0; i < threads; ++i)
    std::thread([work] {
      for (;;) work();
    }).detach();
}

/// Ends the process at another moment in each run.
void wait_a_little() {
  std::this_thread::sleep_for(10ms + std::chrono::microseconds(::getpid() % 64 * 500));
}

sinter::LanguageModel language_model() {
  return value(sinter::LanguageModel::open(kModel, value(sinter::Device::open("cpu"))));
}

sinter::GenerateOptions tokens(std::int64_t count) {
  sinter::GenerateOptions options;
  options.count = count;
  return options;
}

void compile() { (void)value(sinter::Plan::compile(value(sinter::Model::open(kModel)))); }

int compiles() {
  again_and_again(compile);
  wait_a_little();
  return 0;
}

int asks_why() {
  const auto plan = value(sinter::Plan::compile(value(sinter::Model::open(kModel))));
  again_and_again([plan] { (void)plan.why("decode", "l0.norm1", "l0.res1"); });
  wait_a_little();
  return 0;
}

int opens_models() {
  again_and_again([] { (void)language_model(); });
  wait_a_little();
  return 0;
}

int generates() {
  again_and_again([] {
    auto model = language_model();
    (void)model.generate({{1, 2, 3}}, tokens(400));
  });
  wait_a_little();
  std::this_thread::sleep_for(50ms);
  std::exit(1);
}

int multiplies() {
  const auto plan = value(sinter::Plan::compile(value(sinter::Model::parse(kProducts))));
  const auto executable = value(sinter::Executable::load(plan, value(sinter::Device::open("cpu"))));
  again_and_again([executable] {
    std::vector<float> a(512 * 512, 1), b(512 * 512, 1), c(512 * 512);
    auto session = value(sinter::Session::create(executable));
    auto call = value(sinter::Call::create(session, "main"));
    check(call.input("a", {sinter::DType::f32, {512, 512}, a.data()}));
    check(call.input("b", {sinter::DType::f32, {512, 512}, b.data()}));
    check(call.output("c", {sinter::DType::f32, {512, 512}, c.data()}));
    for (int i = 0; i < 100; ++i) check(call.run());
  });
  std::this_thread::sleep_for(20ms);
  wait_a_little();
  return 0;
}

/// exit() is called by a callback.
int exits_in_a_callback() {
  again_and_again(compile);
  auto model = language_model();
  sinter::GenerateOptions options;
  options.on_token = [](std::size_t, std::int32_t, std::string_view) -> bool { std::exit(1); };
  (void)model.generate({{1, 2, 3}}, options);
  return 72;
}

int exits_in_progress() {
  again_and_again(compile);
  sinter::CompileOptions options;
  options.progress = [](std::string_view, std::int64_t, std::int64_t) -> bool { std::exit(0); };
  (void)sinter::Plan::compile(value(sinter::Model::open(kModel)), options);
  return 73;
}

void* joined(const std::function<void()>& work) {
  pthread_t thread;
  const auto run = [](void* function) -> void* {
    (*static_cast<const std::function<void()>*>(function))();
    return nullptr;
  };
  auto copy = work;
  if (::pthread_create(&thread, nullptr, run, &copy) != 0) ::_exit(74);
  void* result = nullptr;
  ::pthread_join(thread, &result);
  return result;
}

/// A thread that ends in a callback leaves the model usable.
int ends_a_thread_in_a_callback() {
  auto model = language_model();
  void* const ended = joined([&] {
    sinter::GenerateOptions options;
    options.on_token = [](std::size_t, std::int32_t, std::string_view) -> bool {
      ::pthread_exit(PTHREAD_CANCELED);
    };
    (void)model.generate({{1, 2, 3}}, options);
  });
  const auto more = model.generate({{1, 2, 3}}, tokens(3));
  return ended == PTHREAD_CANCELED && more && (*more)[0].size() == 3 ? 0 : 75;
}

int ends_a_thread_in_progress() {
  void* const ended = joined([&] {
    sinter::CompileOptions options;
    options.progress = [](std::string_view, std::int64_t, std::int64_t) -> bool {
      ::pthread_exit(PTHREAD_CANCELED);
    };
    (void)sinter::Plan::compile(value(sinter::Model::open(kModel)), options);
  });
  compile();
  return ended == PTHREAD_CANCELED ? 0 : 76;
}

/// A thread that is cancelled ends between two calls of the library.
int cancels_threads() {
  std::vector<pthread_t> threads(3);
  for (pthread_t& thread : threads)
    ::pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          for (;;) {
            (void)language_model().generate({{1, 2, 3}}, tokens(5));
            ::pthread_testcancel();
          }
        },
        nullptr);
  wait_a_little();
  for (const pthread_t thread : threads) ::pthread_cancel(thread);
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  compile();
  return 0;
}

/// Exceptions of callbacks while other threads work, and an end without main's return.
int throws_in_callbacks() {
  again_and_again(compile, 2);
  auto model = language_model();
  sinter::GenerateOptions options;
  options.on_token = [](std::size_t, std::int32_t, std::string_view) -> bool { throw 1; };
  const auto failed = model.generate({{1, 2, 3}}, options);
  std::exit(failed ? 77 : 1);
}

/// The main thread ends before the others, and the process with one of them.
int main_thread_ends_first() {
  again_and_again(compile, 2);
  std::thread([] {
    wait_a_little();
    std::exit(0);
  }).detach();
  ::pthread_exit(nullptr);
}

struct Program {
  const char* name;
  int (*run)();
};
constexpr Program kPrograms[] = {
    {"compiles", compiles},
    {"asks_why", asks_why},
    {"opens_models", opens_models},
    {"generates", generates},
    {"multiplies", multiplies},
    {"exits_in_a_callback", exits_in_a_callback},
    {"exits_in_progress", exits_in_progress},
    {"ends_a_thread_in_a_callback", ends_a_thread_in_a_callback},
    {"ends_a_thread_in_progress", ends_a_thread_in_progress},
    {"cancels_threads", cancels_threads},
    {"throws_in_callbacks", throws_in_callbacks},
    {"main_thread_ends_first", main_thread_ends_first},
};

int run_program(const std::string& name) {
  for (const Program& program : kPrograms)
    if (name == program.name) return program.run();
  std::fprintf(stderr, "no program is called %s\n", name.c_str());
  return 2;
}

int list_programs() {
  for (const Program& program : kPrograms) std::puts(program.name);
  return 0;
}

/// Whether the program ends with 0 or 1; says how it ended otherwise.
bool ends_well(const char* self, const Program& program) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::execl(self, self, (std::string("--program=") + program.name).c_str(), nullptr);
    ::_exit(78);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) return true;
  std::fprintf(stderr, "%s: %s %d\n", program.name, WIFEXITED(status) ? "exit code" : "signal",
               WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  int times = 2, failed = 0, run = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--program=")) return run_program(argument.substr(10));
    if (argument == "--list") return list_programs();
    if (argument.starts_with("--times=")) times = std::atoi(argv[i] + 8);
  }
  for (const Program& program : kPrograms)
    for (int i = 0; i < times; ++i, ++run)
      if (!ends_well("/proc/self/exe", program)) ++failed;
  std::printf("%d programs, %d ended with a signal or another code than 0 and 1\n", run, failed);
  return failed == 0 && run > 0 ? 0 : 1;
}
