// A GGUF file -> the frozen weights of a decoder, as tensors on the device, and the numbers that describe how they connect.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/graphs/device.h"
#include "trainer/graphs/graph.h"
#include "trainer/weights/file-map.h"
#include "trainer/weights/shape.h"

namespace onpolicy::training {

class Matmuls;

// y = weight x + bias. `transposed` is filled by Transpose. The weight is null if a layer does not have it.
struct Linear {
  std::string name;  // "blk.0.attn_q"
  Tensor weight = nullptr;  // (in, out), or (in, out, experts)
  Tensor bias = nullptr;    // (out), or (out, experts), or null
  Tensor scale = nullptr;   // (1, experts), of what each expert's matrix gives, or null
  Slot transposed;          // (out, in), or (out, in, experts)
  ggml_type transposed_type = GGML_TYPE_F32;
  bool is_transposed_packed = false;  // in panels of native/kernels/matmul
  bool is_read_back = false;          // gradients are multiplied by the weights themselves, so there is no transposed copy
  int module = -1;  // index of its adapter; -1: none

  int64_t in() const { return weight->ne[0]; }
  int64_t out() const { return weight->ne[1]; }
  int64_t experts() const { return weight->ne[2]; }
};

struct Layer {
  int64_t index = 0;
  LayerShape shape;
  Tensor attention_norm = nullptr;       // (width)
  Tensor attention_post_norm = nullptr;  // (width), or null: of what attention adds to the stream
  Tensor ffn_norm = nullptr;             // (width)
  Tensor ffn_post_norm = nullptr;        // (width), or null: of what the feed-forward part adds
  Tensor query_norm = nullptr;           // (head size), or null
  Tensor key_norm = nullptr;             // (head size), or null
  Tensor sinks = nullptr;                // (heads), or null
  Linear query_key_value;  // one matrix in place of the next three
  Linear query, key, value;
  Linear convolved;  // of a short convolution: what it reads
  Linear output_gate, beta, alpha;  // of a delta net
  Linear beta_alpha;                // one matrix in place of the last two: those of each head of keys side by side
  Tensor convolution = nullptr;     // (kernel, channels), of it or of a delta net
  Tensor alpha_bias = nullptr;      // (value heads), of a delta net; so are the next two
  Tensor decay = nullptr;           // (value heads), below 0
  Tensor state_norm = nullptr;      // (size)
  Linear output;
  Linear router;   // of experts
  Tensor router_preference = nullptr;  // (experts), or null: added to scores for the choice alone
  Tensor router_scale = nullptr;       // (width), of a norm of the stream that the router reads; null: it reads what the experts do
  Linear gate_up;  // one matrix in place of the next two
  Linear gate, up, down;
  Linear input_gate, input_output;  // of the layer's own input: what gates it, and what adds it to the stream
  Tensor input_norm = nullptr;      // (width), of what it adds
  Tensor output_scale = nullptr;    // (1), of the whole layer, or null
  // Tensors of a layer with several streams.
  Linear laurel_left, laurel_right;    // a low-rank matrix beside attention
  Tensor laurel_norm = nullptr;        // (width)
  Tensor stream_norm = nullptr;        // (width), of what the router reads
  Tensor stream_router = nullptr;      // (width, streams)
  Tensor stream_prediction = nullptr;  // (streams, streams x streams)
  Tensor stream_correction = nullptr;  // (streams, streams)
  Tensor stream_scale = nullptr;       // (width), of the first stream where its own input gates it
  Linear shared_gate, shared_up, shared_down;  // of the expert that all tokens take
  Tensor shared_weight = nullptr;              // (width), or null: its logistic weight
  Tensor expert_norm = nullptr;                // (width), of what experts read, or null: what the one of all tokens reads
  Tensor expert_post_norm = nullptr;           // (width), of what experts add, or null
  Tensor shared_post_norm = nullptr;           // (width), of what the one of all tokens adds, or null

