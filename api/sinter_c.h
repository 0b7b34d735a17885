/* The C interface of Sinter: describe or open a model, compile it into a fused plan, ask why values
 * share a kernel, run the plan on the CPU or on a GPU with the caller's memory, context and stream,
 * generate text, verify, and bring kernels along. The functions of libsinter.so; sinter.h wraps
 * them for C++.
 *
 * Handles. A handle that a function creates through its last parameter belongs to the caller, who
 * gives it back to the ..._free function of its type; null is ignored there. Handles keep what they
 * need of one another: a plan may be freed while its sessions live. On an error the last parameter
 * is null. Null where a handle or another pointer is needed is an error; a function that returns no
 * error answers a null handle with null, 0, -1 or, of errors, "", and an index that is too large
 * likewise. What nobody can see: a handle that was freed, or freed twice; an address without the
 * memory that a shape says; a value of another graph.
 *
 * Errors. A function that can fail returns null for success or an error, which the caller frees
 * with sinter_error_free. No function throws, ends the process or changes the disposition of a
 * signal. A bug of the compiler is an error too (SINTER_CODE_INTERNAL_ERROR), and so is memory that
 * runs out (SINTER_CODE_OUT_OF_MEMORY), but where JSON is read or written (models and plans in
 * files, texts of a ledger): that may end the process.
 *
 * Threads. Functions on different handles may run at the same time. Models, plans, devices and
 * executables are immutable and may be used by several threads; every other handle by one thread
 * at a time, a session together with its calls, a module with its graphs, and a language model that
 * generates with its batches. Each of these, and an encoder, answers another thread with an error
 * (SINTER_CODE_USAGE) while it is in use; options, weights and kernels do not look. A language
 * model encodes and decodes texts on several threads, also while it generates. A handle may be
 * freed when no function that was given it runs any more: the library does not look.
 *
 * Callbacks may use other handles, and free none that the function which calls back was given; one
 * that uses such a handle is answered like another thread. A C++ exception that leaves a callback
 * is an error (SINTER_CODE_CANCELLED); of an evaluation it is a failure, of an allocator no memory.
 * A program whose callbacks need a runtime that ends before its threads do forbids them first
 * (sinter_allow_callbacks).
 *
 * Strings are UTF-8 and end with a zero. A `const char*` that a function returns belongs to the
 * handle that it was asked of and stays as long as that, unless its comment says otherwise. What
 * comes through a `char**` or `int32_t**` belongs to the caller, who gives it to sinter_free.
 *
 * Types are texts of Sinter's text form: "f16[N, 4096]" is an element type (f32, f16, bf16, i32,
 * i64, i1) and extents, each a number or the name of a symbol of the module.
 */
#ifndef SINTER_C_H
#define SINTER_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SINTER_API __attribute__((visibility("default")))
#define SINTER_MAY_FAIL __attribute__((visibility("default"), warn_unused_result))
#else
#define SINTER_API
#define SINTER_MAY_FAIL
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- version, errors, memory ------------------------------------------------------------- */

/** Version of the library that is loaded: "0.1.0". */
SINTER_API const char* sinter_version(void);

/** What went wrong. */
typedef struct sinter_error sinter_error;

/** Kinds of errors; the numbers are the exit codes of the program `sinter`. */
typedef enum sinter_code {
  SINTER_CODE_NONE = 0,           /**< no error: the code of null */
  SINTER_CODE_INTERNAL_ERROR = 1, /**< a bug of the compiler */
  SINTER_CODE_USAGE = 2,          /**< an argument or option that does not fit */
  SINTER_CODE_CHECK_FAILED = 3,   /**< a required fusion stayed apart, or results differ */
  SINTER_CODE_BAD_INPUT = 4,      /**< a file, text, shape or value that is not valid */
  SINTER_CODE_DEVICE = 5,         /**< no such device, or its driver failed */
  SINTER_CODE_OUT_OF_MEMORY = 6,  /**< of the host or the device */
  SINTER_CODE_CANCELLED = 7       /**< a callback asked to stop */
} sinter_code;

SINTER_API sinter_code sinter_error_code(const sinter_error* error);
/** One line: "where: what; hint". */
SINTER_API const char* sinter_error_message(const sinter_error* error);
/** What is wrong, with both values of a mismatch. */
SINTER_API const char* sinter_error_what(const sinter_error* error);
/** The file, argument, entry or value; may be "". */
SINTER_API const char* sinter_error_where(const sinter_error* error);
/** What to do next; may be "". */
SINTER_API const char* sinter_error_hint(const sinter_error* error);
SINTER_API void sinter_error_free(sinter_error* error);

/** Frees what a function gave through a `char**` or `int32_t**`; null is ignored. */
SINTER_API void sinter_free(void* memory);

/** `allow` 0: from now on no thread calls a callback. A function that would call one ends as if the
 *  callback had thrown, and memory that an allocator gave is not released. This waits until the
 *  callbacks that have begun return, at most 200 ms. For bindings of an interpreter that ends while
 *  threads are in the library: no callback enters it after this returns. Another value allows
 *  callbacks again, as they are at first. */
SINTER_API void sinter_allow_callbacks(int allow);

/** Facts of the text form as JSON, for programs that build modules. "limits": "axes" of a value,
 *  "gradient_width", the longest head whose attention has a gradient's kernel. "ops": for each op
 *  its "class" and the least and the most "operands". "codes": "chunk", the codes of a chunk,
 *  "lanes", the chunks of a round, "tail_bytes" of a packed row, and the "bits" of each code
 *  (ir/packed_codes.h has the layout). */
SINTER_MAY_FAIL sinter_error* sinter_facts(char** json);

/* ---- options ----------------------------------------------------------------------------- */

