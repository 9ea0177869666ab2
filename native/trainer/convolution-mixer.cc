// A gated short convolution of a layer: input gates, output gates and values, one after the other -> the convolution of the gated values, gated.
#include "trainer/convolution.h"
#include "trainer/mixer.h"

namespace onpolicy::training {
namespace {

class ConvolutionMixer : public Mixer {
 public:
  explicit ConvolutionMixer(const MixerParts& parts) : parts_(parts), graph_(parts.graph) {}

  void Forward(const MixerInputs& inputs, Tensor mixed) override {
    Tensor gated = graph_.Times(Part(inputs, kInputGate), Part(inputs, kValue));
    graph_.Add(graph_.Copy(Convolved(graph_, gated, parts_.layer.convolution, parts_.row.states.previous), mixed));
  }

  Tensor Output(const MixerInputs& inputs, Tensor mixed) override { return graph_.Times(Part(inputs, kOutputGate), mixed); }

  MixerInputs Backward(const MixerInputs& inputs, Tensor mixed, Tensor gradient, const LayerScratch&) override {
    Tensor of_gated = ConvolvedBack(graph_, graph_.Times(gradient, Part(inputs, kOutputGate)), parts_.layer.convolution,
                                    parts_.row.states.previous);
    Tensor of_gates = graph_.Concat(graph_.Times(of_gated, Part(inputs, kValue)), graph_.Times(gradient, mixed), 0);
    return {graph_.Concat(of_gates, graph_.Times(of_gated, Part(inputs, kInputGate)), 0)};
  }

 private:
  enum { kInputGate, kOutputGate, kValue };  // thirds of the input

  Tensor Part(const MixerInputs& inputs, int64_t index) {
    const int64_t width = parts_.layer.mixed_width();
    return graph_.Contiguous(graph_.Slice(inputs[0], 0, index * width, width));
  }

  const MixerParts parts_;
  Graph& graph_;
};

}  // namespace

std::unique_ptr<Mixer> NewConvolution(const MixerParts& parts) { return std::make_unique<ConvolutionMixer>(parts); }

}  // namespace onpolicy::training
