// The binary interface that the addon assumes of the engine, as lines of text: an addon built for one release runs with another whose
// lines are the same.
#include <cstddef>
#include <cstdio>

#include "ggml-backend-impl.h"
#include "ggml-cpu-impl.h"
#include "ggml-cpu.h"
#include "ggml-impl.h"
#include "gguf.h"
#include "llama.h"
#include "traits.h"

extern "C" void ggml_abort(const char*, int, const char*, ...) { __builtin_trap(); }
namespace ggml::cpu {
tensor_traits::~tensor_traits() {}
extra_buffer_type::~extra_buffer_type() {}
}  // namespace ggml::cpu

#define SIZE(type) std::printf("sizeof " #type " %zu\n", sizeof(type));
#define PLACE(type, field) std::printf("offset " #type "." #field " %zu\n", offsetof(type, field));
#define VALUE(name) std::printf("value " #name " %lld\n", static_cast<long long>(name));

int main() {
  SIZE(llama_model_params)
  PLACE(llama_model_params, devices)
  PLACE(llama_model_params, tensor_buft_overrides)
  PLACE(llama_model_params, n_gpu_layers)
  PLACE(llama_model_params, load_mode)
  PLACE(llama_model_params, tensor_split)
  PLACE(llama_model_params, progress_callback)
  PLACE(llama_model_params, use_extra_bufts)
  SIZE(llama_model_tensor_buft_override)
  PLACE(llama_model_tensor_buft_override, pattern)
  PLACE(llama_model_tensor_buft_override, buft)
  SIZE(llama_context_params)
  PLACE(llama_context_params, n_ctx)
  PLACE(llama_context_params, n_seq_max)
  PLACE(llama_context_params, n_rs_seq)
  PLACE(llama_context_params, n_outputs_max)
  PLACE(llama_context_params, n_threads)
  PLACE(llama_context_params, ctx_type)
  PLACE(llama_context_params, flash_attn_type)
  PLACE(llama_context_params, yarn_orig_ctx)
  PLACE(llama_context_params, cb_eval)
  PLACE(llama_context_params, type_k)
  PLACE(llama_context_params, abort_callback)
  PLACE(llama_context_params, op_offload)
  PLACE(llama_context_params, swa_full)
  PLACE(llama_context_params, kv_unified)
  SIZE(llama_batch)
  SIZE(llama_model_quantize_params)
  SIZE(ggml_tensor)
  PLACE(ggml_tensor, type)
  PLACE(ggml_tensor, buffer)
  PLACE(ggml_tensor, ne)
  PLACE(ggml_tensor, nb)
  PLACE(ggml_tensor, op)
  PLACE(ggml_tensor, op_params)
  PLACE(ggml_tensor, flags)
  PLACE(ggml_tensor, src)
  PLACE(ggml_tensor, view_src)
  PLACE(ggml_tensor, view_offs)
  PLACE(ggml_tensor, data)
  PLACE(ggml_tensor, name)
  SIZE(ggml_compute_params)
  PLACE(ggml_compute_params, ith)
  PLACE(ggml_compute_params, nth)
  PLACE(ggml_compute_params, wsize)
  PLACE(ggml_compute_params, wdata)
  PLACE(ggml_compute_params, threadpool)
  SIZE(ggml_backend_buffer_type_i)
  PLACE(ggml_backend_buffer_type_i, alloc_buffer)
  PLACE(ggml_backend_buffer_type_i, get_max_size)
  SIZE(ggml_backend_buffer_type)
  SIZE(ggml_backend_buffer_i)
  PLACE(ggml_backend_buffer_i, set_tensor)
  PLACE(ggml_backend_buffer_i, clear)
  SIZE(ggml_backend_buffer)
  PLACE(ggml_backend_buffer, context)
  PLACE(ggml_backend_buffer, size)
  SIZE(ggml_backend_device_i)
  SIZE(ggml_backend_device)
  PLACE(ggml_backend_device, reg)
  SIZE(ggml_backend_reg_i)
  SIZE(ggml_backend_reg)
  PLACE(ggml_backend_reg, api_version)
  SIZE(ggml_init_params)
  SIZE(gguf_init_params)
  SIZE(ggml_threadpool_params)
  SIZE(ggml_type_traits)
  SIZE(ggml::cpu::tensor_traits)
  SIZE(ggml::cpu::extra_buffer_type)
  VALUE(GGML_BACKEND_API_VERSION)
  VALUE(GGML_MAX_OP_PARAMS)
  VALUE(GGML_MAX_SRC)
  VALUE(GGML_OP_COUNT)
  VALUE(GGML_OP_NONE)
  VALUE(GGML_OP_MUL_MAT)
  VALUE(GGML_OP_MUL_MAT_ID)
  VALUE(GGML_OP_GET_ROWS)
  VALUE(GGML_OP_SET_ROWS)
  VALUE(GGML_OP_ROPE)
  VALUE(GGML_OP_CPY)
  VALUE(GGML_OP_CONCAT)
  VALUE(GGML_OP_FLASH_ATTN_EXT)
  VALUE(GGML_OP_SSM_CONV)
  VALUE(GGML_OP_GATED_DELTA_NET)
  VALUE(GGML_OP_CUSTOM)
  VALUE(GGML_TYPE_Q8_0)
  VALUE(GGML_TYPE_MXFP4)
  VALUE(GGML_TYPE_COUNT)
  VALUE(LLAMA_FTYPE_MOSTLY_Q8_0)
}