/** Names and values. Each function that takes options lists the names that it knows and refuses
 *  others; null stands for no options. */
typedef struct sinter_options sinter_options;

/** Called while something takes long: `stage` says what is done ("weights"), `done` of `total` are
 *  complete (bytes, kernels). Another value than 0 cancels: the function returns
 * SINTER_CODE_CANCELLED. It is called by the thread that called the function. */
typedef int (*sinter_progress)(void* user, const char* stage, int64_t done, int64_t total);

SINTER_MAY_FAIL sinter_error* sinter_options_create(sinter_options** options);
/** Sets or replaces a value. Numbers are decimal, flags "true" or "false". The name is looked up,
 *  and its value read, by the function that gets the options. */
SINTER_MAY_FAIL sinter_error* sinter_options_set(sinter_options* options, const char* name,
                                                 const char* value);
/** The values `a` and `b` must share a kernel (`required` not 0), or must not. For sinter_compile.
 */
SINTER_MAY_FAIL sinter_error* sinter_options_pair(sinter_options* options, int required,
                                                  const char* a, const char* b);
SINTER_API void sinter_options_progress(sinter_options* options, sinter_progress progress,
                                        void* user);
SINTER_API void sinter_options_free(sinter_options* options);

/* ---- building a module ------------------------------------------------------------------- */

/** A module under construction: symbols, weights, states, and entries with their graphs. */
typedef struct sinter_module sinter_module;
/** The graph of an entry of a module, which owns it. */
typedef struct sinter_graph sinter_graph;
/** A value of one graph. */
typedef uint32_t sinter_value;

SINTER_MAY_FAIL sinter_error* sinter_module_create(const char* name, sinter_module** module);
/** An extent that is known when an entry is called: low .. high, divisible by `multiple` (1: any),
 *  never larger than the symbol `at_most` (null: no such bound), which was added before. */
SINTER_MAY_FAIL sinter_error* sinter_module_symbol(sinter_module* module, const char* name,
                                                   int64_t low, int64_t high, int64_t multiple,
                                                   const char* at_most);
/** A weight of constant extents, which is the tensor of that name. */
SINTER_MAY_FAIL sinter_error* sinter_module_weight(sinter_module* module, const char* name,
                                                   const char* type);
/** Memory that a session keeps between calls, zeros at first. */
SINTER_MAY_FAIL sinter_error* sinter_module_state(sinter_module* module, const char* name,
                                                  const char* type);
SINTER_MAY_FAIL sinter_error* sinter_module_entry(sinter_module* module, const char* name,
                                                  sinter_graph** graph);
/** The module in the text form, whether it is complete or not. */
SINTER_MAY_FAIL sinter_error* sinter_module_text(const sinter_module* module, char** text);
SINTER_API void sinter_module_free(sinter_module* module);

/** A parameter of the entry. */
SINTER_MAY_FAIL sinter_error* sinter_graph_input(sinter_graph* graph, const char* name,
                                                 const char* type, sinter_value* value);
/** A weight or a state of the module as a value of this graph. */
SINTER_MAY_FAIL sinter_error* sinter_graph_use(sinter_graph* graph, const char* name,
                                               sinter_value* value);
/** Appends an op of the op table (ir/ops.def, docs/sir.md): "layer_norm" of `operands`.
 *  `attributes` have the text form without braces: "eps = 1e-5, axis = 1"; null: none. The type of
 *  the result is inferred. `name` may be null. A broken constraint is an error with its number. */
SINTER_MAY_FAIL sinter_error* sinter_graph_op(sinter_graph* graph, const char* op,
                                              const sinter_value* operands, size_t operand_count,
                                              const char* attributes, const char* name,
                                              sinter_value* value);
/** Gives an op's value another name, for a program that knows the last of several ops only when it
 *  has added it. Inputs, weights and states keep theirs. */
SINTER_MAY_FAIL sinter_error* sinter_graph_rename(sinter_graph* graph, sinter_value value,
                                                  const char* name);
/** Adds a result of the entry. */
SINTER_MAY_FAIL sinter_error* sinter_graph_output(sinter_graph* graph, sinter_value value);
/** The type of a value: "f16[N, 768]". */
SINTER_MAY_FAIL sinter_error* sinter_graph_type(const sinter_graph* graph, sinter_value value,
                                                char** type);

/* ---- models ------------------------------------------------------------------------------ */

/** A module and where its weights are. Immutable. */
typedef struct sinter_model sinter_model;

/** Opens a Hugging Face folder, a llama2.c file (.bin), a spec (.json), a module (.sir) or the
 *  folder of a plan. Reads no weights.
 *  Options: dtype (f32, f16, bf16), random-weights (a seed: stand-in weights), weights (safetensors
 *  file or folder to read instead of the model's own), context (tokens of the longest text), kv
 *  ("sink=4,window=1024": a streaming cache), sequences (that decode together at most, 1 to 256;
 *  usually 8), recompile (flag: of a plan take the module alone), ignore-key (keys of config.json
 * that are not known and change no result, commas between). */
SINTER_MAY_FAIL sinter_error* sinter_model_open(const char* path, const sinter_options* options,
                                                sinter_model** model);
/** Reads a module from its text form. `file` is the name in errors. */
SINTER_MAY_FAIL sinter_error* sinter_model_parse(const char* text, size_t size, const char* file,
                                                 sinter_model** model);
/** Verifies a module that was built, and copies it. */
SINTER_MAY_FAIL sinter_error* sinter_model_build(const sinter_module* module, sinter_model** model);
SINTER_API const char* sinter_model_name(const sinter_model* model);
/** The module before the passes, in the text form. */
SINTER_MAY_FAIL sinter_error* sinter_model_text(const sinter_model* model, char** text);
/** Tensors that the weights are made of: what sinter_weights must have if the model has no files.
 */
