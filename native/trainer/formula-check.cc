#include "trainer/formula-check.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/file-path.h"
#include "engine-assumptions/table/assumptions.h"
#include "engine/context.h"

namespace onpolicy::training {
namespace {

constexpr int32_t kTokens = 8;
constexpr uintmax_t kSmallBytes = uintmax_t{256} << 20;
// Greatest differences of log-probabilities: with the kernels of both, where only the engine looks GELU up in a table of 16-bit inputs; and with
// kernels of the engine, which round activations in another way.
constexpr float kOwnTolerance = 1e-2f, kPlainTolerance = 0.1f;

// Returns true for a file that this process has not compared yet.
bool IsNewFile(const std::string& path) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::lock_guard<std::mutex> lock(mutex);
  return seen.insert(path).second;
}

PackedRow SampleRow(int32_t vocabulary) {
  PackedRow row;
  for (int32_t i = 0; i < kTokens; ++i) {
    row.tokens.push_back((1 + i * 37) % vocabulary);
    row.positions.push_back(i);
    if (i == 0) continue;
    row.logit_rows.push_back(i - 1);
    row.target_tokens.push_back(row.tokens.back());
  }
  row.group_ids.assign(kTokens, 0);
  row.parent_ids.assign(kTokens, 0);
  return row;
}

// Returns the engine's log-probabilities of the row's targets.
std::vector<float> EngineLogprobs(const std::shared_ptr<Model>& model, const PackedRow& row, int threads) {
  ContextOptions options;
  options.kv_tokens = 256;
  options.batch_tokens = options.max_outputs = kTokens;
  options.max_sequences = 1;
  options.is_kv_unified = false;
  options.threads = threads;
  options.cache_type = GGML_TYPE_F32;
  StepInput input;
  input.tokens = row.tokens;
  input.positions = row.positions;
  input.sequences.assign(kTokens, 0);
  for (size_t i = 0; i < row.logit_rows.size(); ++i)
    input.score_rows.insert(input.score_rows.end(), {row.logit_rows[i], row.target_tokens[i], 0});
  std::vector<float> logprobs;
  for (const RowResult& score : Context::Create(model, options)->Step(input).scores) logprobs.push_back(static_cast<float>(score.logprob));
  return logprobs;
}

}  // namespace

void CheckFormulas(Trainer& trainer, const TrainerOptions& options) {
  if (!options.device.empty() || options.wide || !IsNewFile(options.model)) return;
  try {
    std::error_code unknown;
    ModelOptions loaded;
    loaded.path = options.model;
    loaded.use_gpu = false;
    loaded.packs = std::filesystem::file_size(FilePath(options.model), unknown) < kSmallBytes && !unknown;
    const std::shared_ptr<Model> model = Model::Load(loaded);
    const PackedRow row = SampleRow(model->vocab_size());
    const std::vector<float> engine = EngineLogprobs(model, row, options.threads);
    const std::vector<float> ours = trainer.Forward(row, /*gradients=*/false, /*adapter_off=*/true).logprobs;
    float difference = 0;
    for (size_t i = 0; i < ours.size(); ++i) difference = std::max(difference, std::abs(ours[i] - engine.at(i)));
    const float tolerance = model->kernels() == "plain" ? kPlainTolerance : kOwnTolerance;
    const std::string words = "log-probabilities of the trainer differ from the engine's by " + std::to_string(difference) + " for " + options.model;
    Check(Assumed::kFormulas, difference <= tolerance ? "" : words);
  } catch (const std::exception&) {  // the engine does not compute the file alone, so there is nothing to compare with
  }
}

}  // namespace onpolicy::training
