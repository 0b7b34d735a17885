#include "codegen/emission/scope.h"
#include "device/device.h"
