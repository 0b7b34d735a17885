// The two executors do not see each other.
#include "runtime/cuda/run.h"

#include "runtime/executable.h"
