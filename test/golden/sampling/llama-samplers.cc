// llama.cpp's own samplers, of the shipped libraries, on random rows -> llama-samplers.json: which tokens are left, and with which
// probabilities. From the root of a built clone, with L the folder of libllama in node_modules/@node-llama-cpp:
//   g++ -std=c++20 -Inative/include test/golden/sampling/llama-samplers.cc $L/libllama.*.so $L/libggml*.so -Wl,-rpath,$L -o /tmp/golden
//   /tmp/golden > test/golden/sampling/llama-samplers.json
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr int kSize = 150;
constexpr int kRows = 4;

std::vector<std::vector<float>> rows;
const char* separator = "";

void PrintLeft(const llama_token_data_array& left) {
  std::vector<llama_token_data> tokens(left.data, left.data + left.size);
  std::sort(tokens.begin(), tokens.end(), [](auto& a, auto& b) { return a.id < b.id; });
  double most = -INFINITY, total = 0;
  for (auto& token : tokens) most = std::max(most, double(token.logit));
  for (auto& token : tokens) total += std::exp(double(token.logit) - most);
  std::printf("[");
  const char* comma = "";
  for (auto& token : tokens) {
    const double p = std::exp(double(token.logit) - most) / total;
    if (p > 0) std::printf("%s[%d,%.7g]", comma, token.id, p), comma = ",";
  }
  std::printf("]");
}

std::vector<llama_token_data> Tokens(int row) {
  std::vector<llama_token_data> tokens;
  for (int id = 0; id < kSize; ++id) tokens.push_back({id, rows[row][id], 0});
  return tokens;
}

// Every row through the samplers that `make` makes, which have seen `history`.
template <class Make>
void Case(const char* plan, const std::vector<int>& history, Make make) {
  std::printf("%s\n{\"plan\":{%s},\"history\":[", separator, plan);
  for (size_t i = 0; i < history.size(); ++i) std::printf("%s%d", i ? "," : "", history[i]);
  std::printf("],\"left\":[");
  separator = ",";
  llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  make(chain);
  for (int token : history) llama_sampler_accept(chain, token);
  for (int row = 0; row < kRows; ++row) {
    std::vector<llama_token_data> tokens = Tokens(row);
    llama_token_data_array left = {tokens.data(), tokens.size(), -1, false};
    llama_sampler_apply(chain, &left);
    std::printf("%s", row ? "," : "");
    PrintLeft(left);
  }
  std::printf("]}");
  llama_sampler_free(chain);
}

// A sequence of rows through adaptive-p: the probability of each token before and after it, and the token that it drew.
void Adaptive(const char* plan, float temperature, llama_sampler* adaptive) {
  std::printf("%s\n{\"plan\":{%s},\"steps\":[", separator, plan);
  separator = ",";
  llama_sampler* heat = llama_sampler_init_temp(temperature);
  for (int step = 0; step < 12; ++step) {
    std::vector<llama_token_data> tokens = Tokens(step % kRows);
    llama_token_data_array left = {tokens.data(), tokens.size(), -1, false};
    llama_sampler_apply(heat, &left);
    std::printf("%s{\"before\":", step ? "," : "");
    PrintLeft(left);
    llama_sampler_apply(adaptive, &left);
    const llama_token token = left.data[left.selected].id;
    llama_sampler_accept(adaptive, token);
    std::printf(",\"token\":%d,\"left\":", token);
    PrintLeft(left);
    std::printf("}");
  }
  std::printf("]}");
  llama_sampler_free(heat);
  llama_sampler_free(adaptive);
}

// A sequence of rows through mirostat: what is left of each, and the token that it drew.
void Mirostat(const char* plan, float temperature, llama_sampler* mirostat) {
  std::printf("%s\n{\"plan\":{%s},\"steps\":[", separator, plan);
  separator = ",";
  llama_sampler* heat = llama_sampler_init_temp(temperature);
  for (int step = 0; step < 12; ++step) {
    std::vector<llama_token_data> tokens = Tokens(step % kRows);
    llama_token_data_array left = {tokens.data(), tokens.size(), -1, false};
    llama_sampler_apply(heat, &left);
    llama_sampler_apply(mirostat, &left);
    std::printf("%s{\"token\":%d,\"left\":", step ? "," : "", left.data[left.selected].id);
    PrintLeft(left);
    std::printf("}");
  }
  std::printf("]}");
  llama_sampler_free(heat);
  llama_sampler_free(mirostat);
}

}  // namespace

