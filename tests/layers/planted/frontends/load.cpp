// Allowed: above all folders of the room.
#include "frontends/huggingface/config.h"
#include "frontends/model/spec.h"