  std::vector<Tensor*> norms() {
    return {&attention_norm, &attention_post_norm, &ffn_norm, &ffn_post_norm, &query_norm, &key_norm};
  }
  // Returns the linear layers that read the normed stream for the mixer, in the order of its inputs.
  std::vector<Linear*> mixer_inputs() { return Present({&convolved, &query_key_value, &query, &key, &value, &output_gate, &beta, &alpha, &beta_alpha}); }
  std::vector<const Linear*> mixer_inputs() const {
    auto list = const_cast<Layer*>(this)->mixer_inputs();
    return {list.begin(), list.end()};
  }
  // Returns the linear layers of the layer, except the router.
  std::vector<Linear*> linears() {
    std::vector<Linear*> list = mixer_inputs();
    for (Linear* linear : Present({&output, &gate_up, &gate, &up, &down, &shared_gate, &shared_up, &shared_down, &input_gate, &input_output, &laurel_left, &laurel_right})) list.push_back(linear);
    return list;
  }
  // Returns true if its graphs equal those of the other layer.
  bool IsLike(const Layer& other) const {
    const AttentionShape &own = shape.attention, &theirs = other.shape.attention;
    return shape.mixer == other.shape.mixer && shape.experts == other.shape.experts && shape.hidden == other.shape.hidden &&
           own.head_size == theirs.head_size && own.kv_heads == theirs.kv_heads && own.window == theirs.window &&
           (own.kv_layer < 0) == (theirs.kv_layer < 0) && own.is_kv_read == theirs.is_kv_read;
  }
  // Returns the numbers per token of the mixer's output.
  int64_t mixed_width() const { return output.in(); }
  // Returns the numbers per token between the matrices of the feed-forward part.
  int64_t hidden_width(const Shape& model) const { return down.in() * (shape.experts > 0 ? model.experts_used : 1); }

 private:
  static std::vector<Linear*> Present(std::vector<Linear*> list) {
    std::erase_if(list, [](const Linear* linear) { return !linear->weight; });
    return list;
  }
};

class Weights {
 public:
  // `context` is the maximum number of cells of a sequence in the engine. Above the file's original context, LongRoPE uses the factors for
  // long texts.
  static std::unique_ptr<Weights> Load(Device* device, const std::string& path, int64_t context);
  // Loads the sizes of tensors without their numbers, for graphs that are only measured.
  static std::unique_ptr<Weights> Describe(const Device& device, const std::string& path, int64_t context);
  // Returns the reason why a file cannot be trained, by its header. Empty if it can be.
  static std::string WhyNot(const std::string& path);
  ~Weights();

  Shape shape;
  Tensor embedding = nullptr;     // (width, vocabulary), in memory that the CPU reads
  Tensor rope_factors = nullptr;  // (rotated part / 2), or null
  Tensor output_norm = nullptr;   // (width)
  Tensor inputs_table = nullptr;  // (input width x layers, vocabulary), in memory that the CPU reads, or null
  Linear inputs_of_stream;        // the part of the embedding in the layers' own inputs
  Tensor inputs_norm = nullptr;   // (input width), of that
  Tensor stream_in = nullptr, stream_out = nullptr;  // (width, width, streams - 1), of an embedding -> the others, and back; or null
  Linear head;
  std::vector<Layer> layers;

  // (row) token ids -> (width, row), the beginning of the residual stream
  Tensor Embed(Graph& graph, Tensor tokens) const;
  // (row) token ids and their embedding -> (input width, layers, row), the layers' own inputs
  Tensor OwnInputs(Graph& graph, Matmuls& matmuls, Tensor tokens, Tensor embedded) const;
  // Replaces the linear layers' weights by their float32 values, and a rounded activation by the exact one.
  void Widen(Device* device);
  // Fills the transposed copies of the layers and the head. Does nothing the second time.
  void Transpose(Device* device);
  // Returns the linear layers of the head and of all layers.
  std::vector<Linear*> AllLinears();
  // Offset of a tensor in the file, in bytes.
  size_t OffsetInFile(Tensor tensor) const;
  // Returns the memory that Transpose needs, before and after it ran.
  size_t transposed_bytes() const;
  // Returns the memory that Transpose has allocated.
  size_t transposed_taken() const { return transposed_ ? transposed_->allocated_bytes() : 0; }

 private:
  Weights() = default;
  void ReadHeader(const std::string& path, int64_t context);
  void FindTensors(int64_t context);
  void Place(Device* device);
  void PlanTransposed(const Device& device);
  std::vector<Linear*> TransposedLinears();
  static ggml_type TransposedType(const Linear& linear);
  static size_t TransposedBytes(const Linear& linear);
  // Returns true if a CPU packs the transposed copy.
  static bool CanPackTransposed(const Linear& linear);

  std::unique_ptr<FileMap> file_;
  gguf_context* gguf_ = nullptr;
  ggml_context* tensors_ = nullptr;       // every tensor of the file
  ggml_backend_buffer_t mapped_ = nullptr;  // the file's memory, as a buffer
  std::unique_ptr<Arena> on_device_;        // a copy, on devices that cannot read the file's memory
  std::unique_ptr<Graph> tied_head_;        // on such devices, the tensor of the head if the file ties it to the embedding
  std::unique_ptr<Arena> transposed_;
  std::unique_ptr<Arena> widened_;
  std::unique_ptr<Graph> wide_tensors_;
  std::string path_;
};

}  // namespace onpolicy::training
