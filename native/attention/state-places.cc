#include "attention/state-places.h"

#include <algorithm>
#include <cstring>

#include "attention/node-marks.h"

namespace onpolicy::attention {
namespace {

constexpr size_t kFloat = sizeof(float);

size_t NumbersOf(const ggml_tensor* state) { return static_cast<size_t>(state->ne[0] * state->ne[1] * state->ne[2]); }

// The numbers of a rule's outputs, which lie before its states.
size_t OutputsOf(const ggml_tensor* rule) {
  const ggml_tensor* v = rule->src[2];
  return static_cast<size_t>(v->ne[0] * v->ne[1] * v->ne[2] * v->ne[3]);
}

const char* BytesOf(const ggml_tensor* tensor) { return static_cast<const char*>(tensor->data); }

// What gathers the states of a rule's sequences out of the cache; null: they come from elsewhere.
const ggml_tensor* ReadingOf(const ggml_tensor* rule) {
  const ggml_tensor* reading = rule->src[5]->view_src;
  if (!reading || reading->op != GGML_OP_GET_ROWS || rule->src[5]->data != reading->data) return nullptr;
  const ggml_tensor *cells = reading->src[0], *rows = reading->src[1];
  const bool fits = cells->type == GGML_TYPE_F32 && rows->type == GGML_TYPE_I32 && rows->nb[0] == sizeof(int32_t) &&
                    cells->ne[0] == static_cast<int64_t>(NumbersOf(rule->src[5])) && rows->ne[0] == rule->src[5]->ne[3];
  return fits ? reading : nullptr;
}

// Whether a copy is of all states of a rule, snapshot by snapshot, into rows of the cache.
bool IsWriting(const ggml_tensor* copy, const ggml_tensor* rule, const ggml_tensor* cells) {
  const ggml_tensor *states = copy->src[0], *state = rule->src[5];
  const auto numbers = static_cast<int64_t>(NumbersOf(state));
  const int64_t kept = std::min<int64_t>(rule->op_params[0], rule->src[2]->ne[2]);
  return BytesOf(states) == BytesOf(rule) + OutputsOf(rule) * kFloat && states->type == GGML_TYPE_F32 && copy->type == GGML_TYPE_F32 &&
         states->ne[0] * states->ne[1] * states->ne[2] * states->ne[3] == numbers * state->ne[3] * kept && copy->ne[0] == numbers &&
         copy->ne[1] == state->ne[3] && copy->ne[2] == kept && copy->nb[0] == kFloat && copy->nb[1] == cells->nb[1] &&
         copy->nb[2] % cells->nb[1] == 0 && (kept == 1 || states->nb[2] == static_cast<size_t>(numbers * state->ne[3]) * kFloat) &&
         BytesOf(copy) >= BytesOf(cells) && BytesOf(copy) < BytesOf(cells) + static_cast<size_t>(cells->ne[1]) * cells->nb[1];
}

// Whether no sequence's state is written, by the rule or by the engine's copies of others, before it is read.
bool AreApart(const ggml_tensor* copy, const ggml_tensor* reading) {
  const ggml_tensor *cells = reading->src[0], *rows = reading->src[1];
  const auto row_bytes = static_cast<int64_t>(cells->nb[1]);
  const int64_t first = (BytesOf(copy) - BytesOf(cells)) / row_bytes, plane = static_cast<int64_t>(copy->nb[2]) / row_bytes;
  // Sequences of the cache that are not in this batch have the rows behind them, and are moved.
  const int64_t count = rows->ne[0], moved = rows->view_src ? rows->view_src->ne[0] : count;
  const auto* row = static_cast<const int32_t*>(rows->data);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t snapshot = 0; snapshot < copy->ne[2]; ++snapshot) {
      const int64_t at = row[i] - first - snapshot * plane;
      if (at >= 0 && at < (snapshot == 0 ? moved : count) && at != i) return false;
    }
  }
  return true;
}

}  // namespace

void PlanReading(const ggml_tensor* get_rows) {
  MarkOf(get_rows) = 0;
  IsPending(get_rows) = 1;
}

void PlanRule(const ggml_tensor* rule) {
  SetPointer(rule, nullptr);
  IsPending(rule) = 1;
}

void PlanWriting(const ggml_tensor* copy) {
  MarkOf(copy) = 0;
  const ggml_tensor* rule = copy->src[0]->view_src;
  if (!rule || rule->op != GGML_OP_GATED_DELTA_NET || MarkOf(rule) != kOurs || !IsPending(rule)) return;
  const ggml_tensor* reading = ReadingOf(rule);
  if (!reading || !IsPending(reading) || !IsWriting(copy, rule, reading->src[0]) || !AreApart(copy, reading)) return;
  MarkOf(copy) = MarkOf(reading) = kOurs;
  SetPointer(rule, copy);
}

// The engine may use the memory of the numbers of rows again behind this node. The node's own is free.
bool Read(const ggml_tensor* get_rows, int thread) {
  const bool is_left_out = MarkOf(get_rows) == kOurs;
  if (thread != 0) return is_left_out;
  IsPending(get_rows) = 0;
  const ggml_tensor* rows = get_rows->src[1];
  if (is_left_out) std::memcpy(get_rows->data, rows->data, static_cast<size_t>(rows->ne[0]) * sizeof(int32_t));
  return is_left_out;
}

bool IsLeftOut(const ggml_tensor* copy) { return MarkOf(copy) == kOurs; }

StatePlaces PlacesOf(const ggml_tensor* rule, int thread) {
  if (thread == 0) IsPending(rule) = 0;
  const ggml_tensor* state = rule->src[5];
  const auto* copy = static_cast<const ggml_tensor*>(PointerOf(rule));
  const size_t numbers = NumbersOf(state);
  if (!copy) {
    const auto sequences = static_cast<size_t>(state->ne[3]);
    return {BytesOf(state), state->nb[3], nullptr, static_cast<float*>(rule->data) + OutputsOf(rule), numbers, numbers * sequences};
  }
  const ggml_tensor* reading = state->view_src;
  return {BytesOf(reading->src[0]), reading->src[0]->nb[1], static_cast<const int32_t*>(reading->data),
          static_cast<float*>(copy->data), copy->nb[1] / kFloat, copy->nb[2] / kFloat};
}

}  // namespace onpolicy::attention
