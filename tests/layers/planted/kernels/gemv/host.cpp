#include "kernels/gemv/order.h"
#include "kernels/gemv/schedule.h"
#include "runtime/evaluate/ops.h"
