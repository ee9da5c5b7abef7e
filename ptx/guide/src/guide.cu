// All C++ twins, so that nvcc compiles once.

#include "early_exit.cu"
#include "init_barrier.cu"
#include "producer_consumer.cu"
#include "split_arrive_wait.cu"
#include "track_bulk_copy.cu"
#include "track_kernel.cu"
