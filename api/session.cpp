// Plans on a device, sessions and calls: handles of driver/calls.
#include "api/device.h"
#include "api/options.h"
#include "api/plan.h"
#include "driver/calls/bound_call.h"

struct sinter_executable {
  std::shared_ptr<const sinter::LoadedPlan> plan;
};

struct sinter_session {
  std::shared_ptr<sinter::CallSession> session;
  // Shared by the session and all its calls.
  std::shared_ptr<std::atomic<bool>> in_use = std::make_shared<std::atomic<bool>>(false);
};

struct sinter_call {
  std::unique_ptr<sinter::BoundCall> call;
  std::shared_ptr<std::atomic<bool>> in_use;
};

namespace sinter {
namespace {

/// The machine code that a stored plan has for the device.
Result<MachineCodeByText> machine_code_of(const sinter_plan& plan, const Device& device) {
  const auto& stored = plan.source.model.plan;
  if (!stored || !device.on_gpu()) return MachineCodeByText();
  return stored->machine_code_for(device.target());
}

Result<std::unique_ptr<sinter_executable>> load_plan(const sinter_plan& plan,
                                                     const sinter_device& device,
                                                     const sinter_weights* weights,
                                                     const sinter_options* options) {
  OptionReader reader(options);
  LoadPlanOptions load;
  SINTER_LET(tune, reader.flag("tune", false));
  SINTER_TRY(reader.finish());
  if (tune) load.products = GemmPolicy::tune;
  load.source = plan.source.model.tensors.get();
  if (weights) {
    load.host_weights = weights->host;
    load.device_weights = weights->device;
  }
  const Progress progress(options);
  load.progress = progress.weights();
  SINTER_LET(code, machine_code_of(plan, *device.device));
  load.machine_code = std::move(code);
  SINTER_LET(loaded, LoadedPlan::load(device.device, plan.program, load));
  return std::make_unique<sinter_executable>(sinter_executable{std::move(loaded)});
}

Result<std::map<std::string, int64_t>> sizes_of(const char* const* symbols, const int64_t* values,
                                                size_t count) {
  if (count > 0) {
    SINTER_TRY(require(symbols, "symbols"));
    SINTER_TRY(require(values, "values"));
  }
  std::map<std::string, int64_t> sizes;
  for (size_t i = 0; i < count; ++i) {
    SINTER_TRY(require(symbols[i], "symbols"));
    sizes[symbols[i]] = values[i];
  }
  return sizes;
}

Result<std::unique_ptr<sinter_session>> new_session(const sinter_executable* executable,
                                                    const char* const* symbols,
                                                    const int64_t* values, size_t count,
                                                    std::optional<void*> stream) {
  SINTER_TRY(require(executable, "executable"));
  SINTER_LET(sizes, sizes_of(symbols, values, count));
  SINTER_LET(session, CallSession::create(executable->plan, sizes, stream));
  return std::make_unique<sinter_session>(sinter_session{std::move(session)});
}

/// A function of a session or of one of its calls, none of which runs beside another.
template <typename Handle, typename Work>
sinter_error* with_handle(Handle* handle, const char* parameter, Work&& work) {
  if (!handle) return border([&] { return require(nullptr, parameter); });
  return border_in_turn(*handle->in_use, work);
}

}  // namespace
}  // namespace sinter

using namespace sinter;

sinter_error* sinter_load(const sinter_plan* plan, const sinter_device* device,
                          const sinter_weights* weights, const sinter_options* options,
                          sinter_executable** executable) {
  return make_handle(executable, [&]() -> Result<std::unique_ptr<sinter_executable>> {
    SINTER_TRY(require(plan, "plan"));
    SINTER_TRY(require(device, "device"));
    return load_plan(*plan, *device, weights, options);
  });
}

void sinter_executable_free(sinter_executable* executable) { free_handle(executable); }

sinter_error* sinter_session_create(const sinter_executable* executable, const char* const* symbols,
                                    const int64_t* values, size_t symbol_count,
                                    sinter_session** session) {
  return make_handle(session, [&] {
    return new_session(executable, symbols, values, symbol_count, std::nullopt);
  });
}

sinter_error* sinter_session_create_on_stream(const sinter_executable* executable,
                                              const char* const* symbols, const int64_t* values,
                                              size_t symbol_count, void* stream,
                                              sinter_session** session) {
  return make_handle(
      session, [&] { return new_session(executable, symbols, values, symbol_count, stream); });
}

sinter_error* sinter_session_create_beside(const sinter_session* other,
                                           const sinter_executable* executable,
                                           const char* const* symbols, const int64_t* values,
                                           size_t symbol_count, sinter_session** session) {
  return make_handle(session, [&]() -> Result<std::unique_ptr<sinter_session>> {
    SINTER_TRY(require(other, "other"));
    SINTER_TRY(require(executable, "executable"));
    SINTER_LET(sizes, sizes_of(symbols, values, symbol_count));
    SINTER_LET(made, CallSession::create_beside(*other->session, executable->plan, sizes));
    return std::make_unique<sinter_session>(sinter_session{std::move(made), other->in_use});
  });
}

void* sinter_session_stream(const sinter_session* session) {
  return session ? session->session->stream() : nullptr;
}

sinter_error* sinter_session_synchronize(sinter_session* session) {
  return with_handle(session, "session",
                     [&]() -> Status { return session->session->synchronize(); });
}

