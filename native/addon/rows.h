// Rows to sample and score from JavaScript -> RowsInput; their results -> columns.
#pragma once
#include <napi.h>

#include <vector>

#include "addon/arguments.h"
#include "engine/row-sampler.h"

namespace onpolicy {

// Fills `input` from { samplers, matchers, drafts, hooked, scoreRows }. Checks everything except the indices of rows.
void ReadRows(const Fields& step, int32_t vocab_size, RowsInput& input);

// Copies the masked and biased row of hooked sample `index` into the array, or back. Arguments: (index, row: Float32Array).
void CopyOut(RowSampler& rows, const Napi::CallbackInfo& info);
void CopyIn(RowSampler& rows, const Napi::CallbackInfo& info);

// Returns the indices of hooked samples, ascending.
std::vector<int32_t> ReadIndices(Napi::Value value);

// Returns columns of (rows) instead of an object per row. Alternatives of all rows are concatenated.
Napi::Object ToRows(Napi::Env env, const std::vector<RowResult>& rows);

// Returns { samples, scores }.
Napi::Object ToSamplesAndScores(Napi::Env env, const RowsOutput& output);

}  // namespace onpolicy
