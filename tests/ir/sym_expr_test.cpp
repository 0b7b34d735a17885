// Polynomials over symbols: canonical form, checked arithmetic, bounds and divisors.
#include "ir/sym_expr.h"

#include <doctest/doctest.h>

#include "ir/symbols.h"

namespace sinter::sym_expr_test {
namespace {

const SymbolId kN{0}, kM{1};
const std::vector<Symbol> kSymbols = {host_symbol("N", 2, 100), host_symbol("M", 8, 64, 8)};

SymExpr n() { return SymExpr(Dim(kN)); }
SymExpr m() { return SymExpr(Dim(kM)); }

}  // namespace

TEST_CASE("sums and products are canonical") {
  CHECK(n() + m() == m() + n());
  CHECK(n() * m() == m() * n());
  CHECK((n() + 1) * (n() + 2) == n() * n() + 3 * n() + 2);
  CHECK(n() * 3 - n() - n() - n() == SymExpr(0));
  CHECK((n() - n()).terms().empty());
  CHECK((n() - n()).is_constant());
  CHECK((n() - n()).constant() == 0);
  CHECK(n() != m());
  CHECK(SymExpr(Dim(7)) == SymExpr(7));
  CHECK(n() * 0 == SymExpr(0));
}

TEST_CASE("a constant is one, a symbol is none") {
  CHECK(SymExpr(5).is_constant());
  CHECK(SymExpr(5).is(5));
  CHECK_FALSE(SymExpr(5).is(6));
  CHECK_FALSE(n().is_constant());
  CHECK_FALSE(n().is(0));
  CHECK_FALSE((n() + 1).is_constant());
}

TEST_CASE("evaluation takes the symbols' values") {
  const SymExpr e = n() * n() * 2 + m() * 3 - 7;
  CHECK(e.evaluate({5, 10}) == 2 * 25 + 30 - 7);
  CHECK(SymExpr(3).evaluate({}) == 3);
  CHECK((n() * m()).evaluate({INT64_MAX, 2}) == std::nullopt);
  CHECK((n() + m()).evaluate({INT64_MAX, 1}) == std::nullopt);
}

TEST_CASE("an overflow stays") {
  SymExpr big = SymExpr(INT64_MAX) * n();
  CHECK_FALSE(big.overflowed());
  big = big * 2;
  CHECK(big.overflowed());
  CHECK((big - big).overflowed());
  CHECK((SymExpr(1) + big).overflowed());
  CHECK((big * 0).overflowed());
  CHECK(big.evaluate({0, 0}) == std::nullopt);
  CHECK(big.upper_bound(kSymbols) == INT64_MAX);
  CHECK_FALSE(SymExpr(1000).covers(big));
  CHECK((SymExpr(INT64_MAX) + 1).overflowed());
  CHECK((SymExpr(0) - SymExpr(INT64_MIN)).overflowed());
}

TEST_CASE("the upper bound is reached by some values") {
  CHECK(SymExpr(9).upper_bound(kSymbols) == 9);
  CHECK(n().upper_bound(kSymbols) == 100);
  CHECK((n() * m() + 1).upper_bound(kSymbols) == 6401);
  // A negative term is largest where its symbol is smallest.
  CHECK((m() - n()).upper_bound(kSymbols) == 62);
  CHECK((n() * INT64_MAX).upper_bound(kSymbols) == INT64_MAX);
}

TEST_CASE("the divisor divides every value") {
  CHECK(SymExpr(0).divisor(kSymbols) == 0);
  CHECK(SymExpr(12).divisor(kSymbols) == 12);
  CHECK(n().divisor(kSymbols) == 1);
  CHECK((n() * 6).divisor(kSymbols) == 6);
  CHECK((m() * 3).divisor(kSymbols) == 24);
  CHECK((m() * m()).divisor(kSymbols) == 64);
  CHECK((m() * 3 + 16).divisor(kSymbols) == 8);
  CHECK((m() + n()).divisor(kSymbols) == 1);
}

TEST_CASE("covers compares for all values of the symbols") {
  CHECK((n() * 2 + 1).covers(n() + 1));
  CHECK(n().covers(n()));
  CHECK_FALSE((n() + 1).covers(n() * 2));
  CHECK_FALSE(n().covers(1));
  CHECK_FALSE(n().covers(m()));
  CHECK((n() * m()).covers(0));
}

TEST_CASE("division is exact or refused") {
  CHECK((n() * m() * 6).divide_exactly(n() * 2) == m() * 3);
  CHECK((n() * 4 + 8).divide_exactly(4) == n() + 2);
  CHECK(SymExpr(0).divide_exactly(n()) == SymExpr(0));
  CHECK((n() * n()).divide_exactly(n()) == n());
  CHECK(n().divide_exactly(n() * n()) == std::nullopt);
  CHECK((n() * 4 + 6).divide_exactly(4) == std::nullopt);
  CHECK(n().divide_exactly(m()) == std::nullopt);
  CHECK(n().divide_exactly(n() + 1) == std::nullopt);
  CHECK(n().divide_exactly(0) == std::nullopt);
}

TEST_CASE("volumes and strides of shapes") {
  CHECK(volume({}) == SymExpr(1));
  CHECK(volume({kN, 4, kM}) == n() * m() * 4);
  CHECK(volume({kN, 0}) == SymExpr(0));
  CHECK(volume({int64_t{1} << 32, int64_t{1} << 31}).overflowed());
  const auto strides = row_major_strides({kN, kM, 3});
  REQUIRE(strides.size() == 3);
  CHECK(strides[0] == m() * 3);
  CHECK(strides[1] == SymExpr(3));
  CHECK(strides[2] == SymExpr(1));
  CHECK(row_major_strides({}).empty());
}

TEST_CASE("polynomials print with names") {
  CHECK(to_string(SymExpr(0), kSymbols) == "0");
  CHECK(to_string(SymExpr(-3), kSymbols) == "-3");
  CHECK(to_string(n() * 4096 + 32, kSymbols) == "4096*N + 32");
  CHECK(to_string(n() * -1, kSymbols) == "-N");
  CHECK(to_string(SymExpr(INT64_MIN), kSymbols) == "-9223372036854775808");
  CHECK(to_string(n() * m(), kSymbols) == "N*M");
}

}  // namespace sinter::sym_expr_test