SINTER_API size_t sinter_model_tensor_count(const sinter_model* model);
/** Name of tensor `index`; null where there is none. */
SINTER_API const char* sinter_model_tensor_name(const sinter_model* model, size_t index);
/** Type of tensor `index`; null where there is none. */
SINTER_API const char* sinter_model_tensor_type(const sinter_model* model, size_t index);
SINTER_API void sinter_model_free(sinter_model* model);

/* ---- plans and the ledger ---------------------------------------------------------------- */

/** A compiled plan of all entries. Immutable. */
typedef struct sinter_plan sinter_plan;
/** A verdict of fusion about two values. */
typedef struct sinter_decision sinter_decision;

/** Compiles a model. Of a model that is the folder of a plan, the plan is taken as it is; options
 *  of the compilation are refused then.
 *  Options: target (a device: "sm_90a", the default; sinter_device_target), fuse (flag, true),
 *  numerics (strict, the default, or fast), attention (tiled, the default, composed or relaxed),
 *  products (of more than eight tokens: auto, the default, library or own), invariant (flag, false:
 *  a token's results do not depend, bit for bit, on the other sequences of a call, nor on how its
 *  text was cut into calls), entries ("prefill,decode"; the default: all),
 *  overwrite (pairs OUTPUT=INPUT, "p_1=p,m_1=m": calls want to bind the output to the input's
 *  memory; sinter_plan_may_share says whether they may), device-inputs (flag, true for modules: row
 *  numbers in inputs are checked by the kernels, so that inputs may be in device memory). Pairs of
 *  sinter_options_pair. Progress: stage "passes", "fusion". */
SINTER_MAY_FAIL sinter_error* sinter_compile(const sinter_model* model,
                                             const sinter_options* options, sinter_plan** plan);
/** Writes the folder of a plan, which must be absent, empty or hold a plan. It appears as a whole
 *  or not at all. Options: machine-code (architectures, "sm_80,sm_90a"; the default: none; needs
 *  NVRTC). Progress: stage "machine code". */
SINTER_MAY_FAIL sinter_error* sinter_plan_save(const sinter_plan* plan, const char* folder,
                                               const sinter_options* options);
SINTER_API void sinter_plan_free(sinter_plan* plan);

SINTER_API const char* sinter_plan_target(const sinter_plan* plan);
/** A text of the plan: "plan.json", "module" (after all passes), "ledger.json", "ledger.txt" (of
 *  all entries), "ledger.html", "ledger-with-module.html" (a page with the module's text). */
SINTER_MAY_FAIL sinter_error* sinter_plan_text(const sinter_plan* plan, const char* what,
                                               char** text);

/** Symbols whose values calls have. */
SINTER_API size_t sinter_plan_symbol_count(const sinter_plan* plan);
SINTER_API const char* sinter_plan_symbol_name(const sinter_plan* plan, size_t index);
SINTER_API void sinter_plan_symbol_range(const sinter_plan* plan, size_t index, int64_t* low,
                                         int64_t* high, int64_t* multiple);

/** States, which a session keeps between calls. */
SINTER_API size_t sinter_plan_state_count(const sinter_plan* plan);
SINTER_API const char* sinter_plan_state_name(const sinter_plan* plan, size_t state);
SINTER_API const char* sinter_plan_state_type(const sinter_plan* plan, size_t state);

SINTER_API size_t sinter_plan_entry_count(const sinter_plan* plan);
SINTER_API const char* sinter_plan_entry_name(const sinter_plan* plan, size_t entry);
/** Whether the entry is a variant: one of several of its name, which are for different values of a
 * symbol and stand one after the other. Then *symbol, *low and *high are the symbol's name, owned
 * by the plan, and the smallest and the largest value; each may be NULL. */
SINTER_API int sinter_plan_entry_range(const sinter_plan* plan, size_t entry, const char** symbol,
                                       int64_t* low, int64_t* high);
SINTER_API size_t sinter_plan_input_count(const sinter_plan* plan, size_t entry);
SINTER_API const char* sinter_plan_input_name(const sinter_plan* plan, size_t entry, size_t input);
SINTER_API const char* sinter_plan_input_type(const sinter_plan* plan, size_t entry, size_t input);
SINTER_API size_t sinter_plan_output_count(const sinter_plan* plan, size_t entry);
SINTER_API const char* sinter_plan_output_name(const sinter_plan* plan, size_t entry,
                                               size_t output);
SINTER_API const char* sinter_plan_output_type(const sinter_plan* plan, size_t entry,
                                               size_t output);
/** 1: a call may bind the output to the memory of the input, all of it, which the call then
 *  overwrites: no step reads the input after the step that writes the output. 0: the two must be
 *  apart. */
SINTER_API int sinter_plan_may_share(const sinter_plan* plan, size_t entry, size_t output,
                                     size_t input);

/** What a call of an entry costs. */
typedef struct sinter_costs sinter_costs;
/** Costs at the sizes of `symbols`, values by name. Symbols that are not named have usual values:
 *  512 tokens of a prefill, one of a decode step, 1024 rows of a cache. */
SINTER_MAY_FAIL sinter_error* sinter_plan_costs(const sinter_plan* plan, size_t entry,
                                                const char* const* symbols, const int64_t* values,
                                                size_t symbol_count, sinter_costs** costs);
/** Kernels, library calls and copies of a call. */
SINTER_API int64_t sinter_costs_launches(const sinter_costs* costs);
/** Distinct generated kernels among them. */
SINTER_API int64_t sinter_costs_kernels(const sinter_costs* costs);
/** Library calls among them. */
SINTER_API int64_t sinter_costs_products(const sinter_costs* costs);
/** Bytes that all launches read and write. */
SINTER_API int64_t sinter_costs_moved_bytes(const sinter_costs* costs);
/** Bytes of the memory for intermediate values. */
SINTER_API int64_t sinter_costs_arena_bytes(const sinter_costs* costs);
/** Seconds on the plan's target, by the cost model: its kernels and library calls one after the
 *  other. -1 for a plan that was opened from a folder. */
