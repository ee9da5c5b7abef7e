// All twins in one module.
#include "barrier.cu"
#include "cluster.cu"
#include "copy.cu"
#include "fence.cu"
