// Rows to sample and score from JavaScript -> RowsInput; their results -> columns.
#pragma once
#include <napi.h>

#include <vector>

#include "napi/arguments.h"
#include "rows/row-sampler.h"

namespace onpolicy {

// Fills `input` from { samplers, matchers, drafts, hooked, scoreRows }. Checks all but the indices of rows.
void ReadRows(const Fields& step, int32_t vocab_size, RowsInput& input);

// The masked and biased row of hooked sample `index` in `source`; throws when none waits.
template <typename Source>
float* PreparedRow(Source& source, Napi::Value index) {
  float* row = source.PreparedRow(static_cast<size_t>(ReadInteger(index, "index")));
  if (row == nullptr) RefuseField(index.Env(), "index", "a row that waits");
  return row;
}

// (index, row: Float32Array): copies the prepared row of hooked sample `index` into the array, or back.
template <typename Source>
void CopyOut(Source& source, const Napi::CallbackInfo& info) {
  const float* prepared = PreparedRow(source, info[0]);
  std::copy_n(prepared, source.vocab_size(), ReadVocabularyRow(info[1], "row", source.vocab_size()).Data());
}
template <typename Source>
void CopyIn(Source& source, const Napi::CallbackInfo& info) {
  float* prepared = PreparedRow(source, info[0]);
  std::copy_n(ReadVocabularyRow(info[1], "row", source.vocab_size()).Data(), source.vocab_size(), prepared);
}

// Indices of hooked samples, ascending.
std::vector<int32_t> ReadIndices(Napi::Value value);

// Columns of (rows) instead of an object per row; alternatives of all rows concatenated.
Napi::Object ToRows(Napi::Env env, const std::vector<RowResult>& rows);

// { samples, scores }
Napi::Object ToSamplesAndScores(Napi::Env env, const RowsOutput& output);

}  // namespace onpolicy
