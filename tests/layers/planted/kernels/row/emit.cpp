#include "codegen/emission/scope.h"
#include "kernels/family.h"
#include "kernels/gemv/order.h"
#include "kernels/row/order.h"