sinter_error* sinter_session_clear(sinter_session* session) {
  return with_handle(session, "session",
                     [&]() -> Status { return session->session->clear_states(); });
}

sinter_error* sinter_session_read_state(sinter_session* session, const char* name,
                                        const char* dtype, size_t rank, const int64_t* dims,
                                        const int64_t* strides, void* data) {
  return with_handle(session, "session", [&]() -> Status {
    SINTER_LET(view, view_of(name, dtype, rank, dims, strides, data));
    return session->session->read_state(name, view);
  });
}

void sinter_session_free(sinter_session* session) { free_handle(session); }

sinter_error* sinter_call_create(sinter_session* session, const char* entry, sinter_call** call) {
  return make_handle(call, [&]() -> Result<std::unique_ptr<sinter_call>> {
    SINTER_TRY(require(session, "session"));
    SINTER_TRY(require(entry, "entry"));
    SINTER_LET(made, BoundCall::create(session->session, entry));
    return std::make_unique<sinter_call>(sinter_call{std::move(made), session->in_use});
  });
}

sinter_error* sinter_call_symbol(sinter_call* call, const char* name, int64_t value) {
  return with_handle(call, "call", [&]() -> Status {
    SINTER_TRY(require(name, "name"));
    return call->call->set_symbol(name, value);
  });
}

sinter_error* sinter_call_input(sinter_call* call, const char* name, const char* dtype, size_t rank,
                                const int64_t* dims, const int64_t* strides, const void* data) {
  return with_handle(call, "call", [&]() -> Status {
    SINTER_LET(view, view_of(name, dtype, rank, dims, strides, const_cast<void*>(data)));
    return call->call->bind_input(name, view);
  });
}

sinter_error* sinter_call_output(sinter_call* call, const char* name, const char* dtype,
                                 size_t rank, const int64_t* dims, const int64_t* strides,
                                 void* data) {
  return with_handle(call, "call", [&]() -> Status {
    SINTER_LET(view, view_of(name, dtype, rank, dims, strides, data));
    return call->call->bind_output(name, view);
  });
}

sinter_error* sinter_call_state(sinter_call* call, const char* name, const char* dtype, size_t rank,
                                const int64_t* dims, const int64_t* strides, void* data) {
  return with_handle(call, "call", [&]() -> Status {
    SINTER_LET(view, view_of(name, dtype, rank, dims, strides, data));
    return call->call->bind_state(name, view);
  });
}

sinter_error* sinter_call_addresses(sinter_call* call, const void* const* inputs,
                                    size_t input_count, void* const* outputs, size_t output_count) {
  return with_handle(call, "call", [&]() -> Status {
    if (input_count > 0) SINTER_TRY(require(inputs, "inputs"));
    if (output_count > 0) SINTER_TRY(require(outputs, "outputs"));
    return call->call->set_addresses({inputs, input_count}, {outputs, output_count});
  });
}

sinter_error* sinter_call_output_dims(sinter_call* call, const char* name, size_t* rank,
                                      int64_t* dims) {
  return with_handle(call, "call", [&]() -> Status {
    SINTER_TRY(require(name, "name"));
    SINTER_TRY(require(rank, "rank"));
    SINTER_LET(extents, call->call->output_dims(name));
    const size_t room = *rank;
    *rank = extents.size();
    if (extents.size() > room)
      return fail(fmt::format("output {} has {} axes, there is room for {}", printable(name),
                              extents.size(), room),
                  {}, {}, ExitCode::usage);
    if (!extents.empty()) SINTER_TRY(require(dims, "dims"));
    std::copy(extents.begin(), extents.end(), dims);
    return {};
  });
}

sinter_error* sinter_call_prepare(sinter_call* call) {
  return with_handle(call, "call", [&]() -> Status { return call->call->prepare(); });
}

sinter_error* sinter_call_run(sinter_call* call) {
  return with_handle(call, "call", [&]() -> Status { return call->call->run(); });
}

sinter_error* sinter_call_allow_groups(sinter_call* call) {
  return with_handle(call, "call", [&]() -> Status {
    call->call->allow_groups();
    return {};
  });
}

sinter_error* sinter_call_lifetimes(sinter_call* call, size_t* steps, size_t* input_ends,
                                    size_t input_count, size_t* output_begins,
                                    size_t output_count) {
  return with_handle(call, "call", [&]() -> Status {
    SINTER_TRY(require(steps, "steps"));
    SINTER_LET(used, call->call->lifetimes());
    const auto give = [](const std::vector<size_t>& from, size_t* to, size_t count,
                         const char* name) -> Status {
      if (count != from.size())
        return fail(fmt::format("there is room for {}, the entry has {}", count, from.size()), name,
                    "give room for each", ExitCode::usage);
      if (count > 0) SINTER_TRY(require(to, name));
      std::copy(from.begin(), from.end(), to);
      return {};
    };
    SINTER_TRY(give(used->input_ends, input_ends, input_count, "input_ends"));
    SINTER_TRY(give(used->output_begins, output_begins, output_count, "output_begins"));
    SINTER_LET(count, call->call->step_count());
    *steps = count;
    return {};
  });
}

sinter_error* sinter_call_run_steps(sinter_call* call, size_t first, size_t last) {
  return with_handle(call, "call", [&]() -> Status { return call->call->run_steps(first, last); });
}

sinter_error* sinter_call_check(sinter_call* call) {
  return with_handle(call, "call", [&]() -> Status { return call->call->check(); });
}

void sinter_call_free(sinter_call* call) { free_handle(call); }
