#include "driver/growth_shapes.h"

#include <fmt/format.h>

namespace sinter::test {
namespace {

/// A module of one entry, written part by part.
class ModuleText {
 public:
  void declare(std::string line) { declared_ += "  " + line + "\n"; }
  void input(const std::string& input) { inputs_ += (inputs_.empty() ? "%" : ", %") + input; }
  void output(const std::string& name) { outputs_ += (outputs_.empty() ? "%" : ", %") + name; }
  void op(std::string line) { ops_ += "    %" + line + "\n"; }
  /// A value of its own for each `i`: %m.i = x * c.
  void scaled(int i, const std::string& x, const std::string& type) {
    op(fmt::format("c.{} = constant {{value = 0x1.{:05x}p+0}} : f32[]", i, i));
    op(fmt::format("m.{} = mul %{}, %c.{} : {}", i, x, i, type));
  }
  std::string text() const {
    return fmt::format(
        "module @growth {{\n  symbol N in [1, 4096]\n  symbol M in [1, 4096]\n{}"
        "  entry @f({}) -> ({}) {{\n{}  }}\n}}\n",
        declared_, inputs_, outputs_, ops_);
  }

 private:
  std::string declared_, inputs_, outputs_, ops_;
};

const std::string kRows = "f32[N, 256]";

/// A module with the input %x and %top, which is computed from it.
ModuleText with_top(const std::string& type = kRows) {
  ModuleText m;
  m.input("x: " + type);
  m.op("top = exp %x : " + type);
  return m;
}

std::string outputs(int n) {
  ModuleText m = with_top();
  for (int i = 0; i < n; ++i) {
    m.scaled(i, "top", kRows);
    m.output(fmt::format("m.{}", i));
  }
  return m.text();
}

std::string sum(int n) {
  ModuleText m = with_top();
  for (int i = 0; i < n; ++i) m.scaled(i, "top", kRows);
  m.op("s.0 = neg %m.0 : " + kRows);
  for (int i = 1; i < n; ++i) m.op(fmt::format("s.{} = add %s.{}, %m.{} : {}", i, i - 1, i, kRows));
  m.output(fmt::format("s.{}", n - 1));
  return m.text();
}

/// Every step of a long chain reads the same value from its beginning.
std::string far_reads(int n) {
  ModuleText m = with_top();
  m.op("u.0 = neg %x : " + kRows);
  for (int i = 1; i < n; ++i) {
    m.op(fmt::format("p.{} = softmax %u.{} : {}", i, i - 1, kRows));
    m.op(fmt::format("q.{} = mul %p.{}, %top : {}", i, i, kRows));
    m.op(fmt::format("t.{} = cumulative_sum %q.{} {{axis = 1}} : {}", i, i, kRows));
    m.op(fmt::format("u.{} = add %t.{}, %u.{} : {}", i, i, i - 1, kRows));
  }
  m.output(fmt::format("u.{}", n - 1));
  return m.text();
}

std::string row_reductions(int n) {
  ModuleText m = with_top();
  for (int i = 0; i < n; ++i) {
    m.scaled(i, "top", kRows);
    m.op(fmt::format("r.{} = reduce_sum %m.{} {{axes = [1]}} : f32[N, 1]", i, i));
    m.output(fmt::format("r.{}", i));
  }
  return m.text();
}

std::string column_reductions(int n) {
  const std::string type = "f32[64, 256]";
  ModuleText m = with_top(type);
  for (int i = 0; i < n; ++i) {
    m.scaled(i, "top", type);
    m.op(fmt::format("r.{} = reduce_sum %m.{} {{axes = [0]}} : f32[1, 256]", i, i));
    m.output(fmt::format("r.{}", i));
  }
  return m.text();
}

std::string readers_of_a_weight(int n) {
  ModuleText m;
  m.declare("weight %w : f32[256] = file {tensor = \"w\"}");
  m.input("x: " + kRows);
  std::string last = "x";
  for (int i = 0; i < n; ++i) {
    m.op(fmt::format("u.{} = rms_norm %{}, %w {{eps = 0x1p-20}} : {}", i, last, kRows));
    last = fmt::format("u.{}", i);
  }
  m.output(last);
  return m.text();
}

/// Kernels of different rows, which may share a launch.
std::string rows_of_many_lengths(int n) {
  ModuleText m = with_top();
  for (int i = 0; i < n; ++i) {
    const int width = 4 << i % 6;
    const std::string type = fmt::format("f32[N, {}, {}]", 256 / width, width);
    m.op(fmt::format("v.{} = reshape %top : {}", i, type));
    m.op(fmt::format("w.{} = constant {{value = 0x1.{:05x}p+0}} : f32[{}]", i, i, width));
    m.op(fmt::format("r.{} = rms_norm %v.{}, %w.{} {{eps = 0x1p-20}} : {}", i, i, i, type));
    m.output(fmt::format("r.{}", i));
  }
  return m.text();
}

std::string slices(int n) {
  ModuleText m = with_top(fmt::format("f32[N, {}]", 8 * n));
  for (int i = 0; i < n; ++i) {
    m.op(fmt::format("v.{} = slice %top {{axis = 1, begin = {}, size = 8}} : f32[N, 8]", i, 8 * i));
    m.op(fmt::format("e.{} = exp %v.{} : f32[N, 8]", i, i));
    m.output(fmt::format("v.{}", i));
    m.output(fmt::format("e.{}", i));
  }
  return m.text();
}

/// Products of one value, and their epilogues.
std::string linears(int n) {
  ModuleText m = with_top();
  for (int i = 0; i < n; ++i) {
    m.declare(fmt::format("weight %w.{} : f32[16, 256] = file {{tensor = \"w.{}\"}}", i, i));
    m.op(fmt::format("p.{} = linear %top, %w.{} : f32[N, 16]", i, i));
    m.op(fmt::format("g.{} = gelu %p.{} : f32[N, 16]", i, i));
    m.output(fmt::format("g.{}", i));
  }
  return m.text();
}

std::string gemvs(int n) {
  ModuleText m = with_top("f32[1, 256]");
  for (int i = 0; i < n; ++i) {
    m.declare(fmt::format("weight %w.{} : f32[256, 256] = file {{tensor = \"w.{}\"}}", i, i));
    m.op(fmt::format("p.{} = linear %top, %w.{} {{order = gemv, splits = 1}} : f32[1, 256]", i, i));
    m.op(fmt::format("e.{} = exp %p.{} : f32[1, 256]", i, i));
    m.output(fmt::format("e.{}", i));
  }
  return m.text();
}

/// Values that live until the end, of sizes of which no one covers the other.
std::string many_sizes(int n) {
  ModuleText m;
  for (int i = 0; i < n; ++i) {
    const std::string type = fmt::format("f32[{}, {}]", i % 2 == 0 ? "N" : "M", 8 + i % 50);
    m.input(fmt::format("x.{}: {}", i, type));
    m.op(fmt::format("e.{} = exp %x.{} : {}", i, i, type));
    m.output(fmt::format("e.{}", i));
  }
  return m.text();
}

std::string literals(int n) {
  ModuleText m;
  m.input("x: f32[N, 2]");
  std::string last = "x";
  for (int i = 0; i < n; ++i) {
    m.op(fmt::format("l.{} = literal {{values = [{}, 0x1p+0]}} : f32[2]", i, i));
    m.op(fmt::format("u.{} = add %{}, %l.{} : f32[N, 2]", i, last, i));
    last = fmt::format("u.{}", i);
  }
  m.output(last);
  return m.text();
}

/// A state that is read often and then written.
std::string readers_of_a_state(int n) {
  ModuleText m;
  m.declare("state %k : f32[256, 256]");
  m.input("x: " + kRows);
  m.input("slot: i32[N]");
  for (int i = 0; i < n; ++i) {
    m.scaled(i, "k", "f32[256, 256]");
    m.output(fmt::format("m.{}", i));
  }
  m.op("a = kv_append %k, %x, %slot : f32[256, 256]");
  return m.text();
}

/// A state that is written often, and read each time by attention of one token.
std::string versions_of_a_state(int n) {
  ModuleText m;
  m.declare("state %k : f16[4096, 256]");
  m.declare("state %v : f16[4096, 256]");
  m.input("x: f16[1, 256]");
  m.input("first: i32[1]");
  m.input("slot: i32[1]");
  std::string k = "k", v = "v", x = "x";
  for (int i = 0; i < n; ++i) {
    m.op(fmt::format("k.{} = kv_append %{}, %{}, %slot : f16[4096, 256]", i, k, x));
    m.op(fmt::format("v.{} = kv_append %{}, %{}, %slot : f16[4096, 256]", i, v, x));
    k = fmt::format("k.{}", i), v = fmt::format("v.{}", i);
    m.op(
        fmt::format("y.{} = attention %{}, %{}, %{}, %first, %slot "
                    "{{heads = 4, kv_heads = 4, scale = 0x1p-3}} : f16[1, 256]",
                    i, x, k, v));
    x = fmt::format("y.{}", i);
  }
  m.output(x);
  return m.text();
}

std::string states(int n) {
  ModuleText m = with_top();
  m.input("slot: i32[N]");
  for (int i = 0; i < n; ++i) {
    m.declare(fmt::format("state %k.{} : f32[4096, 256]", i));
    m.op(fmt::format("a.{} = kv_append %k.{}, %top, %slot : f32[4096, 256]", i, i));
  }
  m.output("top");
  return m.text();
}

/// A gradient's long formula behind a product, and its sum over the rows.
std::string summed_formula(int n) {
  const std::string type = "bf16[393216, 32]";
  ModuleText m;
  m.input("x: bf16[393216, 8]");
  m.input("w: bf16[32, 8]");
  m.input("h: " + type);
  m.op("v.0 = linear %x, %w : " + type);
  m.op("t = tanh %h : " + type);
  for (int i = 1; i <= n; ++i) m.op(fmt::format("v.{} = mul %v.{}, %t : {}", i, i - 1, type));
  m.op(fmt::format("sum = reduce_sum %v.{} {{axes = [0]}} : bf16[1, 32]", n));
  m.output("sum");
  return m.text();
}

/// Products with a gradient's formula behind each, and the sums over its rows.
std::string summed_products(int n) {
  ModuleText m;
  m.input("x: bf16[393216, 8]");
  m.input("h: bf16[393216, 32]");
  for (int i = 0; i < n; ++i) {
    m.declare(fmt::format("weight %w.{0} : bf16[32, 8] = file {{tensor = \"w.{0}\"}}", i));
    m.op(fmt::format("p.{0} = linear %x, %w.{0} : bf16[393216, 32]", i));
    m.op(fmt::format("g.{0} = gelu %p.{0} : bf16[393216, 32]", i));
    m.op(fmt::format("d.{0} = mul %g.{0}, %h : bf16[393216, 32]", i));
    m.op(fmt::format("s.{0} = reduce_sum %d.{0} {{axes = [0]}} : bf16[1, 32]", i));
    m.output(fmt::format("s.{}", i));
  }
  return m.text();
}

}  // namespace

const Shape kShapes[17] = {
    {"readers of one value, each an output", outputs},
    {"readers of one value, summed", sum},
    {"a chain whose every step reads one value", far_reads},
    {"reductions of rows", row_reductions},
    {"reductions of columns", column_reductions},
    {"readers of one weight", readers_of_a_weight},
    {"rows of many lengths", rows_of_many_lengths},
    {"slices of one value", slices},
    {"products of one value", linears},
    {"products of one value and few tokens", gemvs},
    {"outputs of many sizes", many_sizes},
    {"literals", literals},
    {"readers of a state", readers_of_a_state},
    {"versions of a state", versions_of_a_state},
    {"states with one update", states},
    {"a formula behind a product, and its sum", summed_formula},
    {"products with a formula and its sum", summed_products},
};

}  // namespace sinter::test
