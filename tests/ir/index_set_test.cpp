// Sets of indices against sets whose elements are listed one by one.
#include "ir/index_set.h"

#include <doctest/doctest.h>

#include <random>

namespace sinter::index_set_test {
namespace {

using Listed = std::vector<bool>;

struct Both {
  IndexSet set;
  Listed listed;
};

int64_t size_of(const Listed& listed) { return std::count(listed.begin(), listed.end(), true); }

Both random_runs(std::mt19937& random, int64_t extent) {
  llvm::SmallVector<IndexSet::Run, 4> runs;
  Listed listed(static_cast<size_t>(extent), false);
  for (size_t i = random() % 4; i > 0; --i) {
    const int64_t begin = static_cast<int64_t>(random() % static_cast<uint64_t>(extent + 2)) - 1;
    const int64_t end = begin + static_cast<int64_t>(random() % 5);
    runs.push_back({begin, end});
    for (int64_t k = std::max<int64_t>(begin, 0); k < std::min(end, extent); ++k)
      listed[static_cast<size_t>(k)] = true;
  }
  return {IndexSet::of(extent, runs), std::move(listed)};
}

Both product(const Both& outer, const Both& inner) {
  Both result{IndexSet::product(outer.set, inner.set), {}};
  for (bool i : outer.listed)
    for (bool k : inner.listed) result.listed.push_back(i && k);
  return result;
}

TEST_CASE("products and unions of runs have the indices that they list") {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    CAPTURE(round);
    const auto extent = [&] { return static_cast<int64_t>(1 + random() % 6); };
    const int64_t a = extent(), b = extent(), c = extent();
    Both all =
        product(random_runs(random, a), product(random_runs(random, b), random_runs(random, c)));
    CHECK(all.set.exact());
    CHECK(all.set.size() == size_of(all.listed));
    for (int more = 0; more < 3; ++more) {
      const Both other =
          product(random_runs(random, a), product(random_runs(random, b), random_runs(random, c)));
      all.set.unite(other.set);
      for (size_t i = 0; i < all.listed.size(); ++i)
        all.listed[i] = all.listed[i] || other.listed[i];
      CHECK(all.set.exact());
      CHECK(all.set.size() == size_of(all.listed));
      CHECK(all.set.is_whole() == (size_of(all.listed) == a * b * c));
    }
  }
}

TEST_CASE("columns of a matrix of many rows are one run of a period") {
  const int64_t rows = int64_t{1} << 40;
  const IndexSet left = IndexSet::product(IndexSet::whole(rows), IndexSet::of(128, {{0, 64}}));
  IndexSet both = IndexSet::product(IndexSet::whole(rows), IndexSet::of(128, {{64, 128}}));
  CHECK(left.size() == rows * 64);
  CHECK_FALSE(left.is_whole());
  both.unite(left);
  CHECK(both.is_whole());
  CHECK(both.exact());
}

TEST_CASE("sets with too many runs are upper bounds") {
  const int64_t most = IndexSet::kMaxRuns;
  const IndexSet rows = IndexSet::of(2 * most + 1, {{1, 2 * most + 1}});
  IndexSet columns = IndexSet::product(rows, IndexSet::of(8, {{2, 4}}));
  CHECK_FALSE(columns.exact());
  CHECK(columns.size() == 4 * most);
  columns.unite(columns);
  CHECK(columns.size() == 8 * most);
  for (int i = 0; i < 3; ++i) columns.unite(columns);
  CHECK(columns.size() == columns.extent());  // never more than there are
}

TEST_CASE("sets without indices, and of extent 0") {
  IndexSet none(12);
  CHECK(none.size() == 0);
  CHECK(none.unite(IndexSet::whole(12)).size() == 12);
  CHECK(IndexSet::whole(0).size() == 0);
  CHECK(IndexSet::product(IndexSet::whole(0), IndexSet::whole(7)).size() == 0);
  CHECK(IndexSet::at_most(10, 30).is_whole());
  CHECK(IndexSet::at_most(10, 3).size() == 3);
}

}  // namespace
}  // namespace sinter::index_set_test
