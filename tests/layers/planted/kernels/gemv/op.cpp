#include "ir/inner.h"
#include "kernels/family.h"
#include "kernels/gemv/order.h"
