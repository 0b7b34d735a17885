#include "shim/cluster.h"

#include "ir/error.h"

namespace sinter {

using sinter_shim::Site;

void Cluster::begin(unsigned blocks) {
  while (blocks_.size() < blocks) blocks_.push_back(std::make_unique<Block>());
  size_ = blocks;
  phase_ = arrived_ = 0;
}

void Cluster::arrive(Thread& thread, bool shows, Site site) {
  ClusterVisit& visit = thread.cluster;
  if (visit.arrived)
    thread.fail(site, fmt::format("arrives in the cluster without having waited since it arrived "
                                  "at {}; wait once after each arrival",
                                  to_string(visit.arrival)));
  if (shows) {
    for (const auto& [to, value] : visit.given) *to = value;
    visit.given.clear();
  }
  visit.arrived = true;
  visit.phase = phase_;
  visit.arrival = site;
  if (++arrived_ < uint64_t{size_} * thread.block->thread_count()) return;
  arrived_ = 0;
  ++phase_;
  for (unsigned rank = 0; rank < size_; ++rank)
    for (unsigned i = 0; i < thread.block->thread_count(); ++i)
      if (Thread& other = blocks_[rank]->thread(i); other.wait == Wait::cluster)
        other.wait = Wait::none;
}

void Cluster::wait(Thread& thread, Site site) {
  ClusterVisit& visit = thread.cluster;
  if (!visit.arrived)
    thread.fail(site, "waits for the cluster without having arrived; arrive before each wait");
  visit.arrived = false;
  if (visit.phase == phase_) thread.suspend(Wait::cluster, site);
  visit.waited = true;
}

void Cluster::give(Thread& thread, float* own, int rank, float value, Site site) {
  auto* there = reinterpret_cast<float*>(in_block(thread, own, sizeof(float), rank, site));
  if (there == own)
    *own = value;
  else
    thread.cluster.given.emplace_back(there, value);
}

std::byte* Cluster::in_block(Thread& thread, const void* own, size_t bytes, int rank, Site site) {
  if (rank < 0 || static_cast<unsigned>(rank) >= size_)
    thread.fail(site, fmt::format("gives to the block of rank {}; the cluster's ranks are 0..{}",
                                  rank, size_ - 1));
  Block& to = *blocks_[static_cast<unsigned>(rank)];
  const auto* address = static_cast<const std::byte*>(own);
  if (&to == thread.block) return const_cast<std::byte*>(address);
  if (!thread.cluster.waited)
    thread.fail(site, fmt::format("gives to the block of rank {}, which may not have begun; wait "
                                  "for the cluster first",
                                  rank));
  if (to.has_ended())
    thread.fail(site, fmt::format("gives to the block of rank {}, which has ended; have it wait "
                                  "for the cluster once more",
                                  rank));
  const SharedVariable* variable = thread.block->variable_of(own, bytes);
  if (!variable)
    thread.fail(site, fmt::format("gives to the block of rank {} at an address outside its own "
                                  "shared memory; give a place of it",
                                  rank));
  std::byte* first = to.shared_storage(
      variable->variable, static_cast<int64_t>(variable->memory.bytes()), variable->site, thread);
  return first + (address - reinterpret_cast<const std::byte*>(variable->memory.data()));
}

void Cluster::leave(Thread& thread) {
  if (thread.cluster.arrived)
    thread.fail(thread.cluster.arrival,
                "returns without having waited for the cluster, where it arrived; wait once after "
                "each arrival");
  thread.wait = Wait::returned;
}

std::string Cluster::describe_stall() const {
  if (size_ == 1) return blocks_[0]->describe_stall();
  std::string text;
  for (unsigned rank = 0; rank < size_; ++rank)
    text += fmt::format("{}block {}: {}", rank ? "; " : "", blocks_[rank]->number(),
                        blocks_[rank]->describe_stall());
  return text;
}

}  // namespace sinter
