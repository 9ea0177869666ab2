#include "engine-assumptions/table/nodes.h"

#include <array>

#include "base/engine.h"
#include "engine-assumptions/table/assumptions.h"
#include "engine-assumptions/table/node-marks.h"

namespace onpolicy {
namespace {

// Returns the set of the first `count` words.
constexpr uint32_t FirstWords(int count) { return (1u << count) - 1; }

constexpr uint32_t kAllWords = FirstWords(kWords);
constexpr uint32_t kMarkWords = kAllWords & ~FirstWords(kPointer);
constexpr uint32_t kCounterWords = FirstWords(kPointer) & ~FirstWords(kCounters);

struct KnownOperation {
  ggml_op op;
  int sources;     // the first ones; the others are null
  uint32_t words;  // set of the parameters that have a meaning; the others are zero
};

// The operations whose nodes this library computes, reads, or relies on to compute row by row. As ggml.c of llama.cpp 0.4.0 and 0.5.0
// creates them.
constexpr KnownOperation kOperations[] = {
    // a view has a place of 64 bits
    {GGML_OP_RESHAPE, 1, 0}, {GGML_OP_VIEW, 1, FirstWords(2)}, {GGML_OP_PERMUTE, 1, FirstWords(4)}, {GGML_OP_TRANSPOSE, 1, 0},
    {GGML_OP_CONT, 1, 0}, {GGML_OP_CPY, 2, 0}, {GGML_OP_DUP, 1, 0}, {GGML_OP_REPEAT, 1, 0}, {GGML_OP_FILL, 1, FirstWords(1)},
    {GGML_OP_GET_ROWS, 2, 0}, {GGML_OP_SET_ROWS, 3, 0}, {GGML_OP_CONCAT, 2, FirstWords(1)}, {GGML_OP_PAD, 1, FirstWords(9)},
    {GGML_OP_ADD, 2, 0}, {GGML_OP_ADD_ID, 3, 0}, {GGML_OP_SUB, 2, 0}, {GGML_OP_MUL, 2, 0}, {GGML_OP_DIV, 2, 0},
    {GGML_OP_SCALE, 1, FirstWords(2)}, {GGML_OP_CLAMP, 1, FirstWords(2)}, {GGML_OP_UNARY, 1, FirstWords(5)}, {GGML_OP_GLU, 2, FirstWords(4)},
    {GGML_OP_SQR, 1, 0}, {GGML_OP_SQRT, 1, 0}, {GGML_OP_SUM_ROWS, 1, 0}, {GGML_OP_ARGSORT, 1, FirstWords(1)}, {GGML_OP_TOP_K, 1, 0},
    {GGML_OP_ROPE, 3, kAllWords},
    {GGML_OP_NORM, 1, FirstWords(1)}, {GGML_OP_RMS_NORM, 1, FirstWords(1)}, {GGML_OP_L2_NORM, 1, FirstWords(1)},
    {GGML_OP_SOFT_MAX, 3, FirstWords(2)},
    // the precision of sums, a hint, and the precision of the second source
    {GGML_OP_MUL_MAT, 2, FirstWords(2) | 1u << 3}, {GGML_OP_MUL_MAT_ID, 3, FirstWords(2) | 1u << 3},
    // the factor, ALiBi's slope, the cap of scores, the precision, and the most cells that a token sees
    {GGML_OP_FLASH_ATTN_EXT, 5, FirstWords(5)},
    {GGML_OP_SSM_CONV, 2, 0}, {GGML_OP_SSM_SCAN, 7, FirstWords(1)},
    {GGML_OP_GATED_DELTA_NET, 6, FirstWords(1)},  // the number of kept states
};

constexpr std::array<const KnownOperation*, GGML_OP_COUNT> kByNumber = [] {
  std::array<const KnownOperation*, GGML_OP_COUNT> table{};
  for (const KnownOperation& operation : kOperations) table[operation.op] = &operation;
  return table;
}();

// Returns true if the words in which this library stores its plan hold nothing else.
bool AreMarksOurs(const ggml_tensor* node) {
  if (IsMarked(node)) return true;
  const int32_t pending = node->op_params[kPending];
  return node->op_params[kMark] == 0 && (pending == 0 || pending == kWaiting) && !PointerOf(node);
}

uint32_t UnknownWords(const ggml_tensor* node, uint32_t known) {
  uint32_t set = 0;
  for (int word = 0; word < kWords; ++word)
    if (node->op_params[word] != 0) set |= 1u << word;
  set &= ~known;
  if ((set & kMarkWords) != 0 && AreMarksOurs(node)) set &= ~kMarkWords;
#ifdef _WIN32
  if (IsMarked(node) || node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID) set &= ~kCounterWords;
#endif
  return set;
}

// Nodes of one operation with its usual sources, which are never computed.
class SampleNodes {
 public:
  SampleNodes() : context_(Api().ggml_init({kTensors * Api().ggml_tensor_overhead(), nullptr, /*no_alloc=*/true})) {}
  ~SampleNodes() { Api().ggml_free(context_); }
  SampleNodes(const SampleNodes&) = delete;
  SampleNodes& operator=(const SampleNodes&) = delete;

