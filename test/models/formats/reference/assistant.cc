// The bare engine, for comparison: reads lines of a count and token ids, the last of which was sampled, and prints what an assistant of
// Gemma 4 drafts behind each: one line each, for each draft its id and how far its logit is above the next best. The first `count` tokens
// are one batch, the others one each.
// usage: assistant <libraries folder> <model> <assistant> <drafts> < lines
#include <ggml-backend.h>
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

// The library exports these, and no header has them.
void llama_set_embeddings_nextn(llama_context* context, bool value, bool masked);
float* llama_get_embeddings_nextn_ith(llama_context* context, int32_t row);

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all_from_path(argv[1]);
  llama_model* model = llama_model_load_from_file(argv[2], llama_model_default_params());
  llama_model* assistant = llama_model_load_from_file(argv[3], llama_model_default_params());
  if (!model || !assistant) return 3;
  llama_context_params params = llama_context_default_params();
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.n_threads = params.n_threads_batch = 1;
  params.n_ctx = params.n_batch = 512;
  const int vocab_size = llama_vocab_n_tokens(llama_model_get_vocab(model));
  const int width = llama_model_n_embd(model);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    int32_t count = 0;
    words >> count;
    std::vector<llama_token> tokens;
    for (llama_token token; words >> token;) tokens.push_back(token);
    const auto before = static_cast<int32_t>(tokens.size()) - 1;
    llama_context* context = llama_init_from_model(model, params);
    llama_context_params sharing = params;
    sharing.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
    sharing.ctx_other = context;
    llama_context* drafting = context ? llama_init_from_model(assistant, sharing) : nullptr;
    if (!drafting) return 4;
    llama_set_embeddings_nextn(context, true, false);
    llama_set_embeddings_nextn(drafting, true, true);
    for (int32_t at = 0, size = count; at < before; at += size, size = 1) {
      if (llama_decode(context, llama_batch_get_one(&tokens[static_cast<size_t>(at)], size)) != 0) return 5;
      count = size;
    }
    const float* state = llama_get_embeddings_nextn_ith(context, count - 1);
    std::vector<float> hidden(state, state + width);
    llama_token token = tokens.back();
    for (int i = 0; i < std::atoi(argv[4]); ++i) {
      llama_pos position = before;  // the same for all drafts
      int8_t wants_logits = 1;
      llama_batch batch = llama_batch_get_one(&token, 1);
      batch.embd = hidden.data();
      batch.pos = &position;
      batch.logits = &wants_logits;
      if (llama_decode(drafting, batch) != 0) return 6;
      const float* logits = llama_get_logits_ith(drafting, 0);
      const auto best = static_cast<int>(std::max_element(logits, logits + vocab_size) - logits);
      float next = -INFINITY;
      for (int id = 0; id < vocab_size; ++id)
        if (id != best) next = std::max(next, logits[id]);
      std::printf("%d %g ", best, static_cast<double>(logits[best] - next));
      state = llama_get_embeddings_nextn_ith(drafting, 0);
      hidden.assign(state, state + width);
      token = best;
    }
    std::printf("\n");
    llama_free(drafting);
    llama_free(context);
  }
  llama_model_free(assistant);
  llama_model_free(model);
  return 0;
}