SINTER_API double sinter_costs_predicted_seconds(const sinter_costs* costs);
SINTER_API void sinter_costs_free(sinter_costs* costs);

/** The launches of an entry, in order. */
SINTER_API size_t sinter_plan_step_count(const sinter_plan* plan, size_t entry);
/** "kernel", "gemm" (a call of the library) or "copy"; null where there is no such step. */
SINTER_API const char* sinter_plan_step_kind(const sinter_plan* plan, size_t entry, size_t step);
/** Values that the step computes: "%norm, %sum". */
SINTER_API const char* sinter_plan_step_values(const sinter_plan* plan, size_t entry, size_t step);
/** The kernel that the step launches, an index of sinter_plan_kernel_...; -1: none. */
SINTER_API int64_t sinter_plan_step_kernel(const sinter_plan* plan, size_t entry, size_t step);

SINTER_API size_t sinter_plan_kernel_count(const sinter_plan* plan);
SINTER_API const char* sinter_plan_kernel_name(const sinter_plan* plan, size_t kernel);
/** CUDA C++ text. It includes headers of the library under "kernels/..." and "ir/...". Of a plan
 *  that was opened from a folder: "". */
SINTER_API const char* sinter_plan_kernel_source(const sinter_plan* plan, size_t kernel);

/** What fusion decided in an entry: acceptances in their order, then refusals. A plan that was
 *  opened from a folder is compiled again for this, once. */
SINTER_MAY_FAIL sinter_error* sinter_plan_decision_count(const sinter_plan* plan, size_t entry,
                                                         size_t* count);
/** Decision `index`; it belongs to the plan. Null where there is none, or before a count was asked.
 */
SINTER_API const sinter_decision* sinter_plan_decision(const sinter_plan* plan, size_t entry,
                                                       size_t index);
/** Why two values of an entry share a kernel or not. An error names the nearest names of a value
 *  that is not there. The decision is the caller's to free, with sinter_decision_free, which leaves
 *  decisions of sinter_plan_decision alone. */
SINTER_MAY_FAIL sinter_error* sinter_plan_why(const sinter_plan* plan, const char* entry,
                                              const char* a, const char* b,
                                              sinter_decision** decision);
SINTER_API void sinter_decision_free(sinter_decision* decision);
SINTER_API const char* sinter_decision_a(const sinter_decision* decision);
SINTER_API const char* sinter_decision_b(const sinter_decision* decision);
/** 1: they share a kernel. */
SINTER_API int sinter_decision_fused(const sinter_decision* decision);
/** An id that stays between versions: "convexity.path". */
SINTER_API const char* sinter_decision_reason(const sinter_decision* decision);
/** What the reason means: "a path leaves the kernel and comes back". */
SINTER_API const char* sinter_decision_text(const sinter_decision* decision);
/** The values and sizes that decided. */
SINTER_API const char* sinter_decision_detail(const sinter_decision* decision);
/** The witness of a refusal: values from one to the other. Of an answer of sinter_plan_why it leads
 *  through what stands between the two, whatever the reason. */
SINTER_API size_t sinter_decision_path_count(const sinter_decision* decision);
SINTER_API const char* sinter_decision_path(const sinter_decision* decision, size_t index);
/** The launch of the entry that computes value `index` of the path. Of answers of sinter_plan_why;
 *  else -1. */
SINTER_API int64_t sinter_decision_path_launch(const sinter_decision* decision, size_t index);
/** Of an answer of sinter_plan_why with others on the path: why the first two neighbours on it that
 *  share no kernel do not. Else null. It belongs to the answer. */
SINTER_API const sinter_decision* sinter_decision_first_refusal(const sinter_decision* decision);
/** Bytes of memory traffic that the fusion saves in a call of usual sizes. */
SINTER_API int64_t sinter_decision_saved_bytes(const sinter_decision* decision);
/** What the fusion saves, for people: "32.8 KB", "a launch". Empty where they share no kernel. */
SINTER_API const char* sinter_decision_savings(const sinter_decision* decision);
/** What would have to change for the two to share a kernel. Empty where nothing is known, and where
 *  they share one. */
SINTER_API const char* sinter_decision_change(const sinter_decision* decision);
/** The launch of the entry that computes value `which`, 0: the first, 1: the second. -1: none does,
 *  as for an input. */
SINTER_API int64_t sinter_decision_launch(const sinter_decision* decision, int which);

/* ---- devices, weights, sessions ---------------------------------------------------------- */

/** The CPU or a GPU. Immutable. */
typedef struct sinter_device sinter_device;
/** Tensors in the caller's memory. */
typedef struct sinter_weights sinter_weights;
/** A plan on a device, with its weights. Immutable. */
typedef struct sinter_executable sinter_executable;
/** States of one user, and a stream. */
typedef struct sinter_session sinter_session;
/** An entry of a session with its tensors bound. */
typedef struct sinter_call sinter_call;

/** Memory of a device: `bytes` of it, aligned to at least 256 bytes, or null if there is none left.
 *  `stream` is the stream of the session whose memory it is, null for memory that sessions share.
 */
typedef void* (*sinter_allocate)(void* user, size_t bytes, void* stream);
typedef void (*sinter_release)(void* user, void* memory, size_t bytes, void* stream);

/** "cpu", "cuda" (the first GPU), "cuda:N", or "auto": the first GPU, else the CPU. A GPU is used
 * in its primary context. */
