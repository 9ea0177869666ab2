#include "engine-assumptions/expert-record.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>

#include "engine-assumptions/table/assumptions.h"
#include "engine-assumptions/table/names.h"

namespace onpolicy {
namespace {


// Limits by which the engine splits a batch into passes.
struct PassLimits {
  int32_t tokens;      // maximum of one pass
  bool is_sequential;  // only sequences with neighbouring numbers share one
  int32_t kept_tail;   // last tokens of a sequence that one must hold
};

// Returns the tokens of the next pass and removes them from `left` (tokens of each sequence): as many from each sequence as the shortest
// has.
std::vector<int32_t> NextPass(std::vector<std::vector<int32_t>>& left, const PassLimits& limits) {
  size_t taken = std::max<size_t>(1, static_cast<size_t>(limits.tokens) / left.size());
  for (const std::vector<int32_t>& tokens : left) taken = std::min(taken, tokens.size());
  const auto tail = static_cast<size_t>(limits.kept_tail);
  const auto leaves = [&](const std::vector<int32_t>& tokens) { return tokens.size() - taken; };
  const auto is_cut = [&](const std::vector<int32_t>& tokens) { return leaves(tokens) > 0 && leaves(tokens) < tail; };
  size_t sequences = 0;
  while (sequences < left.size() && !is_cut(left[sequences])) ++sequences;
  if (sequences == 0) {
    sequences = 1;
    const size_t all = left[0].size();
    taken = all <= static_cast<size_t>(limits.tokens) ? all : all - tail;
  }
  std::vector<int32_t> pass;
  for (size_t i = 0; i < sequences; ++i) pass.insert(pass.end(), left[i].begin(), left[i].begin() + static_cast<std::ptrdiff_t>(taken));
  return pass;
}

// Returns the order in which tokens are computed if each pass takes equally many from its sequences.
std::vector<int32_t> OrderByPasses(const int32_t* sequences, size_t count, const PassLimits& limits) {
  std::vector<int32_t> order;
  std::vector<bool> is_done(count, false);
  while (order.size() < count) {
    std::vector<int32_t> numbers;
    std::vector<std::vector<int32_t>> left;
    for (size_t i = 0; i < count; ++i) {
      if (is_done[i]) continue;
      const auto known = std::find(numbers.begin(), numbers.end(), sequences[i]);
      auto at = static_cast<size_t>(known - numbers.begin());
      if (known == numbers.end()) {
        if (limits.is_sequential && !numbers.empty() && sequences[i] != numbers.back() + 1) continue;
        numbers.push_back(sequences[i]);
        at = left.size();
        left.emplace_back();
      }
      left[at].push_back(static_cast<int32_t>(i));
    }
    for (int32_t token : NextPass(left, limits)) {
      is_done[static_cast<size_t>(token)] = true;
      order.push_back(token);
    }
  }
  return order;
}

// A copy on another device has the device's name and `#` before its own.
bool IsEmbedding(const ggml_tensor* table) {
  const char* name = std::strstr(table->name, kEmbeddingTable);
  return name && (name == table->name || name[-1] == '#');
}

// Returns the rows of an int32 matrix, without the padding between them.
std::vector<int32_t> NumbersOf(const ggml_tensor* matrix) {
  const auto rows = static_cast<size_t>(matrix->ne[1]), width = static_cast<size_t>(matrix->ne[0]);
  std::vector<int32_t> numbers;
  if (rows * width == 0) return numbers;
  const size_t stride = matrix->nb[1] / sizeof(int32_t);
  std::vector<int32_t> span((rows - 1) * stride + width);
  Api().ggml_backend_tensor_get(matrix, span.data(), 0, span.size() * sizeof(int32_t));
  for (size_t row = 0; row < rows; ++row) {
    const auto first = span.begin() + static_cast<std::ptrdiff_t>(row * stride);
    numbers.insert(numbers.end(), first, first + static_cast<std::ptrdiff_t>(width));
  }
  return numbers;
}

}  // namespace

void ExpertRecord::Attach(llama_context_params* params, bool is_recurrent) {
  is_unified_ = params->kv_unified || params->n_seq_max == 1;
  is_recurrent_ = is_recurrent;
  pass_tokens_ = static_cast<int32_t>(params->n_ubatch);
  params->cb_eval = See;
  params->cb_eval_user_data = this;
}

void ExpertRecord::Begin() {
  is_on_ = true;
  tokens_.clear();
  layers_.clear();
}

bool ExpertRecord::See(ggml_tensor* node, bool is_asked, void* data) {
  return InCallback([&] { return static_cast<ExpertRecord*>(data)->OnNode(node, is_asked); }, false);
}

bool ExpertRecord::OnNode(ggml_tensor* node, bool is_asked) {
  if (!is_asked) {
    Read(node);
    return true;
  }
  if (!is_on_) return false;
  if (node->op == GGML_OP_GET_ROWS && IsEmbedding(node->src[0])) {
    const std::vector<int32_t> tokens = NumbersOf(node->src[1]);
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }
  return std::strncmp(node->name, kChosenExperts, sizeof kChosenExperts - 1) == 0;
}

void ExpertRecord::Read(const ggml_tensor* node) {
  const int32_t layer = std::atoi(node->name + sizeof kChosenExperts - 1);
  auto known = std::find_if(layers_.begin(), layers_.end(), [&](const OfLayer& one) { return one.layer >= layer; });
  if (known == layers_.end() || known->layer != layer) known = layers_.insert(known, {layer, node->ne[0], {}});
  const std::vector<int32_t> ids = NumbersOf(node);
  known->ids.insert(known->ids.end(), ids.begin(), ids.end());
}

std::vector<int32_t> ExpertRecord::OrderOf(llama_context* context, const llama_batch& batch, const int32_t* sequences) const {
  const auto count = static_cast<size_t>(batch.n_tokens);
  const auto fits = [&](const std::vector<int32_t>& order) {
    return tokens_.size() == count &&
           std::equal(order.begin(), order.end(), tokens_.begin(), [&](int32_t at, int32_t token) { return batch.token[at] == token; });
  };
  std::vector<int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (!is_recurrent_ && is_unified_ && fits(order)) return order;
  const auto rollback = static_cast<int32_t>(Api().llama_n_rs_seq(context));
  order = OrderByPasses(sequences, count, {pass_tokens_, !is_unified_, rollback > 0 ? rollback + 1 : 0});
  return fits(order) ? order : std::vector<int32_t>{};
}

RoutedExperts ExpertRecord::Take(llama_context* context, const llama_batch& batch, const int32_t* sequences) const {
  const std::vector<int32_t> order = OrderOf(context, batch, sequences);
  if (layers_.empty()) Break(Assumed::kExpertNames, "no node of a graph with experts is named " + std::string(kChosenExperts) + "N");
  else if (order.empty()) Break(Assumed::kExpertNames, "the engine computed the tokens of a step in an unknown order");
  else Confirm(Assumed::kExpertNames);
  if (order.empty() || layers_.empty()) return {};
  std::vector<int32_t> outputs;  // tokens, in this order, whose logits are wanted
  std::copy_if(order.begin(), order.end(), std::back_inserter(outputs), [&](int32_t at) { return batch.logits[at] != 0; });
  const int64_t used = layers_[0].used;
  RoutedExperts experts{static_cast<int32_t>(layers_.size()), static_cast<int32_t>(used), {}};
  experts.ids.assign(order.size() * experts.width(), kNoExpert);
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    const OfLayer& from = layers_[layer];
    const size_t rows = from.ids.size() / static_cast<size_t>(from.used);
    if (from.used != used || (rows != order.size() && rows != outputs.size()))
      throw Failure("UNSUPPORTED", "return_routed_experts: layer " + std::to_string(from.layer) + " chooses experts in another way than the first");
    const std::vector<int32_t>& places = rows == order.size() ? order : outputs;
    for (size_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < used; ++i)
        experts.ids[static_cast<size_t>(places[row]) * experts.width() + layer * static_cast<size_t>(used) + static_cast<size_t>(i)] =
            static_cast<uint16_t>(from.ids[row * static_cast<size_t>(used) + static_cast<size_t>(i)]);
  }
  return experts;
}

}  // namespace onpolicy
