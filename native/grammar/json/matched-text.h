// The text matched so far, read as incomplete JSON from its end. Results are cached while their bytes stay, so that all reads of a text
// together take time proportional to its length.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace onpolicy::grammar {

// Returns true if JSON can spell a key in more than one way.
bool HasSeveralSpellings(std::string_view key);

// Keys of one object, each with the offset of its opening quote.
struct ObjectKeys {
  std::map<std::string, uint32_t, std::less<>> offsets;
  size_t with_spellings = 0;  // keys that have several spellings
};

class MatchedText {
 public:
  MatchedText() = default;
  explicit MatchedText(std::string bytes) : bytes_(std::move(bytes)) {}

  operator std::string_view() const { return bytes_; }
  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  char back() const { return bytes_.back(); }
  void push_back(char byte) { bytes_.push_back(byte); }
  void append(std::string_view bytes) { bytes_ += bytes; }
  void pop_back() { Shorten(bytes_.size() - 1); }
  // Removes all but the first `size` bytes.
  void Shorten(size_t size) {
    if (size < known_to_) Forget(size);
    bytes_.resize(size);
  }

  // Returns the start of the JSON value that ends at `end`, blanks before `end` skipped, or npos.
  size_t ValueStart(size_t end) const;
  // Finds the key of the member whose value ends at `end`. Returns false if the text does not have that form.
  bool FindMemberKey(size_t end, std::string* key) const;
  // Returns the offset of the opening quote of the string that the text ends inside, or npos.
  size_t OpenString() const;
  // Returns keys of the object in which a key's opening quote is at `open`: all to the left of it, and others that are known. Returns null
  // if the key is the first.
  const ObjectKeys* KeysAround(size_t open) const;
  // Keys of the object that the text ends inside, including the last one if it is complete.
  struct KeysHere {
    const ObjectKeys* keys = nullptr;
    std::string last;
    bool has_last = false;
  };
  KeysHere KeysSoFar() const;
  // Returns true if the key whose closing quote ends the text is in `keys`, which must be sorted.
  bool EndsWithKey(const std::vector<std::string>& keys) const;
  // Returns true if that key repeats one of the same object.
  bool RepeatsKey() const;
  // Returns the number of bytes and entries visited since the last call.
  uint64_t TakeSteps() const { return std::exchange(steps_, 0); }

 private:
  struct Key {
    uint32_t end;    // behind the closing quote
    uint32_t first;  // offset of the first key of the same object, which identifies the object
  };

  // Drops cached results about the bytes behind the first `size`. The bytes are still there.
  void Forget(size_t size);
  size_t BlanksStart(size_t end) const;
  size_t StringStart(size_t close) const;
  size_t ContainerStart(size_t end) const;
  // Returns the spelling of the key of the member whose value reaches up to `end`. Empty outside objects.
  std::string_view MemberSpelling(size_t end) const;
  size_t OffsetOf(std::string_view part) const { return static_cast<size_t>(part.data() - bytes_.data()); }
  void Note(size_t known_to) const;

  std::string bytes_;
  // The entries below are dropped with the bytes that they describe.
  mutable size_t known_to_ = 0;                                // the entries describe only bytes before this offset
  mutable std::map<uint32_t, uint32_t> starts_;                // starts of long values, by their ends
  mutable std::map<uint32_t, Key> keys_;                       // by the offset of the opening quote
  mutable std::unordered_map<uint32_t, ObjectKeys> objects_;   // by the offset of the first key
  mutable size_t open_string_ = std::string_view::npos;        // the last string found,
  mutable size_t open_to_ = 0;                                 // and the offset up to which it was read, between two characters
  mutable uint64_t steps_ = 0;
};

}  // namespace onpolicy::grammar
