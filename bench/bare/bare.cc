// Settings as key=value words -> two lines, one when the prompts are computed, and one of JSON: when each step of bare llama_decode
// ended, with no sampling at all.
// Every step decodes one token of each sequence and asks for its logits; the tokens are random and fixed.
// With commanded=1 -> for each number read, a line with the milliseconds of a new prompt of so many tokens; the last one's logits
// are computed. `prompt` is the longest.
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "bare: %s\n", message.c_str());
  std::exit(1);
}

// Milliseconds of the clock that all processes share.
double SharedMs() {
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

class Settings {
 public:
  Settings(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
      const char* equals = std::strchr(argv[i], '=');
      if (equals == nullptr) Fail(std::string("expected key=value, got ") + argv[i]);
      values_[std::string(argv[i], equals - argv[i])] = equals + 1;
    }
  }
  std::string Text(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) Fail("missing setting " + key);
    return found->second;
  }
  int Integer(const std::string& key, int fallback) const {
    const auto found = values_.find(key);
    return found == values_.end() ? fallback : std::atoi(found->second.c_str());
  }

 private:
  std::map<std::string, std::string> values_;
};

// Tokens of one llama_decode call.
class Batch {
 public:
  explicit Batch(int capacity) : batch_(llama_batch_init(capacity, 0, 1)) {}
  ~Batch() { llama_batch_free(batch_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void Clear() { batch_.n_tokens = 0; }
  int size() const { return batch_.n_tokens; }
  void Add(llama_token token, llama_pos position, llama_seq_id sequence, bool wants_logits) {
    const int i = batch_.n_tokens++;
    batch_.token[i] = token;
    batch_.pos[i] = position;
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = sequence;
    batch_.logits[i] = wants_logits;
  }
  void Decode(llama_context* context) {
    const int code = llama_decode(context, batch_);
    if (code != 0) Fail("llama_decode returned " + std::to_string(code));
  }

 private:
  llama_batch batch_;
};

// The CPU backend's own functions: it is loaded at run time, so they are asked for by name.
ggml_threadpool_t NewThreadpool(int threads, int poll) {
  ggml_backend_reg_t cpu = ggml_backend_dev_backend_reg(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
  const auto create = reinterpret_cast<decltype(&ggml_threadpool_new)>(
      ggml_backend_reg_get_proc_address(cpu, "ggml_threadpool_new"));
  if (create == nullptr) Fail("the CPU backend offers no thread pool");
  ggml_threadpool_params params = ggml_threadpool_params_default(threads);
  params.poll = poll;
  return create(&params);
}

llama_context_params ContextParams(const Settings& settings, int sequences, int prompt, int steps, int threads) {
  llama_context_params params = llama_context_default_params();
  const int per_sequence = (prompt + steps + 255) / 256 * 256;
  const int slots = settings.Integer("slots", sequences);  // sequence ids that the context has room for
  params.n_ctx = settings.Integer("n_ctx", per_sequence * slots);
  params.n_batch = settings.Integer("n_batch", 2048);
  params.n_ubatch = settings.Integer("n_ubatch", 512);
  params.n_seq_max = slots;
  params.n_outputs_max = slots;
  params.n_threads = threads;
  params.n_threads_batch = threads;
  params.flash_attn_type = static_cast<llama_flash_attn_type>(settings.Integer("flash_attn", -1));
  params.kv_unified = settings.Integer("kv_unified", 1) != 0;
  params.no_perf = true;
  return params;
}

// A prompt for each number of standard input.
void RunCommands(llama_context* context, Batch& batch, const std::function<llama_token()>& next_token) {
  const int batch_tokens = static_cast<int>(llama_n_batch(context));
  for (int prompt; std::cin >> prompt;) {
    llama_memory_clear(llama_get_memory(context), true);
    batch.Clear();
    const double start = SharedMs();
    for (int position = 0; position < prompt; position++) {
      batch.Add(next_token(), position, 0, position == prompt - 1);
      if (batch.size() < batch_tokens && position < prompt - 1) continue;
      batch.Decode(context);
      batch.Clear();
    }
    llama_synchronize(context);
    std::printf("%.3f\n", SharedMs() - start);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings(argc, argv);
  const int sequences = settings.Integer("sequences", 1);
  const int prompt = settings.Integer("prompt", 32);
  const int steps = settings.Integer("steps", 64);
  const int threads = settings.Integer("threads", 2);
  const int gpu_layers = settings.Integer("gpu_layers", 0);

  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all_from_path(settings.Text("libraries").c_str());
  llama_backend_init();
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = gpu_layers;
  llama_model* model = llama_model_load_from_file(settings.Text("model").c_str(), model_params);
  if (model == nullptr) Fail("the model does not load");
  llama_context* context = llama_init_from_model(model, ContextParams(settings, sequences, prompt, steps, threads));
  if (context == nullptr) Fail("no context");
  if (settings.Integer("threadpool", 1) != 0) {
    ggml_threadpool_t pool = NewThreadpool(threads, settings.Integer("poll", 50));
    llama_attach_threadpool(context, pool, pool);
  }

  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  uint32_t state = 1;
  const auto next_token = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<llama_token>(static_cast<uint64_t>(state) * vocabulary >> 32);
  };

  const int batch_tokens = static_cast<int>(llama_n_batch(context));
  Batch batch(std::max(batch_tokens, sequences));
  if (settings.Integer("commanded", 0) != 0) {
    RunCommands(context, batch, next_token);
    std::_Exit(0);
  }
  const bool is_shared = settings.Integer("shared", 0) != 0;  // one prompt for all sequences
  const double start = SharedMs();
  for (int sequence = 0; sequence < (is_shared ? 1 : sequences); sequence++)
    for (int position = 0; position < prompt; position++) {
      batch.Add(next_token(), position, sequence, position == prompt - 1);
      if (batch.size() == batch_tokens) {
        batch.Decode(context);
        batch.Clear();
      }
    }
  if (batch.size() > 0) batch.Decode(context);
  for (int sequence = 1; is_shared && sequence < sequences; sequence++)
    llama_memory_seq_cp(llama_get_memory(context), 0, sequence, -1, -1);
  llama_synchronize(context);
  std::printf("prompts\n");
  std::fflush(stdout);

  std::vector<double> step_ends;  // (steps) milliseconds
  double checksum = 0;
  for (int step = 0; step < steps; step++) {
    batch.Clear();
    for (int sequence = 0; sequence < sequences; sequence++)
      batch.Add(next_token(), prompt + step, sequence, true);
    batch.Decode(context);
    for (int row = 0; row < sequences; row++) checksum += llama_get_logits_ith(context, row)[0];
    step_ends.push_back(SharedMs());
  }

  std::printf("{\"startMs\":%.4f,\"stepEndsMs\":[", start);
  for (size_t i = 0; i < step_ends.size(); i++) std::printf("%s%.4f", i ? "," : "", step_ends[i]);
  std::printf("],\"checksum\":%.3f}\n", checksum);
  llama_free(context);
  llama_model_free(model);
  std::fflush(stdout);
  std::_Exit(0);
}
