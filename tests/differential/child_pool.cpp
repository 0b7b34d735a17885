#include "differential/child_pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <list>
#include <vector>

#include "ir/error.h"

namespace sinter {
namespace {

struct Header {
  char kind;
  uint64_t item;
  uint32_t bytes;
};

bool write_all(int pipe, const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = write(pipe, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("the process was ended by signal {}", WTERMSIG(status));
  return fmt::format("the process ended with code {}", WEXITSTATUS(status));
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

struct Child {
  pid_t pid = 0;
  int pipe = -1;
  uint64_t end = 0;      // of its chunk
  uint64_t current = 0;  // item
  std::string received;  // not yet a whole message
};

Child start(uint64_t first, uint64_t end,
            const std::function<void(uint64_t, uint64_t, ItemReport&)>& work) {
  int ends[2];
  SINTER_CHECK(pipe(ends) == 0, "no pipe");
  fflush(nullptr);
  const pid_t pid = fork();
  SINTER_CHECK(pid >= 0, "no process");
  if (pid == 0) {
    close(ends[0]);
    ItemReport report(ends[1]);
    work(first, end, report);
    fflush(nullptr);
    _exit(0);
  }
  close(ends[1]);
  return {pid, ends[0], end, first, {}};
}

/// Hands on the whole messages that a child has sent.
void deliver(Child& child, const PoolEvents& events) {
  size_t at = 0;
  Header header{};
  while (child.received.size() - at >= sizeof header) {
    std::memcpy(&header, child.received.data() + at, sizeof header);
    if (child.received.size() - at - sizeof header < header.bytes) break;
    const std::string text = child.received.substr(at + sizeof header, header.bytes);
    at += sizeof header + header.bytes;
    if (header.kind == 'b') child.current = header.item;
    if (header.kind == 'f') events.failed(header.item, text);
    if (header.kind == 'n') events.note(header.item, text);
  }
  child.received.erase(0, at);
}

}  // namespace

void ItemReport::send(char kind, uint64_t item, const std::string& text) {
  Header header{};
  header.kind = kind, header.item = item, header.bytes = static_cast<uint32_t>(text.size());
  // A parent that is gone wants no more work.
  if (!write_all(pipe_, &header, sizeof header) || !write_all(pipe_, text.data(), text.size()))
    _exit(0);
}

void run_in_children(uint64_t first, uint64_t count, uint64_t chunk, int processes,
                     const std::function<void(uint64_t, uint64_t, ItemReport&)>& work,
                     const PoolEvents& events) {
  std::list<Child> children;
  uint64_t next = first, done = 0;
  const uint64_t end = first + count;
  bool stop = false;
  while (!children.empty() || (next < end && !stop)) {
    while (!stop && next < end && children.size() < static_cast<size_t>(processes)) {
      const uint64_t last = std::min(next + chunk, end);
      children.push_back(start(next, last, work));
      next = last;
    }
    std::vector<pollfd> polls;
    for (const Child& child : children) polls.push_back({child.pipe, POLLIN, 0});
    if (poll(polls.data(), polls.size(), -1) < 0) continue;
    size_t i = 0;
    for (auto child = children.begin(); child != children.end(); ++i) {
      if (!polls[i].revents) {
        ++child;
        continue;
      }
      char buffer[65536];
      const ssize_t n = read(child->pipe, buffer, sizeof buffer);
      if (n > 0) {
        child->received.append(buffer, static_cast<size_t>(n));
        deliver(*child, events);
        ++child;
        continue;
      }
      close(child->pipe);
      const int status = wait_for(child->pid);
      const uint64_t at = child->current, chunk_end = child->end;
      child = children.erase(child);
      if (status != 0) {
        events.failed(at, describe_end(status));
        if (at + 1 < chunk_end && !stop) children.push_back(start(at + 1, chunk_end, work));
      } else {
        done += chunk;
      }
      if (!events.progress(std::min(done, count))) stop = true;
      break;  // the list of polls is out of date
    }
    if (stop)
      for (Child& child : children) kill(child.pid, SIGKILL);
    if (stop)
      for (; !children.empty(); children.pop_front()) {
        close(children.front().pipe);
        wait_for(children.front().pid);
      }
  }
}

std::string run_in_child(const std::function<std::string()>& work, int seconds) {
  std::string result;
  const PoolEvents events{[&](uint64_t, const std::string& what) { result = what; },
                          [](uint64_t, const std::string&) {}, [](uint64_t) { return true; }};
  run_in_children(
      0, 1, 1, 1,
      [&](uint64_t, uint64_t, ItemReport& report) {
        alarm(static_cast<unsigned>(seconds));
        // The messages of the dying process were shown when the case was found.
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        if (const std::string what = work(); !what.empty()) report.failed(0, what);
      },
      events);
  return result;
}

}  // namespace sinter
