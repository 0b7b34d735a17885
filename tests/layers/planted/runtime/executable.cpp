// Allowed: chooses one of the executors.
#include "runtime/executable.h"

#include "runtime/cuda/run.h"
#include "runtime/host/run.h"
