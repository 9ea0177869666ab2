#include "engine-assumptions/attention/state-places.h"

#include <algorithm>
#include <cstring>

#include "engine-assumptions/table/node-marks.h"

namespace onpolicy::attention {
namespace {

constexpr size_t kFloat = sizeof(float);

size_t NumbersOf(const ggml_tensor* state) { return static_cast<size_t>(state->ne[0] * state->ne[1] * state->ne[2]); }

// Returns the number of a rule's outputs, which lie before its states.
size_t OutputsOf(const ggml_tensor* rule) {
  const ggml_tensor* v = rule->src[2];
  return static_cast<size_t>(v->ne[0] * v->ne[1] * v->ne[2] * v->ne[3]);
}

const char* BytesOf(const ggml_tensor* tensor) { return static_cast<const char*>(tensor->data); }

// Returns the node that gathers the states of `sequences`, of `numbers` floats each, from the cache. Returns null if the states come from
// elsewhere.
const ggml_tensor* ReadingOf(const ggml_tensor* states, int64_t numbers, int64_t sequences) {
  const ggml_tensor* reading = states->view_src;
  if (!reading || reading->op != GGML_OP_GET_ROWS || states->data != reading->data) return nullptr;
  const ggml_tensor *cells = reading->src[0], *rows = reading->src[1];
  const bool fits = cells->type == GGML_TYPE_F32 && rows->type == GGML_TYPE_I32 && rows->nb[0] == sizeof(int32_t) &&
                    cells->ne[0] == numbers && rows->ne[0] == sequences;
  return fits ? reading : nullptr;
}

// Returns true if a copy writes rows of the cache, one per sequence and one after the other. Some models write them as one long row.
bool IsIntoRows(const ggml_tensor* copy, const ggml_tensor* cells, int64_t sequences) {
  const bool is_by_row = copy->ne[0] == cells->ne[0] && copy->ne[1] == sequences && copy->nb[1] == cells->nb[1];
  const bool is_one_row = copy->ne[0] == cells->ne[0] * sequences && copy->ne[1] * copy->ne[2] * copy->ne[3] == 1 &&
                          cells->nb[1] == static_cast<size_t>(cells->ne[0]) * kFloat;
  return copy->type == GGML_TYPE_F32 && (is_by_row || is_one_row) && copy->nb[0] == kFloat && BytesOf(copy) >= BytesOf(cells) &&
         BytesOf(copy) < BytesOf(cells) + static_cast<size_t>(cells->ne[1]) * cells->nb[1];
}

// Returns true if a copy writes all states of a rule, snapshot by snapshot, into rows of the cache.
bool IsWriting(const ggml_tensor* copy, const ggml_tensor* rule, const ggml_tensor* cells) {
  const ggml_tensor *states = copy->src[0], *state = rule->src[5];
  const auto numbers = static_cast<int64_t>(NumbersOf(state));
  const int64_t kept = std::min<int64_t>(rule->op_params[0], rule->src[2]->ne[2]);
  return IsIntoRows(copy, cells, state->ne[3]) && BytesOf(states) == BytesOf(rule) + OutputsOf(rule) * kFloat &&
         states->type == GGML_TYPE_F32 && states->ne[0] * states->ne[1] * states->ne[2] * states->ne[3] == numbers * state->ne[3] * kept &&
         copy->ne[2] == kept && copy->nb[2] % cells->nb[1] == 0 &&
         (kept == 1 || states->nb[2] == static_cast<size_t>(numbers * state->ne[3]) * kFloat);
}

// Returns true if each sequence's state is read before the rule, or the engine's copies of other sequences, can overwrite it.
bool AreApart(const ggml_tensor* copy, const ggml_tensor* reading) {
  const ggml_tensor *cells = reading->src[0], *rows = reading->src[1];
  const auto row_bytes = static_cast<int64_t>(cells->nb[1]);
  const int64_t first = (BytesOf(copy) - BytesOf(cells)) / row_bytes, plane = static_cast<int64_t>(copy->nb[2]) / row_bytes;
  // The cache's sequences outside this batch have the rows behind it, and the engine moves them.
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

// Returns the node that reads from the cache the earlier tokens for a convolution's input: these, then new tokens, (sequences, channels,
// left + tokens). Returns null if they do not come from the cache.
const ggml_tensor* LeftReadingOf(const ggml_tensor* joined) {
  const ggml_tensor* left = joined->src[0];
  return joined->type == GGML_TYPE_F32 && joined->op_params[0] == 0 ? ReadingOf(left, left->ne[0] * left->ne[1], left->ne[2]) : nullptr;
}

bool HasOneTokenEach(const ggml_tensor* joined) {
  const ggml_tensor *left = joined->src[0], *token = joined->src[1];
  return token->ne[0] == 1 && token->nb[1] == kFloat && token->type == GGML_TYPE_F32 && (left->ne[0] == 2 || left->ne[0] == 3);
}

void PlanJoinedWriting(const ggml_tensor* copy, const ggml_tensor* joined) {
  const ggml_tensor *reading = LeftReadingOf(joined), *states = copy->src[0];
  if (!IsPending(joined) || !reading || !IsIntoRows(copy, reading->src[0], reading->ne[1]) || states->ne[0] != joined->src[0]->ne[0]) return;
  if (BytesOf(states) == BytesOf(joined)) {
    Mark(copy, true);
    return;
  }
  const bool is_last = BytesOf(states) == BytesOf(joined) + kFloat && states->ne[2] == reading->ne[1];
  if (!IsMarked(joined) || !IsPending(reading) || !is_last || !AreApart(copy, reading)) return;
  Mark(copy, true);
  Mark(reading, true);
  SetPointer(joined, copy);
}

// Joins one token of a sequence to the `kLeft` before it, in each channel. `to` receives the tokens left for the next step; it may be
// `left`.
template <int kLeft>
void JoinToken(const float* left, const float* token, float* joined, float* to, int64_t channels) {
  for (int64_t channel = 0; channel < channels; ++channel, left += kLeft, joined += kLeft + 1) {
    std::memcpy(joined, left, kLeft * kFloat);
    joined[kLeft] = token[channel];
    if (!to) continue;
    std::memcpy(to, joined + 1, kLeft * kFloat);
    to += kLeft;
  }
}

}  // namespace

void PlanReading(const ggml_tensor* get_rows) {
  Mark(get_rows, false);
  SetPending(get_rows);
}

void PlanJoining(const ggml_tensor* concat) {
  const bool is_ours = LeftReadingOf(concat) && HasOneTokenEach(concat);
  Mark(concat, is_ours);
  SetPending(concat);
}

void PlanRule(const ggml_tensor* rule) {
  SetPointer(rule, nullptr);
  SetPending(rule);
}

void PlanWriting(const ggml_tensor* copy) {
  Mark(copy, false);
  const ggml_tensor* rule = copy->src[0]->view_src;
  if (rule && rule->op == GGML_OP_CONCAT) return PlanJoinedWriting(copy, rule);
  if (!rule || rule->op != GGML_OP_GATED_DELTA_NET || !IsMarked(rule) || !IsPending(rule)) return;
  const ggml_tensor* state = rule->src[5];
  const ggml_tensor* reading = ReadingOf(state, static_cast<int64_t>(NumbersOf(state)), state->ne[3]);
  if (!reading || !IsPending(reading) || !IsWriting(copy, rule, reading->src[0]) || !AreApart(copy, reading)) return;
  Mark(copy, true);
  Mark(reading, true);
  SetPointer(rule, copy);
}

// Copies the row numbers, because the engine may reuse their memory after this node. The node's own memory is unused.
bool Read(const ggml_tensor* get_rows, int thread) {
  const bool is_left_out = IsMarked(get_rows);
  if (thread != 0) return is_left_out;
  EndPending(get_rows);
  const ggml_tensor* rows = get_rows->src[1];
  if (is_left_out) std::memcpy(get_rows->data, rows->data, static_cast<size_t>(rows->ne[0]) * sizeof(int32_t));
  return is_left_out;
}

bool Join(const ggml_tensor* concat, int thread, int threads) {
  if (thread == 0) EndPending(concat);
  if (!IsMarked(concat)) return false;
  const ggml_tensor *left = concat->src[0], *token = concat->src[1], *reading = left->view_src;
  const auto* copy = static_cast<const ggml_tensor*>(PointerOf(concat));
  const auto* rows = static_cast<const int32_t*>(reading->data);
  const int64_t taps = concat->ne[0], first = left->ne[1] * thread / threads, channels = left->ne[1] * (thread + 1) / threads - first;
  const auto join = taps == 3 ? JoinToken<2> : JoinToken<3>;
  const auto place = [](const ggml_tensor* tensor, size_t row_bytes, int64_t row, int64_t number) {
    return reinterpret_cast<float*>(static_cast<char*>(tensor->data) + static_cast<size_t>(row) * row_bytes) + number;
  };
  for (int64_t i = 0; i < left->ne[2]; ++i) {
    const int64_t kept = first * (taps - 1);
    join(copy ? place(reading->src[0], reading->src[0]->nb[1], rows[i], kept) : place(left, left->nb[2], i, kept),
         place(token, token->nb[2], i, first), place(concat, concat->nb[2], i, first * taps),
         copy ? place(copy, reading->src[0]->nb[1], i, kept) : nullptr, channels);
  }
  return true;
}

bool IsLeftOut(const ggml_tensor* copy) { return IsMarked(copy); }

StatePlaces PlacesOf(const ggml_tensor* rule, int thread) {
  if (thread == 0) EndPending(rule);
  const ggml_tensor* state = rule->src[5];
  const auto* copy = static_cast<const ggml_tensor*>(PointerOf(rule));
  const size_t numbers = NumbersOf(state);
  if (!copy) {
    const auto sequences = static_cast<size_t>(state->ne[3]);
    return {BytesOf(state), state->nb[3], nullptr, static_cast<float*>(rule->data) + OutputsOf(rule), numbers, numbers * sequences};
  }
  const ggml_tensor* reading = state->view_src;
  const size_t row_bytes = reading->src[0]->nb[1];
  return {BytesOf(reading->src[0]), row_bytes, static_cast<const int32_t*>(reading->data), static_cast<float*>(copy->data),
          row_bytes / kFloat, copy->nb[2] / kFloat};
}

}  // namespace onpolicy::attention
