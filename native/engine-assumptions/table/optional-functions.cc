#include "engine-assumptions/table/optional-functions.h"

#include <initializer_list>

#include "engine-assumptions/table/assumptions.h"

namespace onpolicy {
namespace {

// The names of a function: in C, and in C++ as GCC and Clang, and as Microsoft's compiler, write them.
using FunctionNames = std::initializer_list<const char*>;

constexpr FunctionNames kPrecisionNames = {"ggml_prec_set_acc", "ggml_mul_mat_set_prec"};
constexpr FunctionNames kSetEmbeddings = {"llama_set_embeddings_nextn", "_Z26llama_set_embeddings_nextnP13llama_contextbb",
                                          "?llama_set_embeddings_nextn@@YAXPEAUllama_context@@_N1@Z"};
constexpr FunctionNames kGetEmbeddings = {"llama_get_embeddings_nextn_ith", "_Z30llama_get_embeddings_nextn_ithP13llama_contexti",
                                          "?llama_get_embeddings_nextn_ith@@YAPEAMPEAUllama_context@@H@Z"};
constexpr FunctionNames kSetOffset = {"llama_set_nextn_layer_offset", "_Z28llama_set_nextn_layer_offsetP13llama_contexti",
                                      "?llama_set_nextn_layer_offset@@YAXPEAUllama_context@@H@Z"};
constexpr FunctionNames kSetInputs = {"llama_set_embeddings_layer_inp", "_Z30llama_set_embeddings_layer_inpP13llama_contextjb",
                                      "?llama_set_embeddings_layer_inp@@YAXPEAUllama_context@@I_N@Z"};
constexpr FunctionNames kGetInputs = {"llama_get_embeddings_layer_inp", "_Z30llama_get_embeddings_layer_inpP13llama_contextj",
                                      "?llama_get_embeddings_layer_inp@@YAPEAMPEAUllama_context@@I@Z"};

}  // namespace

void FindOptionalFunctions(Library* library, const std::function<void*(const char*)>& symbol_of) {
  const auto find = [&](auto& function, const FunctionNames& names, Assumed row) {
    for (const char* name : names)
      if (void* symbol = symbol_of(name)) {
        function.Set(symbol, name);
        Confirm(row);
        return;
      }
    function.Set(nullptr, *names.begin());
    Break(row, "the libraries export no " + std::string(*names.begin()));
  };
  find(library->set_matmul_precision, kPrecisionNames, Assumed::kPrecision);
  find(library->set_embeddings_nextn, kSetEmbeddings, Assumed::kHeadFunctions);
  find(library->get_embeddings_nextn_ith, kGetEmbeddings, Assumed::kHeadFunctions);
  find(library->set_nextn_layer_offset, kSetOffset, Assumed::kHeadFunctions);
  find(library->set_embeddings_layer_inp, kSetInputs, Assumed::kLayerFunctions);
  find(library->get_embeddings_layer_inp, kGetInputs, Assumed::kLayerFunctions);
}

std::string MovedDefault() {
  const llama_context_params context = Api().llama_context_default_params();
  const llama_model_params model = Api().llama_model_default_params();
  const struct {
    const char* field;
    bool is_expected;
  } fields[] = {
      {"llama_context_params.n_ctx", context.n_ctx == 512},
      {"llama_context_params.n_batch", context.n_batch == 2048},
      {"llama_context_params.n_ubatch", context.n_ubatch == 512},
      {"llama_context_params.n_seq_max", context.n_seq_max == 1},
      {"llama_context_params.n_threads", context.n_threads == GGML_DEFAULT_N_THREADS},
      {"llama_context_params.pooling_type", context.pooling_type == LLAMA_POOLING_TYPE_UNSPECIFIED},
      {"llama_context_params.flash_attn_type", context.flash_attn_type == LLAMA_FLASH_ATTN_TYPE_AUTO},
      {"llama_context_params.yarn_ext_factor", context.yarn_ext_factor == -1.0f},
      {"llama_context_params.cb_eval", context.cb_eval == nullptr},
      {"llama_context_params.type_k", context.type_k == GGML_TYPE_F16},
      {"llama_context_params.type_v", context.type_v == GGML_TYPE_F16},
      {"llama_context_params.abort_callback", context.abort_callback == nullptr},
      {"llama_context_params.offload_kqv", context.offload_kqv},
      {"llama_context_params.op_offload", context.op_offload},
      {"llama_context_params.swa_full", context.swa_full},
      {"llama_context_params.kv_unified", !context.kv_unified},
      {"llama_model_params.tensor_buft_overrides", model.tensor_buft_overrides == nullptr},
      {"llama_model_params.n_gpu_layers", model.n_gpu_layers == -1},
      {"llama_model_params.split_mode", model.split_mode == LLAMA_SPLIT_MODE_LAYER},
      {"llama_model_params.vocab_only", !model.vocab_only},
      {"llama_model_params.use_extra_bufts", model.use_extra_bufts},
  };
  for (const auto& [field, is_expected] : fields)
    if (!is_expected) return field;
  return "";
}

}  // namespace onpolicy
