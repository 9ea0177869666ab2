// Loaded with LD_PRELOAD: one thing that the addon assumes of the engine, named by ENGINE_MUTATION, does not hold. Functions that the addon
// looks up are replaced in dlsym; calls between the engine's own libraries find the functions here first.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ggml-backend-impl.h>
#include <ggml-backend.h>
#include <ggml.h>
#include <llama.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is(const char* name) {
  const char* mutation = getenv("ENGINE_MUTATION");
  return mutation && strcmp(mutation, name) == 0;
}

static void* real_dlsym(void* handle, const char* name) {
  static void* (*found)(void*, const char*);
  if (!found) found = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (!found) found = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return found(handle, name);
}

// The function of the engine behind one of those below. The libraries are opened with their names for all.
#define REAL(name)                                                         \
  static __typeof__(&name) real;                                           \
  if (!real) real = (__typeof__(&name))real_dlsym(RTLD_NEXT, #name)

// Nodes with a source or a parameter that no known release has. The CPU backend does not read them.
struct ggml_tensor* ggml_flash_attn_ext(struct ggml_context* context, struct ggml_tensor* q, struct ggml_tensor* k, struct ggml_tensor* v,
                                        struct ggml_tensor* mask, float scale, float bias, float cap) {
  REAL(ggml_flash_attn_ext);
  struct ggml_tensor* node = real(context, q, k, v, mask, scale, bias, cap);
  if (is("attention source")) node->src[9] = q;
  if (is("attention parameter")) node->op_params[8] = 1;
  return node;
}
struct ggml_tensor* ggml_gated_delta_net(struct ggml_context* context, struct ggml_tensor* q, struct ggml_tensor* k, struct ggml_tensor* v,
                                         struct ggml_tensor* g, struct ggml_tensor* beta, struct ggml_tensor* state, int64_t kept) {
  REAL(ggml_gated_delta_net);
  struct ggml_tensor* node = real(context, q, k, v, g, beta, state, kept);
  if (is("rule source")) node->src[9] = q;
  return node;
}
struct ggml_tensor* ggml_ssm_conv(struct ggml_context* context, struct ggml_tensor* x, struct ggml_tensor* weights) {
  REAL(ggml_ssm_conv);
  struct ggml_tensor* node = real(context, x, weights);
  if (is("convolution source")) node->src[9] = x;
  return node;
}
struct ggml_tensor* ggml_mul_mat(struct ggml_context* context, struct ggml_tensor* a, struct ggml_tensor* b) {
  REAL(ggml_mul_mat);
  struct ggml_tensor* node = real(context, a, b);
  if (is("matmul source")) node->src[9] = b;
  if (is("matmul parameter")) node->op_params[5] = 1;
  return node;
}
struct ggml_tensor* ggml_set_rows(struct ggml_context* context, struct ggml_tensor* to, struct ggml_tensor* from, struct ggml_tensor* rows) {
  REAL(ggml_set_rows);
  struct ggml_tensor* node = real(context, to, from, rows);
  if (is("cells")) node->src[9] = from;
  return node;
}
// States that another operation gathers.
struct ggml_tensor* ggml_get_rows(struct ggml_context* context, struct ggml_tensor* table, struct ggml_tensor* rows) {
  REAL(ggml_get_rows);
  struct ggml_tensor* node = real(context, table, rows);
  const bool is_state = table->view_src && strncmp(table->view_src->name, "cache_", 6) == 0;
  return is("states") && is_state ? ggml_cont(context, node) : node;
}

// Buffers that are not made by the function in the table of their type.
ggml_backend_buffer_t ggml_backend_buft_alloc_buffer(ggml_backend_buffer_type_t type, size_t size) {
  REAL(ggml_backend_buft_alloc_buffer);
  static ggml_backend_buffer_t (*alloc)(ggml_backend_buffer_type_t, size_t);
  if (!is("buffers") || size == 0 || strcmp(type->iface.get_name(type), "CPU") != 0) return real(type, size);
  if (!alloc) alloc = type->iface.alloc_buffer;
  return alloc(type, size);
}

// Other names.
static const char* renamed(const char* name, char* text, size_t size) {
  snprintf(text, size, "%s", name);
  if (is("experts") && strncmp(name, "ffn_moe_topk", 12) == 0) memcpy(text, "ffn_moe_best", 12);
  if (is("pooled state") && strcmp(name, "result_norm") == 0) snprintf(text, size, "result_state");
  return text;
}
struct ggml_tensor* ggml_set_name(struct ggml_tensor* tensor, const char* name) {
  REAL(ggml_set_name);
  char text[GGML_MAX_NAME * 2];
  renamed(name, text, sizeof text);
  // llama.cpp names its copies of the factors, after ggml has named those of the file.
  Dl_info caller;
  char* end = strstr(text, ".lora_");
  if (is("adapter") && end && dladdr(__builtin_return_address(0), &caller) && strstr(caller.dli_fname, "libllama")) memcpy(end, ".rank_", 6);
  return real(tensor, text);
}
struct ggml_tensor* ggml_format_name(struct ggml_tensor* tensor, const char* format, ...) {
  char text[GGML_MAX_NAME];
  va_list words;
  va_start(words, format);
  vsnprintf(text, sizeof text, format, words);
  va_end(words);
  return ggml_set_name(tensor, text);
}

// Functions that the addon looks up.
static ggml_backend_dev_t (*real_device)(enum ggml_backend_dev_type);
static void* (*real_address)(ggml_backend_reg_t, const char*);
static void* no_types(ggml_backend_reg_t backend, const char* name) {
  return strcmp(name, "ggml_backend_dev_get_extra_bufts") == 0 ? NULL : real_address(backend, name);
}
static ggml_backend_dev_t device_without_types(enum ggml_backend_dev_type type) {
  ggml_backend_dev_t device = real_device(type);
  if (device && device->reg->iface.get_proc_address != no_types) {
    real_address = device->reg->iface.get_proc_address;
    device->reg->iface.get_proc_address = no_types;
  }
  return device;
}
static struct llama_context_params (*real_defaults)(void);
static struct llama_context_params moved_defaults(void) {
  struct llama_context_params params = real_defaults();
  params.type_k = GGML_TYPE_F32;
  return params;
}
static struct llama_context* (*real_context)(struct llama_model*, struct llama_context_params);
static struct llama_context* larger_context(struct llama_model* model, struct llama_context_params params) {
  params.n_ctx *= 2;
  return real_context(model, params);
}
static size_t few_sequences(void) { return 64; }
static struct ggml_tensor* marked_attention(struct ggml_context* context, struct ggml_tensor* q, struct ggml_tensor* k, struct ggml_tensor* v,
                                            struct ggml_tensor* mask, float scale, float bias, float cap) {
  struct ggml_tensor* node = ggml_flash_attn_ext(context, q, k, v, mask, scale, bias, cap);
  node->op_params[15] = 7;
  return node;
}
// The engine's own results of an operation differ. Each is read first with the engine's kernels, then with ours.
static void (*real_get)(const struct ggml_tensor*, void*, size_t, size_t);
static void other_results(const struct ggml_tensor* tensor, void* data, size_t offset, size_t size) {
  static int reads;
  real_get(tensor, data, offset, size);
  const enum ggml_op op = is("attention results") ? GGML_OP_FLASH_ATTN_EXT : GGML_OP_MUL_MAT;
  if (tensor->op != op || reads++ % 2 != 0) return;
  for (size_t i = 0; i < size / sizeof(float); ++i) ((float*)data)[i] *= 1.05f;
}
// A decoder that was built for another layout.
struct decoder {
  int version;
  uint64_t layout;
  const void* others[4];
};
static const struct decoder* (*real_decoder)(void);
static const struct decoder* other_decoder(void) {
  static struct decoder table;
  table = *real_decoder();
  ++table.layout;
  return &table;
}
static struct ggml_tensor* (*real_norm)(struct ggml_context*, struct ggml_tensor*, float);
static struct ggml_tensor* other_norm(struct ggml_context* context, struct ggml_tensor* x, float epsilon) {
  return real_norm(context, x, epsilon * 1e4f);
}

void* dlsym(void* handle, const char* name) {
  void* real = real_dlsym(handle, name);
  if (!real || !getenv("ENGINE_MUTATION")) return real;
  if (is("types") && strcmp(name, "ggml_backend_dev_by_type") == 0) {
    real_device = (ggml_backend_dev_t(*)(enum ggml_backend_dev_type))real;
    return device_without_types;
  }
  if (is("buffers") && strcmp(name, "ggml_backend_buft_alloc_buffer") == 0) return ggml_backend_buft_alloc_buffer;
  if (is("cache") && strcmp(name, "llama_init_from_model") == 0) {
    real_context = (struct llama_context * (*)(struct llama_model*, struct llama_context_params)) real;
    return larger_context;
  }
  if (is("heads") && strstr(name, "nextn")) return strstr(name, "n_layer_nextn") ? real : NULL;
  if (is("layers") && strstr(name, "layer_inp")) return NULL;
  if (is("precision") && (strcmp(name, "ggml_mul_mat_set_prec") == 0 || strcmp(name, "ggml_prec_set_acc") == 0)) return NULL;
  if (is("training") && strcmp(name, "ggml_out_prod") == 0) return NULL;
  if (is("sequences") && strcmp(name, "llama_max_parallel_sequences") == 0) return few_sequences;
  if (is("marks") && strcmp(name, "ggml_flash_attn_ext") == 0) return marked_attention;
  if (is("defaults") && strcmp(name, "llama_context_default_params") == 0) {
    real_defaults = (struct llama_context_params(*)(void))real;
    return moved_defaults;
  }
  if ((is("attention results") || is("matmul results")) && strcmp(name, "ggml_backend_tensor_get") == 0) {
    real_get = (void (*)(const struct ggml_tensor*, void*, size_t, size_t))real;
    return other_results;
  }
  if (is("decoder") && strcmp(name, "onpolicy_decoder") == 0) {
    real_decoder = (const struct decoder* (*)(void))real;
    return other_decoder;
  }
  if (is("formulas") && strcmp(name, "ggml_rms_norm") == 0) {
    real_norm = (struct ggml_tensor * (*)(struct ggml_context*, struct ggml_tensor*, float)) real;
    return other_norm;
  }
  return real;
}
