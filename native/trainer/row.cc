#include "trainer/row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace onpolicy::training {
namespace {

constexpr uint16_t kMinusInfinity = 0xFC00;  // as a 16-bit float

[[noreturn]] void RefuseRow(const std::string& message) { throw Failure("INVALID_REQUEST", message); }

bool IsNear(const PackedRow& row, int64_t i, int64_t j, int64_t window) {
  return row.positions[static_cast<size_t>(i)] - row.positions[static_cast<size_t>(j)] < window;
}

// Returns the end of the block of queries that begins at `start`: the last end of a group in its second half, if any, because the
// keys of a group in two blocks are gathered and multiplied twice.
int64_t BlockEnd(const PackedRow& row, int64_t start, int64_t most) {
  const int64_t end = std::min(row.size(), start + most);
  for (int64_t i = end; i > start + most / 2 && i < row.size(); --i)
    if (row.group_ids[static_cast<size_t>(i)] != row.group_ids[static_cast<size_t>(i - 1)]) return i;
  return end;
}

// Returns, in order, the groups with tokens before `start` that the tokens [start, end) see.
std::vector<int32_t> GroupsSeen(const PackedRow& row, int64_t start, int64_t end) {
  std::vector<int32_t> groups;
  for (const std::vector<int32_t>* ids : {&row.group_ids, &row.parent_ids}) groups.insert(groups.end(), ids->begin() + start, ids->begin() + end);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

void JoinRanges(std::vector<KeyRange>* ranges) {
  const auto gap_after = [](auto range) { return std::next(range)->start - range->start - range->count; };
  while (ranges->size() > kMaxRanges) {
    auto joined = ranges->begin();
    for (auto range = ranges->begin(); std::next(range) != ranges->end(); ++range)
      if (gap_after(range) < gap_after(joined)) joined = range;
    joined->count += gap_after(joined) + std::next(joined)->count;
    ranges->erase(std::next(joined));
  }
}

}  // namespace

bool AreAlike(const PackedRow& row, int64_t i, int64_t j) {
  const auto a = static_cast<size_t>(i), b = static_cast<size_t>(j);
  return row.group_ids[a] == row.group_ids[b] && row.parent_ids[a] == row.parent_ids[b];
}

bool Sees(const PackedRow& row, int64_t i, int64_t j) {
  const auto a = static_cast<size_t>(i), b = static_cast<size_t>(j);
  return j <= i && (row.group_ids[a] == row.group_ids[b] || row.parent_ids[a] == row.group_ids[b]);
}

std::vector<int32_t> PackedRow::AllPositions() const {
  std::vector<int32_t> all;
  for (int64_t i = 0; i + 1 < kPositions; ++i) all.insert(all.end(), positions.begin(), positions.end());
  all.resize(static_cast<size_t>(kPositions * size()));
  return all;
}

void PackedRow::Check(const Shape& shape) const {
  const int64_t vocabulary = shape.vocabulary;
  if (tokens.empty()) RefuseRow("tokens: expected at least one");
  for (const auto* column : {&positions, &group_ids, &parent_ids})
    if (column->size() != tokens.size()) RefuseRow("a row's columns differ in length");
  if (logit_rows.size() != target_tokens.size())
    RefuseRow("logitRows and targetTokens differ in length");
  if (logit_rows.empty()) RefuseRow("targetTokens: expected at least one");
  if (!temperatures.empty() && temperatures.size() != target_tokens.size()) RefuseRow("temperatures and targetTokens differ in length");
  for (float temperature : temperatures)
    if (!(temperature > 0) || !std::isfinite(1 / temperature) || !std::isfinite(temperature))
      RefuseRow("temperatures: expected finite numbers above 0, got " + std::to_string(temperature));
  for (int32_t token : tokens)
    if (token < 0 || token >= vocabulary) RefuseRow("tokens: " + std::to_string(token) + " is no token of the model");
  for (int32_t token : target_tokens)
    if (token < 0 || token >= vocabulary)
      RefuseRow("targetTokens: " + std::to_string(token) + " is no token of the model");
  for (int32_t position : positions)
    if (position < 0) RefuseRow("positions: expected integers >= 0, got " + std::to_string(position));
  for (int32_t index : logit_rows)
    if (index < 0 || index >= size()) RefuseRow("logitRows: " + std::to_string(index) + " is outside the row");
  if (!experts.empty()) CheckExperts(shape);
}

void PackedRow::CheckExperts(const Shape& shape) const {
  const int64_t used = shape.experts_used, expected = size() * shape.expert_layers() * used;
  if (expected == 0) RefuseRow("routedExperts: expected none, as this model has no experts");
  if (static_cast<int64_t>(experts.size()) != expected)
    RefuseRow("routedExperts: expected " + std::to_string(expected) + " numbers, " + std::to_string(used) + " for each token and layer, got " +
              std::to_string(experts.size()));
  for (auto first = experts.begin(); first != experts.end(); first += used) {
    const auto end = first + used;
    if (std::count(first, end, kOwnChoice) == used) continue;
    for (auto one = first; one != end; ++one)
      if (*one < 0 || *one >= shape.experts || std::find(first, one, *one) != one)
        RefuseRow("routedExperts: expected different numbers from 0 to " + std::to_string(shape.experts - 1) +
                  " for each token and layer, or -1 for all of them, got " + std::to_string(*one));
  }
}

void PackedRow::Pad(int64_t multiple) {
  // Each padding token is a separate group, with a unique id.
  std::vector<int32_t> taken = group_ids;
  taken.insert(taken.end(), parent_ids.begin(), parent_ids.end());
  std::sort(taken.begin(), taken.end());
  int32_t free_id = std::numeric_limits<int32_t>::min();
  auto next_free = [&] {
    while (std::binary_search(taken.begin(), taken.end(), free_id)) ++free_id;
    return free_id++;
  };
  const size_t filled = tokens.size();
  while (size() % multiple != 0) {
    const int32_t id = next_free();
    tokens.push_back(0);
    positions.push_back(0);
    group_ids.push_back(id);
    parent_ids.push_back(id);
  }
  if (!experts.empty()) experts.resize(experts.size() / filled * tokens.size(), kOwnChoice);
}

AttentionPlan PlanAttention(const PackedRow& row, int64_t window, int64_t most_queries) {
  AttentionPlan plan;
  const int64_t size = row.size();
  for (int64_t start = 0, end = 0; start < size; start = end) {
    end = BlockEnd(row, start, most_queries);
    QueryBlock block{.start = start, .count = end - start, .keys = {}};
    const std::vector<int32_t> groups = GroupsSeen(row, start, end);
    const auto is_seen = [&](int64_t j) {  // a token of the block sees itself
      return j >= start || std::binary_search(groups.begin(), groups.end(), row.group_ids[static_cast<size_t>(j)]);
    };
    for (int64_t at = 0; at < end; at += kRowMultiple) {
      const int64_t stop = std::min(size, at + kRowMultiple);
      bool any = false;
      for (int64_t j = at; j < std::min(end, stop) && !any; ++j) any = is_seen(j);
      if (!any) continue;
      if (!block.keys.empty() && block.keys.back().start + block.keys.back().count == at)
        block.keys.back().count += stop - at;
      else
        block.keys.push_back({at, stop - at});
    }
    JoinRanges(&block.keys);
    for (const KeyRange& range : block.keys) block.key_count += range.count;
    plan.blocks.push_back(std::move(block));
  }
  for (QueryBlock& block : plan.blocks) {
    block.mask_offset = plan.mask_values;
    plan.mask_values += static_cast<size_t>(block.count * block.key_count);
  }
  plan.first_local_mask = plan.mask_values;
  if (window > 0) plan.mask_values *= 2;
  return plan;
}

std::vector<uint16_t> MasksOf(const PackedRow& row, int64_t window, const AttentionPlan& plan) {
  std::vector<uint16_t> masks;
  masks.reserve(plan.mask_values);
  auto add = [&](auto sees) {
    for (const QueryBlock& block : plan.blocks)
      for (int64_t i = block.start; i < block.start + block.count; ++i)
        for (const KeyRange& range : block.keys)
          for (int64_t j = range.start; j < range.start + range.count; ++j)
            masks.push_back(sees(i, j) ? 0 : kMinusInfinity);
  };
  add([&](int64_t i, int64_t j) { return Sees(row, i, j); });
  if (window > 0) add([&](int64_t i, int64_t j) { return Sees(row, i, j) && IsNear(row, i, j, window); });
  return masks;
}

}  // namespace onpolicy::training
