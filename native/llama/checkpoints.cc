#include "llama/checkpoints.h"

#include <exception>

#include "llama/library.h"

namespace onpolicy {

size_t Checkpoints::Save(llama_context* context, int32_t sequence, int32_t number) {
  const Library& api = Api();
  std::vector<uint8_t> bytes(api.llama_state_seq_get_size_ext(context, sequence, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
  const size_t written = api.llama_state_seq_get_data_ext(context, bytes.data(), bytes.size(), sequence,
                                                          LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
  if (bytes.empty() || written != bytes.size()) return 0;
  kept_[number] = std::move(bytes);
  return written;
}

bool Checkpoints::Restore(llama_context* context, int32_t sequence, int32_t number) const {
  const auto found = kept_.find(number);
  if (found == kept_.end()) return false;
  const std::vector<uint8_t>& bytes = found->second;
  try {
    return Api().llama_state_seq_set_data_ext(context, bytes.data(), bytes.size(), sequence,
                                              LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) == bytes.size();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace onpolicy
