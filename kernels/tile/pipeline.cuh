// A multistage pipeline in shared memory: producers fill its stages in turn, consumers read them.
// Barriers hand each stage over, so that either side goes its own way as far as there are stages.
#pragma once

#include "kernels/isa/cp_async.cuh"
#include "kernels/isa/mbarrier.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// The barriers of a pipeline, in shared memory: of a stage, `full` ends a phase when producers have
// filled it, `empty` when consumers have read it.
template <int stages>
struct Pipeline {
  struct Stage {
    Barrier full, empty;
  };
  Stage stage[stages];

  // One thread calls it; fence_mbarrier_init() and __syncthreads() follow. `producers` and
  // `consumers`: the arrivals that end a phase of `full` and of `empty`.
  SINTER_DEVICE void init(unsigned producers, unsigned consumers) {
    for (Stage& s : stage) {
      mbarrier_init(cvta_to_shared(&s.full), producers);
      mbarrier_init(cvta_to_shared(&s.empty), consumers);
    }
  }
};

// A warpgroup's stage and phase in a pipeline. Of each stage it calls either producer_acquire() and
// one of the producer_commit functions, or consumer_wait() and consumer_release().
template <int stages>
class PipelineState {
 public:
  SINTER_DEVICE PipelineState(Pipeline<stages>& pipeline) : pipeline_(pipeline) {}

  SINTER_DEVICE int stage() const { return stage_; }

  // Waits until the stage may be overwritten.
  SINTER_DEVICE void producer_acquire() const {
    mbarrier_try_wait_parity(cvta_to_shared(&pipeline_.stage[stage_].empty), phase_ ^ 1);
  }
  // The thread has filled its part of the stage.
  SINTER_DEVICE void producer_commit() {
    mbarrier_arrive(full());
    advance();
  }
  // The thread's cp.async copies fill its part.
  SINTER_DEVICE void producer_commit_copies() {
    cp_async_mbarrier_arrive_noinc(full());
    advance();
  }
  // Announces the bytes that bulk copies, issued by this thread to full(), bring.
  SINTER_DEVICE void producer_expect(int bytes) const { mbarrier_arrive_expect_tx(full(), bytes); }

  // Waits until the stage is filled.
  SINTER_DEVICE void consumer_wait() const { mbarrier_try_wait_parity(full(), phase_); }
  // The warp has read the stage: one of its lanes arrives.
  SINTER_DEVICE void consumer_release() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(cvta_to_shared(&pipeline_.stage[stage_].empty));
    advance();
  }

  // The thread has read its part of the stage; of each warp that consumes, all lanes call it. Where
  // lanes read by ordinary loads, compute-sanitizer's racecheck sees that they have: it does not
  // follow __syncwarp() to the arrival of another lane.
  SINTER_DEVICE void consumer_release_thread() {
    mbarrier_arrive(cvta_to_shared(&pipeline_.stage[stage_].empty));
    advance();
  }

  // The warp has read a stage in a pipeline that the `blocks` blocks of a cluster fill for one
  // another: a lane arrives in each of them.
  template <int blocks>
  SINTER_DEVICE void consumer_release_cluster() {
    if constexpr (blocks == 1) return consumer_release();
    __syncwarp();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < blocks)
      mbarrier_arrive_cluster(cvta_to_shared(&pipeline_.stage[stage_].empty), lane);
    advance();
  }

  SINTER_DEVICE SharedAddress full() const { return cvta_to_shared(&pipeline_.stage[stage_].full); }
  SINTER_DEVICE void advance() {
    if (++stage_ < stages) return;
    stage_ = 0;
    phase_ ^= 1;
  }
  // Passes over stages that others read.
  SINTER_DEVICE void advance(int count) {
    const int next = stage_ + count;
    stage_ = next % stages;
    phase_ ^= static_cast<unsigned>(next / stages & 1);
  }

 private:
  Pipeline<stages>& pipeline_;
  int stage_ = 0;
  unsigned phase_ = 0;
};

// The producer's side of the tiles that a block takes: calls fill(tile, step) for each of `steps`
// stages of a tile, as many as it has of them, when the stage may be overwritten.
template <int steps, int stages, typename Tiles, typename Fill>
SINTER_DEVICE void fill_stages(PipelineState<stages>& stage, Tiles& tiles, Fill fill) {
#pragma unroll 1
  for (int round = 0; tiles.has(round); ++round) {
    const auto tile = tiles.tile(round);
    const int of_tile = Tiles::template steps_of<steps>(tile);
#pragma unroll 1
    for (int step = 0; step < of_tile; ++step) {
      stage.producer_acquire();
      fill(tile, step);
      stage.advance();
    }
  }
}

}  // namespace sinter
#endif
