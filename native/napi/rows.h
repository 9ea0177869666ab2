// Rows to sample and score as JavaScript gives them, and what became of them as columns.
#pragma once
#include <napi.h>

#include <algorithm>
#include <vector>

#include "rows/row-sampler.h"

namespace onpolicy {

template <typename Array, typename T>
Array ToTyped(Napi::Env env, const std::vector<T>& values) {
  Array array = Array::New(env, values.size());
  std::copy(values.begin(), values.end(), array.Data());
  return array;
}

// The Int32Array of this name; empty when absent.
std::vector<int32_t> ReadInts(const Napi::Object& object, const char* name);

// Fills `input` from { samplers, matchers, hooked, scoreRows }. Checks all but the rows that samples and scores stand in.
void ReadRows(const Napi::Object& object, int32_t vocab_size, RowsInput& input);

// Columns instead of an object per row: (rows) each, alternatives laid end to end.
Napi::Object ToRows(Napi::Env env, const std::vector<RowResult>& rows);

// { samples, scores }
Napi::Object ToSamplesAndScores(Napi::Env env, const RowsOutput& output);

}  // namespace onpolicy
