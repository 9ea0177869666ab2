// A vocabulary, schemas with documents as token ids -> compile and mask times of llama.cpp's own grammars, of the shipped libraries.
// Input lines: the index of a schema, the schema, the number of documents, the ids of each. Output lines: the index and
// milliseconds of a compilation; of each document, whether it was accepted, and microseconds of each mask.
#include <json-schema-to-grammar.h>
#include <llama.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

struct FreeSampler {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using Sampler = std::unique_ptr<llama_sampler, FreeSampler>;

// Times the mask before each token; false where one is not allowed.
bool Walk(const llama_vocab* vocab, llama_sampler* grammar, const std::vector<llama_token>& ids, std::string* times) {
  const int32_t size = llama_vocab_n_tokens(vocab);
  std::vector<llama_token_data> candidates(static_cast<size_t>(size));
  for (llama_token id : ids) {
    for (int32_t i = 0; i < size; i++) candidates[static_cast<size_t>(i)] = {i, 0.0f, 0.0f};
    llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
    const Clock::time_point start = Clock::now();
    llama_sampler_apply(grammar, &array);
    *times += " " + std::to_string(MicrosecondsSince(start));
    if (std::isinf(candidates[static_cast<size_t>(id)].logit)) return false;
    llama_sampler_accept(grammar, id);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model* const model = llama_model_load_from_file(argv[1], params);
  if (model == nullptr) {
    std::fprintf(stderr, "gbnf: cannot read %s\n", argv[1]);
    return 1;
  }
  const llama_vocab* const vocab = llama_model_get_vocab(model);
  for (std::string index; std::getline(std::cin, index);) {
    std::string schema, line;
    std::getline(std::cin, schema);
    std::getline(std::cin, line);
    std::vector<std::vector<llama_token>> documents(std::stoul(line));
    for (auto& ids : documents) {
      std::getline(std::cin, line);
      std::istringstream words(line);
      for (llama_token id; words >> id;) ids.push_back(id);
    }
    try {
      const Clock::time_point start = Clock::now();
      const std::string text = json_schema_to_grammar(common_json::parse(schema));
      const Sampler compiled(llama_sampler_init_grammar(vocab, text.c_str(), "root"));
      const double compile_ms = MicrosecondsSince(start) / 1000;
      if (!compiled) throw std::exception();
      std::cout << index << " " << compile_ms << std::endl;
      for (const auto& ids : documents) {
        const Sampler grammar(llama_sampler_clone(compiled.get()));
        std::string times;
        const bool is_accepted = Walk(vocab, grammar.get(), ids, &times);
        std::cout << (is_accepted ? "accepted" : "rejected") << times << std::endl;
      }
    } catch (const std::exception&) {
      std::cout << index << " refused" << std::endl;
    }
  }
  llama_model_free(model);
  return 0;
}