  ggml_tensor* New(ggml_type type, std::array<int64_t, 4> shape) {
    return Api().ggml_new_tensor(context_, type, GGML_MAX_DIMS, shape.data());
  }
  ggml_context* context() const { return context_; }

 private:
  static constexpr size_t kTensors = 32;
  ggml_context* const context_;
};

}  // namespace

std::string UnknownPart(const ggml_tensor* node) {
  const KnownOperation* operation = node->op < GGML_OP_COUNT ? kByNumber[node->op] : nullptr;
  if (!operation) return "";
  const auto named = [&](const char* part, int index) {
    return std::string(Api().ggml_op_name(node->op)) + " has a " + part + " " + std::to_string(index);
  };
  for (int index = operation->sources; index < GGML_MAX_SRC; ++index)
    if (node->src[index]) return named("source", index);
  const uint32_t words = UnknownWords(node, operation->words);
  for (int word = 0; words != 0 && word < kWords; ++word)
    if ((words >> word & 1) != 0) return named("parameter", word);
  return "";
}

bool IsKnown(const ggml_tensor* node) {
  const std::string part = UnknownPart(node);
  if (part.empty()) return true;
  Break(Assumed::kNodes, part + " that it has not in the releases that this library knows");
  return false;
}

std::string UsedMark() {
  SampleNodes samples;
  ggml_context* context = samples.context();
  const auto floats = [&](int64_t a, int64_t b = 1, int64_t c = 1, int64_t d = 1) { return samples.New(GGML_TYPE_F32, {a, b, c, d}); };
  ggml_tensor *matrix = floats(32, 32), *cells = samples.New(GGML_TYPE_F16, {32, 256, 1, 1});
  ggml_tensor* attention = Api().ggml_flash_attn_ext(context, floats(32, 2), cells, cells, samples.New(GGML_TYPE_F16, {256, 2, 1, 1}), 1, 0, 0);
  Api().ggml_flash_attn_ext_add_sinks(attention, floats(1));
  ggml_tensor* heads = floats(16, 1, 2);
  const ggml_tensor* const nodes[] = {
      attention,
      Api().ggml_gated_delta_net(context, heads, heads, heads, floats(1, 1, 2), floats(1, 1, 2), floats(16, 16, 1), 1),
      Api().ggml_ssm_conv(context, floats(4, 32), floats(4, 32)),
      Api().ggml_mul_mat(context, matrix, matrix),
  };
  for (const ggml_tensor* node : nodes)
    if (const std::string part = UnknownPart(node); !part.empty()) return part;
  return "";
}

}  // namespace onpolicy
