#include "engine-assumptions/attention/invariance.h"

#include "engine-assumptions/table/nodes.h"

namespace onpolicy::attention {
namespace {

// Returns true if ggml computes each row of the node independently, in an order that depends only on its width, or adds a sequence's tokens
// one after the other to its state.
bool IsRowByRow(ggml_op op) {
  switch (op) {
    case GGML_OP_NONE: case GGML_OP_RESHAPE: case GGML_OP_VIEW: case GGML_OP_PERMUTE: case GGML_OP_TRANSPOSE: case GGML_OP_CONT:
    case GGML_OP_CPY: case GGML_OP_DUP: case GGML_OP_GET_ROWS: case GGML_OP_SET_ROWS: case GGML_OP_CONCAT: case GGML_OP_REPEAT:
    case GGML_OP_ADD: case GGML_OP_ADD_ID: case GGML_OP_FILL: case GGML_OP_PAD: case GGML_OP_SUB: case GGML_OP_MUL: case GGML_OP_DIV: case GGML_OP_SCALE: case GGML_OP_CLAMP: case GGML_OP_UNARY:
    case GGML_OP_GLU: case GGML_OP_ROPE: case GGML_OP_NORM: case GGML_OP_RMS_NORM: case GGML_OP_L2_NORM: case GGML_OP_SOFT_MAX:
    case GGML_OP_SUM_ROWS: case GGML_OP_ARGSORT: case GGML_OP_TOP_K: case GGML_OP_SQR: case GGML_OP_SQRT:
    case GGML_OP_SSM_CONV: case GGML_OP_SSM_SCAN: case GGML_OP_GATED_DELTA_NET:
      return true;
    default:
      return false;
  }
}

// Returns true if ggml multiplies these weights by one row at a time. Packed weights are multiplied by as many rows as there are.
bool IsRowByRow(const ggml_tensor* weights) {
  if (weights->extra) return false;
  switch (weights->type) {
    case GGML_TYPE_Q2_K: case GGML_TYPE_Q3_K: case GGML_TYPE_Q5_K:
      return true;
    case GGML_TYPE_Q4_K: case GGML_TYPE_Q6_K:
#ifdef __aarch64__
      return false;  // two rows at a time, if the processor supports it
#else
      return true;
#endif
    default:
      return false;
  }
}

// Returns true if ggml multiplies an expert's matrix by one row at a time. It does, except for types that it unpacks when an expert has
// many rows.
bool AreExpertsRowByRow(const ggml_tensor* weights) {
  switch (weights->type) {
    case GGML_TYPE_IQ1_S: case GGML_TYPE_IQ1_M: case GGML_TYPE_IQ2_XXS: case GGML_TYPE_IQ2_XS: case GGML_TYPE_IQ2_S:
    case GGML_TYPE_IQ3_XXS: case GGML_TYPE_IQ3_S: case GGML_TYPE_IQ4_XS:
      return false;
    default:
      return !weights->extra;
  }
}

}  // namespace

std::string VariantNode(const ggml_tensor* node, bool is_ours) {
  const bool is_known = UnknownPart(node).empty();
  if (is_ours || (is_known && IsRowByRow(node->op))) return "";
  if (is_known && node->op == GGML_OP_MUL_MAT && IsRowByRow(node->src[0])) return "";
  if (is_known && node->op == GGML_OP_MUL_MAT_ID && AreExpertsRowByRow(node->src[0])) return "";
  std::string text = Api().ggml_op_name(node->op);
  if (const ggml_tensor* weights = node->src[0])
    text += " of " + std::string(weights->name) + " (" + Api().ggml_type_name(weights->type) + ")";
  return text;
}

}  // namespace onpolicy::attention
