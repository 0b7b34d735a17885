// The order of work tiles whose inputs the L2 cache has to keep.
#include "kernels/tile/tiles/cached_lists.cuh"

#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

namespace sinter::cached_lists_test {
namespace {

struct WorkOrder {
  int tiles, lists;
  long long list_bytes, cached_bytes;

  std::vector<std::pair<int, int>> places() const {
    const CachedLists order(tiles, lists, list_bytes, cached_bytes);
    std::vector<std::pair<int, int>> places;
    for (int number = 0; order.has(number); ++number) {
      const ListTile tile = order.tile(number);
      places.emplace_back(tile.place, tile.list);
    }
    return places;
  }
};

}  // namespace

TEST_CASE("lists that fit the cache are one group: the costliest tiles of all come first") {
  CHECK(WorkOrder{2, 3, 10, 30}.places() ==
        std::vector<std::pair<int, int>>{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}});
}

TEST_CASE("lists beyond the cache are groups of the same size, but for the first one") {
  CHECK(WorkOrder{2, 3, 10, 29}.places() ==
        std::vector<std::pair<int, int>>{{0, 0}, {1, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}});
  // Four groups of 96 lists, not three of 100 and one of 84.
  const auto places = WorkOrder{16, 384, 262'144, 26'214'400}.places();
  for (int group = 0; group < 4; ++group)
    for (int i = 0; i < 16 * 96; ++i)
      REQUIRE(places[static_cast<size_t>(group * 16 * 96 + i)] ==
              std::pair(i / 96, group * 96 + i % 96));
}

TEST_CASE("a list that the cache cannot keep is a group by itself") {
  for (long long cached : {0, 9, 10, 19})
    CHECK(WorkOrder{2, 2, 10, cached}.places() ==
          std::vector<std::pair<int, int>>{{0, 0}, {1, 0}, {0, 1}, {1, 1}});
}

TEST_CASE("each tile of each list has one number") {
  for (int tiles : {0, 1, 5})
    for (int lists : {0, 1, 7, 12})
      for (long long cached : {0, 30, 55, 1000}) {
        CAPTURE(tiles);
        CAPTURE(lists);
        CAPTURE(cached);
        const auto places = WorkOrder{tiles, lists, 10, cached}.places();
        CHECK(places.size() == static_cast<size_t>(tiles * lists));
        const std::set<std::pair<int, int>> different(places.begin(), places.end());
        CHECK(different.size() == places.size());
        for (const auto& [place, list] : places) CHECK((place < tiles && list < lists));
      }
}

TEST_CASE("lists that read nothing are one group") {
  CHECK(WorkOrder{1, 2, 0, 0}.places() == std::vector<std::pair<int, int>>{{0, 0}, {0, 1}});
}

}  // namespace sinter::cached_lists_test
