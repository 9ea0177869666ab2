// The functions of llama.cpp and ggml that the addon calls, as one table of guarded calls. The addon links nothing: one binary of ours
// serves the CPU, CUDA, Vulkan and Metal builds of the libraries.
#pragma once
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <gguf.h>
#include <llama.h>

#include <string>

#include "base/guarded.h"

// Its header also has the tables of functions of buffers and devices, which only engine-assumptions knows.
struct ggml_backend_buffer_i;
extern "C" ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t, ggml_backend_buffer_i, void* context, size_t size);

namespace onpolicy {

// Every function of the C API that the addon calls, except those that free something, and those of training.
#define ONPOLICY_LIBRARY_FUNCTIONS(X)                                                                          \
  X(llama_version)                                                                                             \
  X(ggml_set_abort_callback)                                                                                   \
  X(llama_log_set)                                                                                             \
  X(llama_backend_init)                                                                                        \
  X(llama_max_parallel_sequences)                                                                              \
  X(llama_model_default_params)                                                                                \
  X(llama_model_load_from_file)                                                                                \
  X(llama_model_get_vocab)                                                                                     \
  X(llama_model_n_ctx_train)                                                                                   \
  X(llama_model_n_embd)                                                                                        \
  X(llama_model_n_embd_inp)                                                                                    \
  X(llama_model_n_layer_nextn)                                                                                 \
  X(llama_model_n_swa)                                                                                         \
  X(llama_model_has_decoder)                                                                                   \
  X(llama_model_is_recurrent)                                                                                  \
  X(llama_model_is_hybrid)                                                                                     \
  X(llama_model_is_diffusion)                                                                                  \
  X(llama_model_ftype)                                                                                         \
  X(llama_model_size)                                                                                          \
  X(llama_model_n_params)                                                                                      \
  X(llama_model_chat_template)                                                                                 \
  X(llama_model_meta_val_str)                                                                                  \
  X(llama_model_meta_count)                                                                                    \
  X(llama_model_meta_key_by_index)                                                                             \
  X(llama_model_meta_val_str_by_index)                                                                         \
  X(llama_vocab_n_tokens)                                                                                      \
  X(llama_vocab_get_text)                                                                                      \
  X(llama_vocab_get_attr)                                                                                      \
  X(llama_vocab_is_eog)                                                                                        \
  X(llama_vocab_bos)                                                                                           \
  X(llama_vocab_eos)                                                                                           \
  X(llama_vocab_get_add_bos)                                                                                   \
  X(llama_tokenize)                                                                                            \
  X(llama_token_to_piece)                                                                                      \
  X(llama_context_default_params)                                                                              \
  X(llama_init_from_model)                                                                                     \
  X(llama_get_memory)                                                                                          \
  X(llama_memory_clear)                                                                                        \
  X(llama_memory_seq_rm)                                                                                       \
  X(llama_memory_seq_cp)                                                                                       \
  X(llama_memory_seq_pos_max)                                                                                  \
  X(llama_n_rs_seq)                                                                                            \
  X(llama_state_seq_get_size_ext)                                                                              \
  X(llama_state_seq_get_data_ext)                                                                              \
  X(llama_state_seq_set_data_ext)                                                                              \
  X(llama_state_get_size)                                                                                      \
  X(llama_state_get_data)                                                                                      \
  X(llama_state_set_data)                                                                                      \
  X(llama_encode)                                                                                              \
  X(llama_decode)                                                                                              \
  X(llama_set_causal_attn)                                                                                     \
  X(llama_get_logits_ith)                                                                                      \
  X(llama_get_embeddings_seq)                                                                                  \
  X(llama_model_n_embd_out)                                                                                    \
  X(llama_model_n_cls_out)                                                                                     \
  X(llama_model_cls_label)                                                                                     \
  X(llama_vocab_sep)                                                                                           \
  X(llama_vocab_get_add_eos)                                                                                   \
  X(llama_vocab_get_add_sep)                                                                                   \
  X(llama_attach_threadpool)                                                                                   \
  X(llama_set_n_threads)                                                                                       \
  X(llama_max_devices)                                                                                         \
  X(llama_adapter_lora_init)                                                                                   \
  X(llama_set_adapters_lora)                                                                                   \
  X(ggml_backend_load)                                                                                         \
  X(ggml_backend_load_all_from_path)                                                                           \
  X(ggml_backend_dev_count)                                                                                    \
  X(ggml_backend_dev_get)                                                                                      \
  X(ggml_backend_dev_by_type)                                                                                  \
  X(ggml_backend_dev_by_name)                                                                                  \
  X(ggml_backend_dev_type)                                                                                     \
  X(ggml_backend_dev_name)                                                                                     \
  X(ggml_backend_dev_description)                                                                              \
  X(ggml_backend_dev_memory)                                                                                   \
  X(ggml_backend_dev_backend_reg)                                                                              \
  X(ggml_backend_reg_get_proc_address)                                                                         \
  X(ggml_backend_dev_buffer_type)                                                                              \
  X(ggml_init)                                                                                                 \
  X(ggml_tensor_overhead)                                                                                      \
  X(ggml_graph_overhead_custom)                                                                                \
  X(ggml_new_graph_custom)                                                                                     \
  X(ggml_build_forward_expand)                                                                                 \
  X(ggml_new_tensor)                                                                                           \
  X(ggml_nbytes)                                                                                               \
  X(ggml_nelements)                                                                                            \
  X(ggml_row_size)                                                                                             \
  X(ggml_blck_size)                                                                                            \
  X(ggml_type_name)                                                                                            \
  X(ggml_is_quantized)                                                                                         \
  X(ggml_quantize_chunk)                                                                                       \
  X(ggml_mul_mat)                                                                                              \
  X(ggml_mul_mat_id)                                                                                           \
  X(ggml_gated_delta_net)                                                                                      \
  X(ggml_backend_dev_init)                                                                                     \
  X(ggml_backend_buft_alloc_buffer)                                                                            \
  X(ggml_backend_buffer_init)                                                                                  \
  X(ggml_backend_buffer_get_base)                                                                              \
  X(ggml_backend_tensor_alloc)                                                                                 \
  X(ggml_backend_tensor_set)                                                                                   \
  X(ggml_backend_tensor_get)                                                                                   \
  X(ggml_backend_graph_compute)                                                                                \
  X(ggml_flash_attn_ext)                                                                                       \
  X(ggml_flash_attn_ext_add_sinks)                                                                             \
  X(ggml_ssm_conv)                                                                                             \
  X(ggml_op_name)                                                                                              \
  X(ggml_threadpool_params_default)

// Functions that only training and merging call. Without one of them, the rest works.
#define ONPOLICY_TRAINING_FUNCTIONS(X)                                                                         \
  X(gguf_init_from_file)                                                                                       \
  X(gguf_find_key)                                                                                             \
  X(gguf_get_kv_type)                                                                                          \
  X(gguf_get_val_data)                                                                                         \
  X(gguf_get_val_str)                                                                                          \
  X(gguf_get_n_tensors)                                                                                        \
  X(gguf_find_tensor)                                                                                          \
  X(gguf_get_tensor_offset)                                                                                    \
  X(gguf_get_tensor_size)                                                                                      \
  X(gguf_get_arr_type)                                                                                         \
  X(gguf_get_arr_n)                                                                                            \
  X(gguf_get_arr_data)                                                                                         \
  X(gguf_init_empty)                                                                                           \
  X(gguf_set_kv)                                                                                               \
  X(gguf_set_val_u32)                                                                                          \
  X(gguf_set_val_f32)                                                                                          \
  X(gguf_set_val_str)                                                                                          \
  X(gguf_add_tensor)                                                                                           \
  X(gguf_set_tensor_type)                                                                                      \
  X(gguf_get_meta_size)                                                                                        \
  X(gguf_get_meta_data)                                                                                        \
  X(llama_model_quantize)                                                                                      \
  X(llama_model_quantize_default_params)                                                                       \
  X(ggml_quantize_requires_imatrix)                                                                            \
  X(gguf_get_data_offset)                                                                                      \
  X(gguf_get_val_u32)                                                                                          \
  X(gguf_get_val_i32)                                                                                          \
  X(gguf_get_val_u64)                                                                                          \
  X(gguf_get_val_i64)                                                                                          \
  X(gguf_get_val_u16)                                                                                          \
  X(gguf_get_val_f32)                                                                                          \
  X(gguf_get_tensor_name)                                                                                      \
  X(ggml_get_first_tensor)                                                                                     \
  X(ggml_get_next_tensor)                                                                                      \
  X(ggml_type_size)                                                                                            \
  X(ggml_get_type_traits)                                                                                      \
  X(ggml_fp32_to_bf16_row)                                                                                     \
  X(ggml_add_id)                                                                                               \
  X(ggml_argsort_top_k)                                                                                        \
  X(ggml_out_prod)                                                                                             \
  X(ggml_add)                                                                                                  \
  X(ggml_add_inplace)                                                                                          \
  X(ggml_mul)                                                                                                  \
  X(ggml_div)                                                                                                  \
  X(ggml_sub)                                                                                                  \
  X(ggml_norm)                                                                                                 \
  X(ggml_rms_norm)                                                                                             \
  X(ggml_rms_norm_back)                                                                                        \
  X(ggml_rope_ext)                                                                                             \
  X(ggml_rope_ext_back)                                                                                        \
  X(ggml_rope_multi)                                                                                           \
  X(ggml_rope_multi_back)                                                                                      \
  X(ggml_soft_max_ext)                                                                                         \
  X(ggml_soft_max_ext_back)                                                                                    \
  X(ggml_soft_max_add_sinks)                                                                                   \
  X(ggml_relu)                                                                                                 \
  X(ggml_gallocr_new)                                                                                          \
  X(ggml_gallocr_reserve_n_size)                                                                               \
  X(ggml_gelu)                                                                                                 \
  X(ggml_silu)                                                                                                 \
  X(ggml_silu_back)                                                                                            \
  X(ggml_sigmoid)                                                                                              \
  X(ggml_softplus)                                                                                             \
  X(ggml_l2_norm)                                                                                              \
  X(ggml_swiglu_split)                                                                                         \
  X(ggml_swiglu_oai)                                                                                           \
  X(ggml_geglu_split)                                                                                          \
  X(ggml_tanh)                                                                                                 \
  X(ggml_sqr)                                                                                                  \
  X(ggml_step)                                                                                                 \
  X(ggml_scale_bias)                                                                                           \
  X(ggml_get_rows)                                                                                             \
  X(ggml_get_rows_back)                                                                                        \
  X(ggml_cont)                                                                                                 \
  X(ggml_permute)                                                                                              \
  X(ggml_transpose)                                                                                            \
  X(ggml_reshape_2d)                                                                                           \
  X(ggml_reshape_3d)                                                                                           \
  X(ggml_view_2d)                                                                                              \
  X(ggml_view_3d)                                                                                              \
  X(ggml_cpy)                                                                                                  \
  X(ggml_concat)                                                                                               \
  X(ggml_custom_4d)                                                                                            \
  X(ggml_log)                                                                                                  \
  X(ggml_clamp)                                                                                                \
  X(ggml_sum_rows)                                                                                             \
  X(ggml_custom_inplace)                                                                                       \
  X(ggml_backend_get_default_buffer_type)                                                                      \
  X(ggml_backend_buffer_set_usage)                                                                             \
  X(ggml_backend_tensor_memset)                                                                                \
  X(ggml_backend_cpu_buffer_from_ptr)                                                                          \
  X(ggml_backend_sched_new)                                                                                    \
  X(ggml_backend_sched_reset)                                                                                  \
  X(ggml_backend_sched_alloc_graph)                                                                            \
  X(ggml_backend_sched_graph_compute)                                                                          \
  X(ggml_backend_sched_get_buffer_size)

// Functions that free something.
#define ONPOLICY_FREEING_FUNCTIONS(X)  \
  X(llama_model_free)                  \
  X(llama_free)                        \
  X(llama_adapter_lora_free)           \
  X(gguf_free)                         \
  X(ggml_free)                         \
  X(ggml_gallocr_free)                 \
  X(ggml_backend_free)                 \
  X(ggml_backend_buffer_free)          \
  X(ggml_backend_sched_free)

struct Library {
#define ONPOLICY_DECLARE(name) Guarded<decltype(&::name)> name;
  ONPOLICY_LIBRARY_FUNCTIONS(ONPOLICY_DECLARE)
  ONPOLICY_TRAINING_FUNCTIONS(ONPOLICY_DECLARE)
#undef ONPOLICY_DECLARE
#define ONPOLICY_DECLARE(name) Freeing<decltype(&::name)> name;
  ONPOLICY_FREEING_FUNCTIONS(ONPOLICY_DECLARE)
#undef ONPOLICY_DECLARE
  // Sets the precision of a matmul. Null if the library exports it under no known name.
  Guarded<void (*)(ggml_tensor*, ggml_prec)> set_matmul_precision;