SINTER_MAY_FAIL sinter_error* sinter_device_open(const char* name, sinter_device** device);
/** A GPU in the caller's context (a CUcontext; null: the primary context of device `ordinal`), with
 *  the caller's allocator of device memory (both functions, or null for the driver's own). Context
 *  and allocator must outlive all that lives on the device. */
SINTER_MAY_FAIL sinter_error* sinter_device_open_cuda(int ordinal, void* context,
                                                      sinter_allocate allocate,
                                                      sinter_release release, void* user,
                                                      sinter_device** device);
/** "cpu", "cuda:0 (NVIDIA H200)" */
SINTER_API const char* sinter_device_name(const sinter_device* device);
/** What to compile for (option `target`); of the CPU "". */
SINTER_API const char* sinter_device_target(const sinter_device* device);
SINTER_API void sinter_device_free(sinter_device* device);

SINTER_MAY_FAIL sinter_error* sinter_weights_create(sinter_weights** weights);
/** A tensor of element type `dtype` ("f16") and `rank` extents at `data`: host memory, or memory of
 *  the device if `on_device`. Strides are in elements; null: dense, the last axis innermost.
 *  Memory of the host must stay until sinter_load returns. Memory of the device must stay as long
 *  as the executable: a weight that is such a tensor is used where it is. */
SINTER_MAY_FAIL sinter_error* sinter_weights_add(sinter_weights* weights, const char* name,
                                                 const char* dtype, size_t rank,
                                                 const int64_t* dims, const int64_t* strides,
                                                 const void* data, int on_device);
SINTER_API void sinter_weights_free(sinter_weights* weights);

/** Loads a plan: compiles what machine code is missing and computes the weights from the model's
 *  files and from `weights` (may be null), which come first. Options: tune (flag, false: on a GPU
 * the library's implementations of each matrix product are timed when a call of new sizes is
 * prepared, and the fastest is taken, for all plans that are loaded so on this device; another
 * process may choose another one, whose sums have another order). Progress: stage "weights", bytes.
 */
SINTER_MAY_FAIL sinter_error* sinter_load(const sinter_plan* plan, const sinter_device* device,
                                          const sinter_weights* weights,
                                          const sinter_options* options,
                                          sinter_executable** executable);
SINTER_API void sinter_executable_free(sinter_executable* executable);

/** States are zeros. `symbols` gives values to the symbols in types of states. On a GPU the session
 *  makes a stream of its own. */
SINTER_MAY_FAIL sinter_error* sinter_session_create(const sinter_executable* executable,
                                                    const char* const* symbols,
                                                    const int64_t* values, size_t symbol_count,
                                                    sinter_session** session);
/** The same on the caller's stream (a CUstream; null is the legacy default stream), which must
 *  outlive the session. On the CPU an error. */
SINTER_MAY_FAIL sinter_error* sinter_session_create_on_stream(const sinter_executable* executable,
                                                              const char* const* symbols,
                                                              const int64_t* values,
                                                              size_t symbol_count, void* stream,
                                                              sinter_session** session);
/** The same on the stream of `other`, whose memory of intermediate values it shares: as much as the
 *  largest call of both needs. States are apart. One thread at a time uses the two sessions; where
 *  `other` made its stream, it must outlive this one. CUDA graphs of calls of both, and of several
 *  calls of one session, work in the same memory and must not run at the same time. */
SINTER_MAY_FAIL sinter_error* sinter_session_create_beside(
    const sinter_session* other, const sinter_executable* executable, const char* const* symbols,
    const int64_t* values, size_t symbol_count, sinter_session** session);
/** The session's CUstream; null on the CPU. */
SINTER_API void* sinter_session_stream(const sinter_session* session);
/** Waits for the calls made so far. */
SINTER_MAY_FAIL sinter_error* sinter_session_synchronize(sinter_session* session);
/** Sets the states to zeros again. */
SINTER_MAY_FAIL sinter_error* sinter_session_clear(sinter_session* session);
/** Copies a state to host memory of its type and extents, with any strides (in elements; null:
 *  dense). Waits. */
SINTER_MAY_FAIL sinter_error* sinter_session_read_state(sinter_session* session, const char* name,
                                                        const char* dtype, size_t rank,
                                                        const int64_t* dims, const int64_t* strides,
                                                        void* data);
/** Waits for the session's work on a GPU. */
SINTER_API void sinter_session_free(sinter_session* session);

SINTER_MAY_FAIL sinter_error* sinter_call_create(sinter_session* session, const char* entry,
                                                 sinter_call** call);
/** Gives a symbol its value. Other symbols take the values of the inputs' shapes. */
SINTER_MAY_FAIL sinter_error* sinter_call_symbol(sinter_call* call, const char* name,
                                                 int64_t value);
/** Binds memory to an input: host memory on the CPU, with any strides (in elements; null: dense),
 *  dense device memory on a GPU. The memory must hold the value while the call runs. An input may
 *  be bound anew between runs. Bytes of i1 are 0 and 1: another one in host memory is an error
 *  of sinter_call_run; in device memory nobody looks, and what is computed of it is wrong. */
SINTER_MAY_FAIL sinter_error* sinter_call_input(sinter_call* call, const char* name,
                                                const char* dtype, size_t rank, const int64_t* dims,
                                                const int64_t* strides, const void* data);
/** Binds memory to an output, in the same way. Every output needs its own memory, or on a GPU an
 *  input's memory if sinter_plan_may_share is 1; on the CPU it may always be memory of inputs. */
SINTER_MAY_FAIL sinter_error* sinter_call_output(sinter_call* call, const char* name,
                                                 const char* dtype, size_t rank,
                                                 const int64_t* dims, const int64_t* strides,
                                                 void* data);
