// tiled_attention by products of warpgroups. The first warpgroup loads tiles of keys and of values
// into stages of shared memory, in turns; each of the others has 64 rows of the block. Barriers
// hand the stages over:
//
//   loads       | keys 0 | values 0 | keys 1 | values 1 | keys 2 (waits until keys 0 are free) ...
//   warpgroup 1          | q k | softmax | weights v | q k | softmax | weights v ...
//   warpgroup 2          | q k | softmax | weights v | q k | softmax | weights v ...
#pragma once

#include "kernels/attention/attention_tiles.cuh"
#include "kernels/common/barriers.cuh"
#include "kernels/common/wgmma.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// Of a stage: `full` ends a phase when a tile is there, `empty` when all warps are done with it.
template <int stages>
struct StageBarriers {
  Barrier full[stages], empty[stages];

  SINTER_DEVICE void set_up(unsigned loading_threads, unsigned computing_warps) {
    for (int s = 0; s < stages; ++s) {
      set_up_barrier(&full[s], loading_threads);
      set_up_barrier(&empty[s], computing_warps);
    }
  }
};
template <int stages>
struct AttentionBarriers {
  StageBarriers<stages> keys, values;
};

template <typename Config>
SINTER_DEVICE void load_for_warpgroups(const AttentionBlock<Config>& block,
                                       AttentionBarriers<Config::kStages>& barriers) {
  const int thread = static_cast<int>(threadIdx.x), begin = block.first_tile();
  const int count = block.end_tile() - begin;
  // A thread has two groups of copies at a time. When the older one is there, its stage is full.
  Barrier* older = nullptr;
  const auto older_is_there = [&] {
    if (older == nullptr) return;
    show_to_products();
    arrive(older);
  };
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const int stage = i % Config::kStages;
    const unsigned free = (i / Config::kStages + 1) % 2;
    wait_for_phase(&barriers.keys.empty[stage], free);
    block.load_keys(begin + i, stage, thread, 128);
    commit_copies();
    wait_for_copies<1>();
    older_is_there();
    wait_for_phase(&barriers.values.empty[stage], free);
    block.load_values(begin + i, stage, thread, 128);
    commit_copies();
    wait_for_copies<1>();
    older = &barriers.keys.full[stage];
    older_is_there();
    older = &barriers.values.full[stage];
  }
  wait_for_copies<0>();
  older_is_there();
}

template <typename Config, typename Result>
SINTER_DEVICE void compute_in_warpgroup(const AttentionBlock<Config>& block,
                                        AttentionBarriers<Config::kStages>& barriers,
                                        const Result& out) {
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;
  constexpr int row_bytes = attention_panel_row(Sizes::width),
                value_row_bytes = attention_panel_row(Sizes::value_width);
  constexpr int panel = row_bytes / 2;  // elements of a row of a panel
  const int group = static_cast<int>(threadIdx.x) / 128 - 1;
  const int row0 = 64 * group + static_cast<int>(threadIdx.x) % 128 / 32 * 16;
  const bool leads = threadIdx.x % 32 == 0;
  const unsigned char* queries = block.queries() + 64 * group * row_bytes;
  AttentionSoftmax<Config> softmax(block, row0);
  float sums[Sizes::value_width / 2] = {};
  const int begin = block.first_tile(), count = block.end_tile() - begin;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const int stage = i % Config::kStages;
    const unsigned phase = i / Config::kStages % 2;
    float dots[Sizes::keys / 2];
    wait_for_phase(&barriers.keys.full[stage], phase);
    begin_products();
#pragma unroll
    for (int k = 0; k < Sizes::width; k += 16) {
      const int in_panel = k % panel * 2;
      WarpgroupProduct<Sizes::keys, T>::multiply(
          dots,
          matrix_tile<row_bytes>(
              queries + k / panel * attention_panel(Sizes::rows, Sizes::width) + in_panel,
              8 * row_bytes, 16),
          matrix_tile<row_bytes>(
              block.keys(stage) + k / panel * attention_panel(Sizes::keys, Sizes::width) + in_panel,
              8 * row_bytes, 16),
          k > 0);
    }
    end_products();
    wait_for_products<0>();
    if (leads) arrive(&barriers.keys.empty[stage]);
    unsigned weights[Sizes::keys / 4];
    float scale[2];
    softmax.weigh(dots, weights, scale, begin + i, block.is_masked(begin + i));
    softmax.scale_rows(sums, scale);
    wait_for_phase(&barriers.values.full[stage], phase);
    begin_products();
#pragma unroll
    for (int key = 0; key < Sizes::keys; key += 16)
      WarpgroupProduct<Sizes::value_width, T>::add(
          sums, weights + key / 4,
          matrix_tile<value_row_bytes>(block.values(stage) + key * value_row_bytes,
                                       8 * value_row_bytes,
                                       attention_panel(Sizes::keys, Sizes::value_width)));
    end_products();
    wait_for_products<0>();
    if (leads) arrive(&barriers.values.empty[stage]);
  }
  softmax.finish(sums);
  sync_warps(1 + group, 128);  // no warp reads the queries any more
  block.give(sums, row0, out);
}

template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend_by_warpgroups(const AttentionBlock<Config>& block, const Query& q,
                                        const Result& out) {
  static_assert(Config::kThreads == 128 + 2 * Config::kRows, "a warpgroup has 64 rows");
  __shared__ AttentionBarriers<Config::kStages> barriers;
  if (threadIdx.x == 0) {
    barriers.keys.set_up(128, Config::kRows / 16);
    barriers.values.set_up(128, Config::kRows / 16);
    show_barriers_to_block();
  }
  block.take_queries(q);
  show_to_products();
  __syncthreads();
  if (threadIdx.x < 128) {
    give_registers_back<40>();
    load_for_warpgroups<Config>(block, barriers);
  } else {
    take_registers<232>();
    compute_in_warpgroup<Config>(block, barriers, out);
  }
}

}  // namespace sinter
#endif
