"""api/sinter_c.h for ctypes, and the library. Written by make_bindings.py."""

from __future__ import annotations

import enum
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
)
from typing import Any

from sinter._library import Library
from sinter.integers import Address, Integer, Integers


class sinter_error(c_void_p):
    pass


class sinter_options(c_void_p):
    pass


class sinter_module(c_void_p):
    pass


class sinter_graph(c_void_p):
    pass


class sinter_model(c_void_p):
    pass


class sinter_plan(c_void_p):
    pass


class sinter_decision(c_void_p):
    pass


class sinter_costs(c_void_p):
    pass


class sinter_device(c_void_p):
    pass


class sinter_weights(c_void_p):
    pass


class sinter_executable(c_void_p):
    pass


class sinter_session(c_void_p):
    pass


class sinter_call(c_void_p):
    pass


class sinter_language_model(c_void_p):
    pass


class sinter_batch(c_void_p):
    pass


class sinter_encoder(c_void_p):
    pass


class sinter_report(c_void_p):
    pass


class sinter_kernel(c_void_p):
    pass


class sinter_evaluation(c_void_p):
    pass


class Code(enum.IntEnum):
    NONE = 0
    INTERNAL_ERROR = 1
    USAGE = 2
    CHECK_FAILED = 3
    BAD_INPUT = 4
    DEVICE = 5
    OUT_OF_MEMORY = 6
    CANCELLED = 7


sinter_value = c_uint32
sinter_progress = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int64, c_int64)
sinter_allocate = CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)
sinter_release = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_void_p)
sinter_on_token = CFUNCTYPE(c_int, c_void_p, c_size_t, c_int32, c_char_p)
sinter_on_text = CFUNCTYPE(c_int, c_void_p, c_size_t, c_int32, c_void_p, c_size_t)
sinter_evaluate = CFUNCTYPE(c_int, c_void_p, sinter_evaluation)

FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "sinter_version": (c_char_p, []),
    "sinter_error_code": (c_int, [sinter_error]),
    "sinter_error_message": (c_char_p, [sinter_error]),
    "sinter_error_what": (c_char_p, [sinter_error]),
    "sinter_error_where": (c_char_p, [sinter_error]),
    "sinter_error_hint": (c_char_p, [sinter_error]),
    "sinter_error_free": (None, [sinter_error]),
    "sinter_free": (None, [Address("memory")]),
    "sinter_allow_callbacks": (None, [Integer(c_int, "allow")]),
    "sinter_facts": (sinter_error, [POINTER(c_void_p)]),
    "sinter_options_create": (sinter_error, [POINTER(sinter_options)]),
    "sinter_options_set": (sinter_error, [sinter_options, c_char_p, c_char_p]),
    "sinter_options_pair": (
        sinter_error,
        [sinter_options, Integer(c_int, "required"), c_char_p, c_char_p],
    ),
    "sinter_options_progress": (None, [sinter_options, sinter_progress, Address("user")]),
    "sinter_options_free": (None, [sinter_options]),
    "sinter_module_create": (sinter_error, [c_char_p, POINTER(sinter_module)]),
    "sinter_module_symbol": (
        sinter_error,
        [sinter_module, c_char_p, Integer(c_int64, "low"), Integer(c_int64, "high"), Integer(c_int64, "multiple"), c_char_p],
    ),
    "sinter_module_weight": (sinter_error, [sinter_module, c_char_p, c_char_p]),
    "sinter_module_state": (sinter_error, [sinter_module, c_char_p, c_char_p]),
    "sinter_module_entry": (sinter_error, [sinter_module, c_char_p, POINTER(sinter_graph)]),
    "sinter_module_text": (sinter_error, [sinter_module, POINTER(c_void_p)]),
    "sinter_module_free": (None, [sinter_module]),
    "sinter_graph_input": (sinter_error, [sinter_graph, c_char_p, c_char_p, POINTER(c_uint32)]),
    "sinter_graph_use": (sinter_error, [sinter_graph, c_char_p, POINTER(c_uint32)]),
    "sinter_graph_op": (
        sinter_error,
        [sinter_graph, c_char_p, Integers(c_uint32, "operands"), Integer(c_size_t, "operand_count"), c_char_p, c_char_p, POINTER(c_uint32)],
    ),
    "sinter_graph_rename": (sinter_error, [sinter_graph, Integer(c_uint32, "value"), c_char_p]),
    "sinter_graph_output": (sinter_error, [sinter_graph, Integer(c_uint32, "value")]),
    "sinter_graph_type": (
        sinter_error,
        [sinter_graph, Integer(c_uint32, "value"), POINTER(c_void_p)],
    ),
    "sinter_model_open": (sinter_error, [c_char_p, sinter_options, POINTER(sinter_model)]),
    "sinter_model_parse": (
        sinter_error,
        [c_char_p, Integer(c_size_t, "size"), c_char_p, POINTER(sinter_model)],
    ),
    "sinter_model_build": (sinter_error, [sinter_module, POINTER(sinter_model)]),
    "sinter_model_name": (c_char_p, [sinter_model]),
    "sinter_model_text": (sinter_error, [sinter_model, POINTER(c_void_p)]),
    "sinter_model_tensor_count": (c_size_t, [sinter_model]),
    "sinter_model_tensor_name": (c_char_p, [sinter_model, Integer(c_size_t, "index")]),
    "sinter_model_tensor_type": (c_char_p, [sinter_model, Integer(c_size_t, "index")]),
    "sinter_model_free": (None, [sinter_model]),
    "sinter_compile": (sinter_error, [sinter_model, sinter_options, POINTER(sinter_plan)]),
    "sinter_plan_save": (sinter_error, [sinter_plan, c_char_p, sinter_options]),
    "sinter_plan_free": (None, [sinter_plan]),
    "sinter_plan_target": (c_char_p, [sinter_plan]),
    "sinter_plan_text": (sinter_error, [sinter_plan, c_char_p, POINTER(c_void_p)]),
    "sinter_plan_symbol_count": (c_size_t, [sinter_plan]),
    "sinter_plan_symbol_name": (c_char_p, [sinter_plan, Integer(c_size_t, "index")]),
    "sinter_plan_symbol_range": (
        None,
        [sinter_plan, Integer(c_size_t, "index"), POINTER(c_int64), POINTER(c_int64), POINTER(c_int64)],
    ),
    "sinter_plan_state_count": (c_size_t, [sinter_plan]),
    "sinter_plan_state_name": (c_char_p, [sinter_plan, Integer(c_size_t, "state")]),
    "sinter_plan_state_type": (c_char_p, [sinter_plan, Integer(c_size_t, "state")]),
    "sinter_plan_entry_count": (c_size_t, [sinter_plan]),
    "sinter_plan_entry_name": (c_char_p, [sinter_plan, Integer(c_size_t, "entry")]),
    "sinter_plan_entry_range": (
        c_int,
        [sinter_plan, Integer(c_size_t, "entry"), POINTER(c_char_p), POINTER(c_int64), POINTER(c_int64)],
    ),
    "sinter_plan_input_count": (c_size_t, [sinter_plan, Integer(c_size_t, "entry")]),
    "sinter_plan_input_name": (
        c_char_p,
        [sinter_plan, Integer(c_size_t, "entry"), Integer(c_size_t, "input")],
    ),
    "sinter_plan_input_type": (
        c_char_p,
        [sinter_plan, Integer(c_size_t, "entry"), Integer(c_size_t, "input")],
    ),
    "sinter_plan_output_count": (c_size_t, [sinter_plan, Integer(c_size_t, "entry")]),
    "sinter_plan_output_name": (
        c_char_p,
        [sinter_plan, Integer(c_size_t, "entry"), Integer(c_size_t, "output")],
    ),
    "sinter_plan_output_type": (
        c_char_p,
        [sinter_plan, Integer(c_size_t, "entry"), Integer(c_size_t, "output")],
    ),
    "sinter_plan_may_share": (
        c_int,
        [sinter_plan, Integer(c_size_t, "entry"), Integer(c_size_t, "output"), Integer(c_size_t, "input")],
    ),
    "sinter_plan_costs": (
        sinter_error,
        [sinter_plan, Integer(c_size_t, "entry"), POINTER(c_char_p), Integers(c_int64, "values"), Integer(c_size_t, "symbol_count"), POINTER(sinter_costs)],
    ),
    "sinter_costs_launches": (c_int64, [sinter_costs]),
    "sinter_costs_kernels": (c_int64, [sinter_costs]),
    "sinter_costs_products": (c_int64, [sinter_costs]),
    "sinter_costs_moved_bytes": (c_int64, [sinter_costs]),
    "sinter_costs_arena_bytes": (c_int64, [sinter_costs]),
    "sinter_costs_predicted_seconds": (c_double, [sinter_costs]),
    "sinter_costs_free": (None, [sinter_costs]),
    "sinter_plan_step_count": (c_size_t, [sinter_plan, Integer(c_size_t, "entry")]),
    "sinter_plan_step_kind": (
        c_char_p,
        [sinter_plan, Integer(c_size_t, "entry"), Integer(c_size_t, "step")],
    ),
    "sinter_plan_step_values": (
        c_char_p,
        [sinter_plan, Integer(c_size_t, "entry"), Integer(c_size_t, "step")],
    ),
    "sinter_plan_step_kernel": (
        c_int64,
        [sinter_plan, Integer(c_size_t, "entry"), Integer(c_size_t, "step")],
    ),
    "sinter_plan_kernel_count": (c_size_t, [sinter_plan]),
    "sinter_plan_kernel_name": (c_char_p, [sinter_plan, Integer(c_size_t, "kernel")]),
    "sinter_plan_kernel_source": (c_char_p, [sinter_plan, Integer(c_size_t, "kernel")]),
    "sinter_plan_decision_count": (
        sinter_error,
        [sinter_plan, Integer(c_size_t, "entry"), POINTER(c_size_t)],
    ),
    "sinter_plan_decision": (
        sinter_decision,
        [sinter_plan, Integer(c_size_t, "entry"), Integer(c_size_t, "index")],
    ),
    "sinter_plan_why": (
        sinter_error,
        [sinter_plan, c_char_p, c_char_p, c_char_p, POINTER(sinter_decision)],
    ),
    "sinter_decision_free": (None, [sinter_decision]),
    "sinter_decision_a": (c_char_p, [sinter_decision]),
    "sinter_decision_b": (c_char_p, [sinter_decision]),
    "sinter_decision_fused": (c_int, [sinter_decision]),
    "sinter_decision_reason": (c_char_p, [sinter_decision]),
    "sinter_decision_text": (c_char_p, [sinter_decision]),
    "sinter_decision_detail": (c_char_p, [sinter_decision]),
    "sinter_decision_path_count": (c_size_t, [sinter_decision]),
    "sinter_decision_path": (c_char_p, [sinter_decision, Integer(c_size_t, "index")]),
    "sinter_decision_path_launch": (c_int64, [sinter_decision, Integer(c_size_t, "index")]),
    "sinter_decision_first_refusal": (sinter_decision, [sinter_decision]),
    "sinter_decision_saved_bytes": (c_int64, [sinter_decision]),
    "sinter_decision_savings": (c_char_p, [sinter_decision]),
    "sinter_decision_change": (c_char_p, [sinter_decision]),
    "sinter_decision_launch": (c_int64, [sinter_decision, Integer(c_int, "which")]),
    "sinter_device_open": (sinter_error, [c_char_p, POINTER(sinter_device)]),
    "sinter_device_open_cuda": (
        sinter_error,
        [Integer(c_int, "ordinal"), Address("context"), sinter_allocate, sinter_release, Address("user"), POINTER(sinter_device)],
    ),
    "sinter_device_name": (c_char_p, [sinter_device]),
    "sinter_device_target": (c_char_p, [sinter_device]),
    "sinter_device_free": (None, [sinter_device]),
    "sinter_weights_create": (sinter_error, [POINTER(sinter_weights)]),
    "sinter_weights_add": (
        sinter_error,
        [sinter_weights, c_char_p, c_char_p, Integer(c_size_t, "rank"), Integers(c_int64, "dims"), Integers(c_int64, "strides"), Address("data"), Integer(c_int, "on_device")],
    ),
    "sinter_weights_free": (None, [sinter_weights]),
    "sinter_load": (
        sinter_error,
        [sinter_plan, sinter_device, sinter_weights, sinter_options, POINTER(sinter_executable)],
    ),
    "sinter_executable_free": (None, [sinter_executable]),
    "sinter_session_create": (
        sinter_error,
        [sinter_executable, POINTER(c_char_p), Integers(c_int64, "values"), Integer(c_size_t, "symbol_count"), POINTER(sinter_session)],
    ),
    "sinter_session_create_on_stream": (
        sinter_error,
        [sinter_executable, POINTER(c_char_p), Integers(c_int64, "values"), Integer(c_size_t, "symbol_count"), Address("stream"), POINTER(sinter_session)],
    ),
    "sinter_session_create_beside": (
        sinter_error,
        [sinter_session, sinter_executable, POINTER(c_char_p), Integers(c_int64, "values"), Integer(c_size_t, "symbol_count"), POINTER(sinter_session)],
    ),
    "sinter_session_stream": (c_void_p, [sinter_session]),
    "sinter_session_synchronize": (sinter_error, [sinter_session]),
    "sinter_session_clear": (sinter_error, [sinter_session]),
    "sinter_session_read_state": (
        sinter_error,
        [sinter_session, c_char_p, c_char_p, Integer(c_size_t, "rank"), Integers(c_int64, "dims"), Integers(c_int64, "strides"), Address("data")],
    ),
    "sinter_session_free": (None, [sinter_session]),
    "sinter_call_create": (sinter_error, [sinter_session, c_char_p, POINTER(sinter_call)]),
    "sinter_call_symbol": (sinter_error, [sinter_call, c_char_p, Integer(c_int64, "value")]),
    "sinter_call_input": (
        sinter_error,
        [sinter_call, c_char_p, c_char_p, Integer(c_size_t, "rank"), Integers(c_int64, "dims"), Integers(c_int64, "strides"), Address("data")],
    ),
    "sinter_call_output": (
        sinter_error,
        [sinter_call, c_char_p, c_char_p, Integer(c_size_t, "rank"), Integers(c_int64, "dims"), Integers(c_int64, "strides"), Address("data")],
    ),
    "sinter_call_state": (
        sinter_error,
        [sinter_call, c_char_p, c_char_p, Integer(c_size_t, "rank"), Integers(c_int64, "dims"), Integers(c_int64, "strides"), Address("data")],
    ),
    "sinter_call_addresses": (
        sinter_error,
        [sinter_call, POINTER(c_void_p), Integer(c_size_t, "input_count"), POINTER(c_void_p), Integer(c_size_t, "output_count")],
    ),
    "sinter_call_output_dims": (
        sinter_error,
        [sinter_call, c_char_p, POINTER(c_size_t), POINTER(c_int64)],
    ),
    "sinter_call_prepare": (sinter_error, [sinter_call]),
    "sinter_call_run": (sinter_error, [sinter_call]),
    "sinter_call_allow_groups": (sinter_error, [sinter_call]),
    "sinter_call_lifetimes": (
        sinter_error,
        [sinter_call, POINTER(c_size_t), POINTER(c_size_t), Integer(c_size_t, "input_count"), POINTER(c_size_t), Integer(c_size_t, "output_count")],
    ),
    "sinter_call_run_steps": (
        sinter_error,
        [sinter_call, Integer(c_size_t, "first"), Integer(c_size_t, "last")],
    ),
    "sinter_call_check": (sinter_error, [sinter_call]),
    "sinter_call_free": (None, [sinter_call]),
    "sinter_language_model_open": (
        sinter_error,
        [c_char_p, sinter_device, sinter_options, POINTER(sinter_language_model)],
    ),
    "sinter_language_model_encode": (
        sinter_error,
        [sinter_language_model, c_char_p, POINTER(POINTER(c_int32)), POINTER(c_size_t)],
    ),
    "sinter_language_model_encode_chat": (
        sinter_error,
        [sinter_language_model, c_char_p, c_char_p, POINTER(POINTER(c_int32)), POINTER(c_size_t), POINTER(c_int32)],
    ),
    "sinter_language_model_decode": (
        sinter_error,
        [sinter_language_model, Integers(c_int32, "tokens"), Integer(c_size_t, "token_count"), POINTER(c_void_p)],
    ),
    "sinter_language_model_decode_all": (
        sinter_error,
        [sinter_language_model, Integers(c_int32, "tokens"), Integer(c_size_t, "token_count"), POINTER(c_void_p), POINTER(c_size_t)],
    ),
    "sinter_language_model_generate": (
        sinter_error,
        [sinter_language_model, POINTER(POINTER(c_int32)), Integers(c_size_t, "lengths"), Integer(c_size_t, "prompt_count"), sinter_options, sinter_on_token, Address("user")],
    ),
    "sinter_language_model_generate_text": (
        sinter_error,
        [sinter_language_model, POINTER(POINTER(c_int32)), Integers(c_size_t, "lengths"), Integer(c_size_t, "prompt_count"), sinter_options, sinter_on_text, Address("user")],
    ),
    "sinter_language_model_free": (None, [sinter_language_model]),
    "sinter_batch_create": (
        sinter_error,
        [sinter_language_model, Integer(c_size_t, "places"), Integer(c_int64, "capacity"), sinter_options, POINTER(sinter_batch)],
    ),
    "sinter_batch_add": (
        sinter_error,
        [sinter_batch, Integers(c_int32, "tokens"), Integer(c_size_t, "token_count"), sinter_options, POINTER(c_int64)],
    ),
    "sinter_batch_remove": (sinter_error, [sinter_batch, Integer(c_int64, "sequence")]),
    "sinter_batch_step": (
        sinter_error,
        [sinter_batch, POINTER(c_int64), POINTER(c_int32), POINTER(c_size_t)],
    ),
    "sinter_batch_free_places": (c_size_t, [sinter_batch]),
    "sinter_batch_free": (None, [sinter_batch]),
    "sinter_encoder_open": (
        sinter_error,
        [c_char_p, sinter_device, sinter_options, POINTER(sinter_encoder)],
    ),
    "sinter_encoder_width": (c_size_t, [sinter_encoder]),
    "sinter_encoder_prompts": (sinter_error, [sinter_encoder, POINTER(c_void_p)]),
    "sinter_encoder_encode": (
        sinter_error,
        [sinter_encoder, POINTER(c_char_p), Integer(c_size_t, "count"), sinter_options, POINTER(c_float), POINTER(c_size_t)],
    ),
    "sinter_encoder_free": (None, [sinter_encoder]),
    "sinter_verify": (
        sinter_error,
        [sinter_model, sinter_device, sinter_weights, sinter_options, POINTER(sinter_report)],
    ),
    "sinter_report_passed": (c_int, [sinter_report]),
    "sinter_report_difference": (c_char_p, [sinter_report]),
    "sinter_report_values": (c_int64, [sinter_report]),
    "sinter_report_elements": (c_int64, [sinter_report]),
    "sinter_report_fused_launches": (c_int64, [sinter_report]),
    "sinter_report_unfused_launches": (c_int64, [sinter_report]),
    "sinter_report_fused_error": (c_double, [sinter_report]),
    "sinter_report_unfused_error": (c_double, [sinter_report]),
    "sinter_report_free": (None, [sinter_report]),
    "sinter_bisect": (
        sinter_error,
        [sinter_model, sinter_device, sinter_options, POINTER(c_void_p)],
    ),
    "sinter_kernel_create": (
        sinter_error,
        [c_char_p, c_char_p, c_char_p, c_char_p, POINTER(sinter_kernel)],
    ),
    "sinter_kernel_launch": (
        None,
        [sinter_kernel, Integer(c_int64, "threads"), Integer(c_int64, "row_axes"), Integer(c_int64, "shared_bytes")],
    ),
    "sinter_kernel_open_operand": (sinter_error, [sinter_kernel, Integer(c_size_t, "operand")]),
    "sinter_kernel_open_result": (None, [sinter_kernel]),
    "sinter_kernel_numbers": (None, [sinter_kernel, Integer(c_size_t, "count")]),
    "sinter_kernel_evaluation": (None, [sinter_kernel, sinter_evaluate, Address("user"), c_double]),
    "sinter_kernel_register": (sinter_error, [sinter_kernel]),
    "sinter_kernel_free": (None, [sinter_kernel]),
    "sinter_evaluation_precise": (c_int, [sinter_evaluation]),
    "sinter_evaluation_operand_count": (c_size_t, [sinter_evaluation]),
    "sinter_evaluation_rank": (c_size_t, [sinter_evaluation, Integer(c_size_t, "index")]),
    "sinter_evaluation_dims": (POINTER(c_int64), [sinter_evaluation, Integer(c_size_t, "index")]),
    "sinter_evaluation_operand": (c_void_p, [sinter_evaluation, Integer(c_size_t, "index")]),
    "sinter_evaluation_result": (c_void_p, [sinter_evaluation]),
    "sinter_evaluation_number": (c_double, [sinter_evaluation, Integer(c_size_t, "index")]),
}

lib = Library(FUNCTIONS)
