// What cannot be cut of a sequence's cache (recurrent state, cells of sliding windows), as it was after some token -> kept under a number.
#pragma once
#include <llama.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace onpolicy {

class Checkpoints {
 public:
  // Returns its bytes; 0: the engine cannot save it.
  size_t Save(llama_context* context, int32_t sequence, int32_t number);
  // Puts it into a sequence, whose other cells behind it the caller cuts. False: it finds no room, or there is none of this number.
  bool Restore(llama_context* context, int32_t sequence, int32_t number) const;
  void Forget(int32_t number) { kept_.erase(number); }

 private:
  std::unordered_map<int32_t, std::vector<uint8_t>> kept_;
};

}  // namespace onpolicy