int main() {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 2.5f);
  for (int row = 0; row < kRows; ++row) {
    rows.emplace_back();
    for (int id = 0; id < kSize; ++id) rows[row].push_back(std::round(normal(random) * (1 + row) * 5e4f) / 1e5f);
  }
  std::printf("{\"rows\":[");
  for (int row = 0; row < kRows; ++row) {
    std::printf("%s[", row ? "," : "");
    for (int id = 0; id < kSize; ++id) std::printf("%s%.9g", id ? "," : "", double(rows[row][id]));
    std::printf("]");
  }
  std::printf("],\"cases\":[");

  const auto add = [](llama_sampler* chain, llama_sampler* sampler) { llama_sampler_chain_add(chain, sampler); };
  const std::vector<int> none;
  Case("\"typical_p\":0.5", none, [&](auto* c) { add(c, llama_sampler_init_typical(0.5f, 0)); });
  Case("\"typical_p\":0.95,\"temperature\":0.7", none, [&](auto* c) {
    add(c, llama_sampler_init_typical(0.95f, 0));
    add(c, llama_sampler_init_temp(0.7f));
  });
  Case("\"xtc_probability\":1,\"xtc_threshold\":0.1", none, [&](auto* c) { add(c, llama_sampler_init_xtc(1, 0.1f, 0, 1)); });
  Case("\"xtc_probability\":1,\"xtc_threshold\":0.02,\"min_p\":0.05,\"temperature\":1.4", none, [&](auto* c) {
    add(c, llama_sampler_init_min_p(0.05f, 0));
    add(c, llama_sampler_init_xtc(1, 0.02f, 0, 1));
    add(c, llama_sampler_init_temp(1.4f));
  });
  Case("\"dynatemp_range\":0.5,\"temperature\":0.8", none, [&](auto* c) { add(c, llama_sampler_init_temp_ext(0.8f, 0.5f, 1)); });
  Case("\"dynatemp_range\":1.5,\"dynatemp_exponent\":2.5,\"top_k\":20,\"temperature\":1.2", none, [&](auto* c) {
    add(c, llama_sampler_init_top_k(20));
    add(c, llama_sampler_init_temp_ext(1.2f, 1.5f, 2.5f));
  });
  Case("\"top_k\":40,\"typical_p\":0.9,\"top_p\":0.9,\"min_p\":0.02,\"xtc_probability\":1,\"xtc_threshold\":0.05,\"dynatemp_range\":0.3,"
       "\"temperature\":0.9",
       none, [&](auto* c) {
         add(c, llama_sampler_init_top_k(40));
         add(c, llama_sampler_init_typical(0.9f, 0));
         add(c, llama_sampler_init_top_p(0.9f, 0));
         add(c, llama_sampler_init_min_p(0.02f, 0));
         add(c, llama_sampler_init_xtc(1, 0.05f, 0, 1));
         add(c, llama_sampler_init_temp_ext(0.9f, 0.3f, 1));
       });

  Case("\"top_n_sigma\":1", none, [&](auto* c) { add(c, llama_sampler_init_top_n_sigma(1)); });
  Case("\"top_n_sigma\":1.7,\"top_k\":10,\"temperature\":0.7", none, [&](auto* c) {
    add(c, llama_sampler_init_top_n_sigma(1.7f));
    add(c, llama_sampler_init_top_k(10));
    add(c, llama_sampler_init_temp(0.7f));
  });
  Case("\"top_n_sigma\":0", none, [&](auto* c) { add(c, llama_sampler_init_top_n_sigma(0)); });

  std::vector<int> history, loop;
  for (int i = 0; i < 60; ++i) history.push_back(static_cast<int>(random() % 4));
  for (int i = 0; i < 40; ++i) loop.push_back(3 + i % 5);
  const auto dry = [&](const char* plan, const std::vector<int>& seen, float multiplier, float base, int allowed, int last) {
    Case(plan, seen, [&](auto* c) {
      add(c, llama_sampler_init_dry(nullptr, multiplier, base, allowed, last, nullptr, 0));
    });
  };
  dry("\"dry_multiplier\":0.8", history, 0.8f, 1.75f, 2, 1000);
  dry("\"dry_multiplier\":0.3,\"dry_base\":1.1,\"dry_allowed_length\":1,\"dry_penalty_last_n\":20", history, 0.3f, 1.1f, 1, 20);
  dry("\"dry_multiplier\":0.01,\"dry_base\":1.2,\"dry_allowed_length\":4", loop, 0.01f, 1.2f, 4, 1000);
  dry("\"dry_multiplier\":1,\"dry_base\":4,\"dry_allowed_length\":0", loop, 1, 4, 0, 1000);

  std::printf("\n],\"adaptive\":[");
  separator = "";
  Adaptive("\"adaptive_target\":0.4", 1, llama_sampler_init_adaptive_p(0.4f, 0.9f, 5));
  Adaptive("\"adaptive_target\":0.05,\"adaptive_decay\":0.5,\"temperature\":1.3", 1.3f, llama_sampler_init_adaptive_p(0.05f, 0.5f, 5));
  Adaptive("\"adaptive_target\":1,\"adaptive_decay\":0", 1, llama_sampler_init_adaptive_p(1, 0, 5));
  Adaptive("\"adaptive_target\":0,\"adaptive_decay\":0.99", 1, llama_sampler_init_adaptive_p(0, 0.99f, 5));
  std::printf("\n],\"mirostat\":[");
  separator = "";
  Mirostat("\"mirostat\":1", 1, llama_sampler_init_mirostat(kSize, 5, 5, 0.1f, 100));
  Mirostat("\"mirostat\":1,\"mirostat_tau\":3,\"mirostat_eta\":0.5,\"temperature\":1.3", 1.3f,
           llama_sampler_init_mirostat(kSize, 5, 3, 0.5f, 100));
  Mirostat("\"mirostat\":2,\"mirostat_tau\":2", 1, llama_sampler_init_mirostat_v2(5, 2, 0.1f));
  Mirostat("\"mirostat\":2,\"mirostat_tau\":4,\"mirostat_eta\":0.4,\"temperature\":0.8", 0.8f, llama_sampler_init_mirostat_v2(5, 4, 0.4f));
  std::printf("\n]}\n");
}
