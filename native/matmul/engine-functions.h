// The engine's CPU library -> its functions that matmuls need, also those of no public header. Declared by its own headers, which
// the build takes from the release whose version OpenLibrary requires.
#pragma once
#include <ggml-cpu.h>

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <traits.h>  // ggml-cpu's own
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include <string>
#include <vector>

namespace onpolicy::matmul {

#define ONPOLICY_PRODUCT_FUNCTIONS(X) \
  X(ggml_backend_buffer_init)         \
  X(ggml_backend_buffer_free)         \
  X(ggml_backend_buffer_get_base)     \
  X(ggml_backend_buft_alloc_buffer)   \
  X(ggml_backend_cpu_buffer_type)     \
  X(ggml_backend_tensor_alloc)        \
  X(ggml_backend_tensor_set)          \
  X(ggml_backend_tensor_get)          \
  X(ggml_backend_dev_init)            \
  X(ggml_backend_dev_backend_reg)     \
  X(ggml_backend_free)                \
  X(ggml_backend_graph_compute)       \
  X(ggml_backend_cpu_set_n_threads)   \
  X(ggml_init)                        \
  X(ggml_free)                        \
  X(ggml_tensor_overhead)             \
  X(ggml_graph_overhead)              \
  X(ggml_new_tensor_2d)               \
  X(ggml_new_graph)                   \
  X(ggml_build_forward_expand)        \
  X(ggml_mul_mat)                     \
  X(ggml_mul_mat_id)                  \
  X(ggml_new_tensor_4d)               \
  X(ggml_flash_attn_ext)              \
  X(ggml_flash_attn_ext_add_sinks)    \
  X(ggml_gated_delta_net)             \
  X(ggml_ssm_conv)                    \
  X(ggml_op_name)                     \
  X(ggml_type_name)                   \
  X(ggml_quantize_chunk)              \
  X(ggml_nbytes)

// What only its libraries for Linux export.
#ifdef __linux__
#define ONPOLICY_THREAD_FUNCTIONS(X) X(ggml_barrier) X(ggml_threadpool_chunk_set) X(ggml_threadpool_chunk_add)
#else
#define ONPOLICY_THREAD_FUNCTIONS(X)
#endif

struct EngineFunctions {
#define ONPOLICY_DECLARE(name) decltype(&::name) name = nullptr;
  ONPOLICY_PRODUCT_FUNCTIONS(ONPOLICY_DECLARE)
  ONPOLICY_THREAD_FUNCTIONS(ONPOLICY_DECLARE)
#undef ONPOLICY_DECLARE
  // ggml-cpu's list of buffer types whose tensors it computes in their own way; of Linux only, too.
  std::vector<ggml_backend_buffer_type_t>& (*extra_buffer_types)() = nullptr;
};

// Fails with what is missing: then matmuls are ggml's.
bool FindEngineFunctions(ggml_backend_dev_t cpu, EngineFunctions* functions, std::string* problem);

}  // namespace onpolicy::matmul
