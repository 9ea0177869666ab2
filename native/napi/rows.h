// Rows to sample and score from JavaScript -> RowsInput; their results -> columns.
#pragma once
#include <napi.h>

#include <vector>

#include "napi/arguments.h"
#include "rows/row-sampler.h"

namespace onpolicy {

// Fills `input` from { samplers, matchers, drafts, hooked, scoreRows }. Checks all but the indices of rows.
void ReadRows(const Fields& step, int32_t vocab_size, RowsInput& input);

// (index, row: Float32Array): copies the masked and biased row of hooked sample `index` into the array, or back.
void CopyOut(RowSampler& rows, const Napi::CallbackInfo& info);
void CopyIn(RowSampler& rows, const Napi::CallbackInfo& info);

// Indices of hooked samples, ascending.
std::vector<int32_t> ReadIndices(Napi::Value value);

// Columns of (rows) instead of an object per row; alternatives of all rows concatenated.
Napi::Object ToRows(Napi::Env env, const std::vector<RowResult>& rows);

// { samples, scores }
Napi::Object ToSamplesAndScores(Napi::Env env, const RowsOutput& output);

}  // namespace onpolicy
