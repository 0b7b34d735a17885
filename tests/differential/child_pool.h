// Work on numbered items in child processes, so that an item which ends its process is only a
// failed item.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sinter {

/// Sends a child's messages about the item that it works on.
class ItemReport {
 public:
  explicit ItemReport(int pipe) : pipe_(pipe) {}
  /// `item` begins; if the process ends before the next call, that is `item`'s failure.
  void begin(uint64_t item) { send('b', item, {}); }
  void failed(uint64_t item, const std::string& what) { send('f', item, what); }
  /// Anything else that the parent should hear.
  void note(uint64_t item, const std::string& text) { send('n', item, text); }

 private:
  void send(char kind, uint64_t item, const std::string& text);
  int pipe_;
};

struct PoolEvents {
  std::function<void(uint64_t item, const std::string& what)> failed;
  std::function<void(uint64_t item, const std::string& text)> note;
  /// After every chunk: how many items are done. False: stop.
  std::function<bool(uint64_t done)> progress;
};

/// Calls work(first, last, report) for items first .. last-1, a chunk at a time, in `processes`
/// children. After the death of a child its chunk goes on after the item that it died of.
void run_in_children(uint64_t first, uint64_t count, uint64_t chunk, int processes,
                     const std::function<void(uint64_t, uint64_t, ItemReport&)>& work,
                     const PoolEvents& events);

/// The same for one piece of work: what it failed with, or how its process ended; empty: it passed.
/// A process that takes longer than `seconds` is ended.
std::string run_in_child(const std::function<std::string()>& work, int seconds);

}  // namespace sinter