/** Binds memory to a state, in the same way: the call reads and writes it there, in place, and
 * leaves the session's own alone. A session whose calls have memory for all of their states
 * allocates none. */
SINTER_MAY_FAIL sinter_error* sinter_call_state(sinter_call* call, const char* name,
                                                const char* dtype, size_t rank, const int64_t* dims,
                                                const int64_t* strides, void* data);
/** Moves all inputs and outputs to other memory, in the order of sinter_plan_input_name and
 *  sinter_plan_output_name, with the types, extents and strides that they are bound with. A
 * prepared call stays prepared, and this takes microseconds. Memory is checked as when it is bound;
 * on an error nothing moves. A CUDA graph keeps the addresses with which it was captured. */
SINTER_MAY_FAIL sinter_error* sinter_call_addresses(sinter_call* call, const void* const* inputs,
                                                    size_t input_count, void* const* outputs,
                                                    size_t output_count);
/** Extents of an output for the symbol values known so far. `*rank` is the room in `dims`, and
 *  becomes the rank; an error if there is too little room. */
SINTER_MAY_FAIL sinter_error* sinter_call_output_dims(sinter_call* call, const char* name,
                                                      size_t* rank, int64_t* dims);
/** Does all that sinter_call_run needs and must not do while a graph is captured: looks at shapes,
 *  allocates the arena, chooses algorithms. sinter_call_run does it too, where it was not done. */
SINTER_MAY_FAIL sinter_error* sinter_call_prepare(sinter_call* call);
/** Runs the entry. On the CPU it has ended when this returns. On a GPU its kernels are enqueued in
 *  the session's stream; a prepared call allocates nothing, waits for nothing and copies nothing
 *  (but an output that is an input, weight or state), so that it may be captured in a CUDA graph.
 */
SINTER_MAY_FAIL sinter_error* sinter_call_run(sinter_call* call);
/** From now on the call's steps may run in groups (sinter_call_run_steps), and a tensor may be
 *  bound without memory (null) as long as no step that runs needs it. An output's memory then holds
 *  nothing but the output, so that the arena may be larger. */
SINTER_MAY_FAIL sinter_error* sinter_call_allow_groups(sinter_call* call);
/** The number of the call's steps, and when they use the memory of its tensors: `input_ends[i]`
 *  steps have run when input i is not read any more, and no step before `output_begins[i]` writes
 *  in the memory of output i (`*steps`: it is copied behind the last one). The counts are the
 *  numbers of the entry's inputs and outputs. Prepares the call. On the CPU a call is one step. */
SINTER_MAY_FAIL sinter_error* sinter_call_lifetimes(sinter_call* call, size_t* steps,
                                                    size_t* input_ends, size_t input_count,
                                                    size_t* output_begins, size_t output_count);
/** sinter_call_run for the steps from `first` to `last`, without the latter. The groups of a call
 *  follow one another, the first one begins with step 0, and no other call of the session, or of
 *  one beside it, comes between. In between, sinter_call_addresses may give memory to outputs that
 *  are not written yet, and take memory (null) from inputs that are not read any more: it may hold
 *  an output of a later group. Every input that any step is still to read has memory, and an output
 *  stays where it is from the group that writes it first to the end. */
SINTER_MAY_FAIL sinter_error* sinter_call_run_steps(sinter_call* call, size_t first, size_t last);
/** On a GPU: waits, and returns an error if a row number of the last run names no row. On the CPU
 *  sinter_call_run has said so. */
SINTER_MAY_FAIL sinter_error* sinter_call_check(sinter_call* call);
SINTER_API void sinter_call_free(sinter_call* call);

/* ---- language models --------------------------------------------------------------------- */

/** A decoder-only language model on a device, compiled and loaded, with its tokenizer if it has
 *  one. */
typedef struct sinter_language_model sinter_language_model;

/** Compiles and loads. Options: as sinter_model_open and sinter_compile, and chat-template (the
 *  format of chats, "chatml"; the default: what the model's files say). Progress: stages "model",
 *  and "weights" in bytes. */
SINTER_MAY_FAIL sinter_error* sinter_language_model_open(const char* path,
                                                         const sinter_device* device,
                                                         const sinter_options* options,
                                                         sinter_language_model** model);
/** Token ids of a text, with the special tokens that begin one. */
SINTER_MAY_FAIL sinter_error* sinter_language_model_encode(const sinter_language_model* model,
                                                           const char* text, int32_t** tokens,
                                                           size_t* token_count);
/** Token ids of a message in the model's chat format, after a system message (null: none). `*end`
 *  becomes the token that ends the answer, for the option `end`; -1: the format has none. */
SINTER_MAY_FAIL sinter_error* sinter_language_model_encode_chat(const sinter_language_model* model,
                                                                const char* system,
                                                                const char* message,
                                                                int32_t** tokens,
                                                                size_t* token_count, int32_t* end);
/** The text of token ids, without special tokens, up to its first NUL. */
SINTER_MAY_FAIL sinter_error* sinter_language_model_decode(const sinter_language_model* model,
                                                           const int32_t* tokens,
                                                           size_t token_count, char** text);
/** All of it: `*size` bytes, which may be NUL, and a NUL behind them. */
SINTER_MAY_FAIL sinter_error* sinter_language_model_decode_all(const sinter_language_model* model,
                                                               const int32_t* tokens,
                                                               size_t token_count, char** text,
                                                               size_t* size);

/** A token of sequence `sequence`, and the text that is certain with it ("" while a character is
 *  unfinished, or if there is no tokenizer), which stays during the call alone. Another value than
 * 0 ends the generation without an error. */
