// A family's text sees its own folder, the common one and the shared headers of ir.
#include "ir/inner.h"
#include "ir/scalar_math.h"
#include "kernels/common/vector.cuh"
#include "kernels/gemv/gemv.cuh"
#include "kernels/row/row_order.cuh"
