// Allowed: chooses one of the executors.
#include "runtime/executor.h"

#include "runtime/cuda/run.h"
#include "runtime/host/run.h"