typedef int (*sinter_on_token)(void* user, size_t sequence, int32_t token, const char* text);
/** The same; the text has `size` bytes, which may be NUL, and a NUL behind them. */
typedef int (*sinter_on_text)(void* user, size_t sequence, int32_t token, const char* text,
                              size_t size);

/** Continues `prompt_count` prompts, prompt i of `lengths[i]` tokens. Options: count (tokens for
 *  each at most, 64), temperature (0: the likeliest token; without one: 1 where top-k, top-p or
 *  seed is given, else 0), top-k, top-p, seed, stop-at-end (flag, true: a sequence ends at an end
 *  token of the model, which is not given), end (ids of further tokens that end one, "2,7"),
 *  activation-memory ("2GB": what the intermediate values of a call may take at most; longer
 * prompts are fed in several calls), prefill-chunk (tokens of prompts that a call takes at most).
 * Progress: stage "prompts", tokens. An error with exit code 3 if logits are not finite. */
SINTER_MAY_FAIL sinter_error* sinter_language_model_generate(
    sinter_language_model* model, const int32_t* const* prompts, const size_t* lengths,
    size_t prompt_count, const sinter_options* options, sinter_on_token on_token, void* user);
/** As sinter_language_model_generate. */
SINTER_MAY_FAIL sinter_error* sinter_language_model_generate_text(
    sinter_language_model* model, const int32_t* const* prompts, const size_t* lengths,
    size_t prompt_count, const sinter_options* options, sinter_on_text on_text, void* user);
SINTER_API void sinter_language_model_free(sinter_language_model* model);

/** Sequences of a language model that decode together and come and go, each in a place of the
 *  caches. What a sequence is continued by does not depend on its place, unless a stored plan's
 *  caches have no room for places of whole steps of 128 rows. It depends on the others only through
 *  the number of sequences of a step, which decides how products round: with the usual options 1 to
 *  8 are alike on a CPU and 2 to 8 on a GPU, and so are 9 to 64 of a 16-bit model on a Hopper GPU;
 *  above, a library's products may round each number and each row differently. A model with its
 *  batches serves one thread at a time. The model may be freed before it. */
typedef struct sinter_batch sinter_batch;

/** `places` sequences at a time, as many at most as the model was opened for (option `sequences`),
 *  each of up to `capacity` tokens, prompt and continuation. Takes the memory of all caches.
 *  Options: activation-memory, prefill-chunk, as of sinter_language_model_generate. */
SINTER_MAY_FAIL sinter_error* sinter_batch_create(const sinter_language_model* model, size_t places,
                                                  int64_t capacity, const sinter_options* options,
                                                  sinter_batch** batch);
/** Feeds a prompt into a free place; `*sequence` becomes the number of the sequence, which no other
 *  of the batch has. An error if all places are taken. Options: temperature, top-k, top-p, seed, as
 *  of sinter_language_model_generate.
 *  Progress: stage "prompts", tokens; a cancelled prompt leaves the place free. */
SINTER_MAY_FAIL sinter_error* sinter_batch_add(sinter_batch* batch, const int32_t* tokens,
                                               size_t token_count, const sinter_options* options,
                                               int64_t* sequence);
/** Frees the place of a sequence. */
SINTER_MAY_FAIL sinter_error* sinter_batch_remove(sinter_batch* batch, int64_t sequence);
/** Chooses the next token of each sequence: tokens[i] belongs to sequences[i], in the order in
 * which they were added. `*count` is the room in both, and becomes the number of sequences. An
 * error, which leaves all sequences as they are, if one fills its place or has logits that are not
 * finite: remove it. */
SINTER_MAY_FAIL sinter_error* sinter_batch_step(sinter_batch* batch, int64_t* sequences,
                                                int32_t* tokens, size_t* count);
/** Any thread may ask, and a callback. */
SINTER_API size_t sinter_batch_free_places(const sinter_batch* batch);
SINTER_API void sinter_batch_free(sinter_batch* batch);

/* ---- encoders ---------------------------------------------------------------------------- */

/** An encoder of texts, such as BERT, on a device, compiled and loaded, with its tokenizer. One
 *  thread at a time. */
typedef struct sinter_encoder sinter_encoder;

/** Compiles and loads. Options: as sinter_model_open and sinter_compile, pooling ("mean" or "cls";
 *  the default: what the model's modules.json says, else "mean"), and normalize (flag:
 * vectors of length 1; the default: what modules.json says, else false). Progress: stages "model",
 * and "weights" in bytes. */
SINTER_MAY_FAIL sinter_error* sinter_encoder_open(const char* path, const sinter_device* device,
                                                  const sinter_options* options,
                                                  sinter_encoder** encoder);
/** Numbers of a vector. */
SINTER_API size_t sinter_encoder_width(const sinter_encoder* encoder);
/** The prompts of the model's config_sentence_transformers.json: {"prompts": {NAME: TEXT},
 *  "default_prompt_name": NAME or null}. Free `*json` with sinter_free. */
SINTER_MAY_FAIL sinter_error* sinter_encoder_prompts(const sinter_encoder* encoder, char** json);
/** Writes a vector for each of `count` texts, one after the other, to `vectors`, which has room for
 *  `count` times the width. Options: prompt (a text that is put before each text; "": none) or
 *  prompt-name (a prompt of the model; neither: its default prompt, where it has one), truncate
 *  (flag, false: a text of more tokens than the model takes is an error; true: it keeps its first
 *  ones) and activation-memory, as sinter_language_model_generate has it. `*cut`, unless null,
 *  becomes the number of texts that were truncated. */
SINTER_MAY_FAIL sinter_error* sinter_encoder_encode(sinter_encoder* encoder,
                                                    const char* const* texts, size_t count,
                                                    const sinter_options* options, float* vectors,
                                                    size_t* cut);
SINTER_API void sinter_encoder_free(sinter_encoder* encoder);

