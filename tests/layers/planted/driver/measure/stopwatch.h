// Measured things know how they are measured, not the other way round.
#include "driver/bench/bench.h"
#include "driver/generate/generator.h"
