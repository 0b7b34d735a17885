// The handler of every exception, which lets a thread end.
#pragma once

#include <cxxabi.h>

/// In place of `catch (...)`: pthread_exit and pthread_cancel end a thread by unwinding its stack,
/// and a handler that does not let this pass on ends the process. Python ends a thread in this way
/// that calls back while the interpreter ends.
#define SINTER_CATCH_ALL                \
  catch (const abi::__forced_unwind&) { \
    throw;                              \
  }                                     \
  catch (...)