/* ---- verifying --------------------------------------------------------------------------- */

/** What a comparison of the fused and the unfused plan found. */
typedef struct sinter_report sinter_report;

/** Calls every entry of a module in one session on random inputs, fused beside unfused, bit for bit
 *  (fast numerics: within their bounds), and beside float64 where that takes no time. A broken
 *  promise is no error but a report that has not passed. Options: seed, numerics, target, repeat
 *  (calls of the list of entries), and `symbol.NAME` for the value of a symbol. */
SINTER_MAY_FAIL sinter_error* sinter_verify(const sinter_model* model, const sinter_device* device,
                                            const sinter_weights* weights,
                                            const sinter_options* options, sinter_report** report);
SINTER_API int sinter_report_passed(const sinter_report* report);
/** The first value that differs, and how; "" if none does. */
SINTER_API const char* sinter_report_difference(const sinter_report* report);
/** Values and elements that were compared. */
SINTER_API int64_t sinter_report_values(const sinter_report* report);
SINTER_API int64_t sinter_report_elements(const sinter_report* report);
SINTER_API int64_t sinter_report_fused_launches(const sinter_report* report);
SINTER_API int64_t sinter_report_unfused_launches(const sinter_report* report);
/** Largest absolute error of an output of the fused and of the unfused plan against float64; -1
 *  where it was not measured. */
SINTER_API double sinter_report_fused_error(const sinter_report* report);
SINTER_API double sinter_report_unfused_error(const sinter_report* report);
SINTER_API void sinter_report_free(sinter_report* report);

/** Which fusions of a module change a result: JSON with the members `verdict` ("right", "fusion",
 *  "choice" or "other"), `guilty` and others, as `sinter bisect --json` prints it, and `text`, the
 *  same for people. A wrong plan is no error. A module whose weights the model lacks is an error.
 *  Options: as sinter_compile; inputs, reference and max-error as the program's (a file of tensors,
 *  the same, a number), slower-than, seed, repeats, jobs, state, output (a folder for the
 *  reproducer; default: none), and `symbol.NAME`. Progress: stages as the program shows them. */
SINTER_MAY_FAIL sinter_error* sinter_bisect(const sinter_model* model, const sinter_device* device,
                                            const sinter_options* options, char** report);

/* ---- kernels of the caller --------------------------------------------------------------- */

/** A kernel that the caller brings, as an op `custom {op = "NAME"}`. */
typedef struct sinter_kernel sinter_kernel;
/** The operands and the result of one evaluation on the host; stays during the callback alone. */
typedef struct sinter_evaluation sinter_evaluation;
/** Computes the result; 0 for success. May be called by several threads at the same time. */
typedef int (*sinter_evaluate)(void* user, const sinter_evaluation* evaluation);

/** `name`: letters, digits, '_' and '.', unique in the process. `signature`: the shape rule,
 *  "x: float[..., D], w: x[D] -> x[..., D]". `source`: CUDA text with a __device__ function
 * template called `function`. docs/embedding.md explains both. */
SINTER_MAY_FAIL sinter_error* sinter_kernel_create(const char* name, const char* signature,
                                                   const char* source, const char* function,
                                                   sinter_kernel** kernel);
/** A block of `threads` threads and `shared_bytes` bytes of dynamic shared memory computes one row:
 *  the result's first `row_axes` axes number the rows. */
SINTER_API void sinter_kernel_launch(sinter_kernel* kernel, int64_t threads, int64_t row_axes,
                                     int64_t shared_bytes);
/** Neighbours in the graph may compute operand `operand` element by element where it is read. */
SINTER_MAY_FAIL sinter_error* sinter_kernel_open_operand(sinter_kernel* kernel, size_t operand);
/** Neighbours may take the result element by element as it is set. */
SINTER_API void sinter_kernel_open_result(sinter_kernel* kernel);
/** The op has `count` numbers in its attribute `numbers`. */
SINTER_API void sinter_kernel_numbers(sinter_kernel* kernel, size_t count);
/** The host evaluation. `tolerance` is 0 if it gives the bits of the kernel, which follows the same
 *  order of operations; else how far they may be apart, relative to the largest element. */
SINTER_API void sinter_kernel_evaluation(sinter_kernel* kernel, sinter_evaluate evaluate,
                                         void* user, double tolerance);
/** Registers the kernel for the whole process, until it ends; `evaluate` and its `user` must stay
 * as long. A name that another kernel has is an error. */
SINTER_MAY_FAIL sinter_error* sinter_kernel_register(const sinter_kernel* kernel);
SINTER_API void sinter_kernel_free(sinter_kernel* kernel);

/** 1: float elements are double, of higher precision than the kernel's; 0: they are float. */
SINTER_API int sinter_evaluation_precise(const sinter_evaluation* evaluation);
SINTER_API size_t sinter_evaluation_operand_count(const sinter_evaluation* evaluation);
/** Operand `index`, or with `index` the number of operands the result: its extents. */
SINTER_API size_t sinter_evaluation_rank(const sinter_evaluation* evaluation, size_t index);
SINTER_API const int64_t* sinter_evaluation_dims(const sinter_evaluation* evaluation, size_t index);
/** Dense elements: float or double for every float type, int32_t for i32, int64_t for
 * i64, uint8_t for i1. */
SINTER_API const void* sinter_evaluation_operand(const sinter_evaluation* evaluation, size_t index);
/** Where the result goes, dense; float types are rounded to the element type afterwards. */
SINTER_API void* sinter_evaluation_result(const sinter_evaluation* evaluation);
/** Number `index` of the attribute `numbers`. */
SINTER_API double sinter_evaluation_number(const sinter_evaluation* evaluation, size_t index);

#ifdef __cplusplus
}
#endif

#endif
