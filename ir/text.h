// The text form of a module: canonical, so that print(parse(t)) == t for printed t, and
// parse(print(m)) == m but for the places of leaves and leaves that nothing uses.
//
//   module @llama {
//     symbol N in [1, 4096]
//     symbol K in [8, 4096] step 8
//     symbol L in [1, 64] at_most N
//     weight %embed.weight : f16[32000, 4096] = file {tensor = "model.embed_tokens.weight"}
//     weight %l0.qk.weight : f16[8192, 4096] = {
//       %q = file {tensor = "q"} : f16[4096, 4096]
//       %k = file {tensor = "k"} : f16[4096, 4096]
//       %qk = concat %q, %k {axis = 0} : f16[8192, 4096]
//       return %qk
//     }
//     state %l0.k_cache : f16[R, 4096]
//     entry @decode(%tokens: i32[N], %pos: i32[N]) -> (%logits) {
//       %embed = embedding %embed.weight, %tokens : f16[N, 4096]
//       %one = constant {value = 0x1p+0} : f32[]
//       ...
//     }
//   }
//
// Line ends mean nothing, `//` begins a comment. A name that is not [A-Za-z0-9_.]+ is quoted:
// %"a b", with the escapes \" \\ \n \t \xNN. Numbers are decimal; floating-point attributes print
// as hexadecimal floats, inf or nan and may be written in decimal. The type of an op states its
// attributes `dims` and `dtype` where the op requires them; they may be written out. An op without
// a type, `%b = neg %a`, gets the inferred one. An operand that names a weight or a state of the
// module becomes that leaf. A weight whose function is one op of the weight's own name needs no
// block.
#pragma once

#include "ir/graph.h"

namespace sinter {

std::string print_module(const Module& module);

/// A graph alone: "graph(%x: f16[N, 8]) -> (%y) {" and its ops; leaves other than inputs print as
/// ops, "%w = weight : f16[8]".
std::string print_graph(const Graph& graph, llvm::ArrayRef<Symbol> symbols);

/// Reads and verifies. Errors carry `file`:line:column; columns count bytes from 1.
Result<Module> parse_module(std::string_view text, std::string_view file);

/// Reads what print_graph prints and checks its ops; an op may write an input as a state.
Result<Graph> parse_graph(std::string_view text, std::string_view file,
                          llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