  // Functions of the CPU backend, which ggml loads itself. Null if the backend lacks them.
  Guarded<decltype(&::ggml_threadpool_new)> ggml_threadpool_new;
  Guarded<decltype(&::ggml_backend_cpu_set_threadpool)> ggml_backend_cpu_set_threadpool;
  Guarded<ggml_backend_set_n_threads_t> ggml_backend_set_n_threads;

  // Functions without a public header. Null if the library does not export them.
  Guarded<void (*)(llama_context*, bool value, bool masked)> set_embeddings_nextn;
  Guarded<float* (*)(llama_context*, int32_t)> get_embeddings_nextn_ith;
  Guarded<void (*)(llama_context*, int32_t)> set_nextn_layer_offset;
  Guarded<void (*)(llama_context*, uint32_t layer, bool value)> set_embeddings_layer_inp;
  Guarded<float* (*)(llama_context*, uint32_t layer)> get_embeddings_layer_inp;

  std::string folder;   // where the libraries were loaded from
  std::string version;  // as the library reports it
};

// The opened table. Never call before OpenLibrary has filled it.
inline Library g_library;
inline const Library& Api() { return g_library; }

// Deleter of a std::unique_ptr, as in `Freed<&Library::llama_free>`.
template <auto kFunction>
struct Freed {
  template <typename Given>
  void operator()(Given* given) const {
    (Api().*kFunction)(given);
  }
};

}  // namespace onpolicy
