// A bounded reader of GGUF key-value pairs, and the two spellings of token bytes: byte-level BPE and SentencePiece.
#include "mask/gguf-vocabulary.h"

#include <cstdio>
#include <cstring>
#include <unordered_map>

#include "base/status.h"
#include "base/utf8.h"

namespace onpolicy::grammar {

namespace {

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {
    if (!file_) throw Failure("MODEL_NOT_FOUND", "cannot open " + path);
    std::setvbuf(file_, nullptr, _IOFBF, 1 << 20);
    std::fseek(file_, 0, SEEK_END);
    left_ = static_cast<uint64_t>(std::ftell(file_));
    std::fseek(file_, 0, SEEK_SET);
  }
  ~Reader() { std::fclose(file_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[noreturn]] void Refuse(const std::string& what) const { throw Failure("MODEL_INVALID", path_ + what); }
  template <typename T>
  T Number() {
    T value;
    Bytes(&value, sizeof value);
    return value;
  }
  std::string String() {
    const uint64_t size = Number<uint64_t>();
    if (size > left_) Refuse(": a string runs past the end of the file");
    std::string text(size, '\0');
    Bytes(text.data(), size);
    return text;
  }
  // Skips one value of a GGUF type.
  void Skip(uint32_t type) {
    if (type == 8) {
      const uint64_t size = Number<uint64_t>();
      Forward(size);
    } else if (type == 9) {
      const uint32_t inner = Number<uint32_t>();
      const uint64_t count = Number<uint64_t>();
      if (inner == 8) {
        for (uint64_t i = 0; i < count; i++) Skip(8);
      } else {
        if (count > left_) Refuse(": an array runs past the end of the file");
        Forward(count * SizeOf(inner));
      }
    } else {
      Forward(SizeOf(type));
    }
  }
  uint64_t SizeOf(uint32_t type) const {
    constexpr uint64_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type > 12 || sizes[type] == 0) Refuse(": unknown value type");
    return sizes[type];
  }
  uint64_t left() const { return left_; }

 private:
  void Bytes(void* target, uint64_t size) {
    if (size > left_ || std::fread(target, 1, size, file_) != size)
      Refuse(": the file ends too early");
    left_ -= size;
  }
  void Forward(uint64_t size) {
    // Short values are read: a file has hundreds of thousands of them, and each seek is a system call.
    if (size <= sizeof skipped_) return Bytes(skipped_, size);
    if (size > left_) Refuse(": the file ends too early");
    std::fseek(file_, static_cast<long>(size), SEEK_CUR);
    left_ -= size;
  }

  const std::string& path_;
  std::FILE* file_;
  uint64_t left_ = 0;
  char skipped_[256];
};

// GPT-2's printable stand-ins for the 256 bytes -> the bytes.
std::unordered_map<uint32_t, uint8_t> ByteOfStandIn() {
  std::unordered_map<uint32_t, uint8_t> map;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; byte++) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    map[printable ? byte : next++] = static_cast<uint8_t>(byte);
  }
  return map;
}

std::string FromByteLevel(const std::string& token, const std::unordered_map<uint32_t, uint8_t>& bytes) {
  std::string result;
  for (size_t at = 0; at < token.size();) {
    const size_t start = at;
    const auto it = bytes.find(ReadCodePoint(token, &at));
    if (it != bytes.end()) {
      result.push_back(static_cast<char>(it->second));
    } else {
      result.append(token, start, at - start);
    }
  }
  return result;
}

std::string FromSentencePiece(const std::string& token) {
  const auto hex = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  if (token.size() == 6 && token.starts_with("<0x") && token[5] == '>' && hex(token[3]) >= 0 && hex(token[4]) >= 0)
    return std::string(1, static_cast<char>(hex(token[3]) * 16 + hex(token[4])));
  std::string result;
  for (size_t at = 0; at < token.size();) {
    if (token.compare(at, 3, "\xE2\x96\x81") == 0) {
      result.push_back(' ');
      at += 3;
    } else {
      result.push_back(token[at++]);
    }
  }
  return result;
}

}  // namespace

std::shared_ptr<const Vocabulary> ReadGgufVocabulary(const std::string& path) {
  Reader reader(path);
  if (reader.Number<uint32_t>() != 0x46554747) reader.Refuse(" is not a GGUF file");
  if (reader.Number<uint32_t>() < 2) reader.Refuse(": GGUF version 1 is not supported");
  reader.Number<uint64_t>();
  const uint64_t pairs = reader.Number<uint64_t>();
  std::string model;
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<uint32_t> eos;
  for (uint64_t i = 0; i < pairs; i++) {
    const std::string key = reader.String();
    const uint32_t type = reader.Number<uint32_t>();
    if (key == "tokenizer.ggml.model" && type == 8) {
      model = reader.String();
    } else if (key == "tokenizer.ggml.tokens" && type == 9) {
      if (reader.Number<uint32_t>() != 8) reader.Refuse(": token list of a wrong type");
      const uint64_t count = reader.Number<uint64_t>();
      if (count > reader.left()) reader.Refuse(": token list runs past the end");
      tokens.reserve(count);
      for (uint64_t token = 0; token < count; token++) tokens.push_back(reader.String());
    } else if (key == "tokenizer.ggml.token_type" && type == 9) {
      const uint32_t inner = reader.Number<uint32_t>();
      const uint64_t count = reader.Number<uint64_t>();
      if ((inner != 4 && inner != 5) || count > reader.left())
        reader.Refuse(": token types of a wrong type");
      for (uint64_t token = 0; token < count; token++) types.push_back(reader.Number<int32_t>());
    } else if ((key == "tokenizer.ggml.eos_token_id" || key == "tokenizer.ggml.eot_token_id" ||
                key == "tokenizer.ggml.eom_token_id") && (type == 4 || type == 5)) {
      eos.push_back(reader.Number<uint32_t>());
    } else {
      reader.Skip(type);
    }
  }
  if (tokens.empty()) reader.Refuse(" holds no tokenizer");
  const bool byte_level = model == "gpt2";
  const auto stand_ins = ByteOfStandIn();
  std::vector<uint32_t> special;
  for (size_t token = 0; token < tokens.size(); token++) {
    // 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
    const int32_t kind = token < types.size() ? types[token] : 1;
    if (kind == 2 || kind == 3 || kind == 5) {
      special.push_back(static_cast<uint32_t>(token));
    } else if (kind != 4 || !byte_level) {
      tokens[token] = byte_level ? FromByteLevel(tokens[token], stand_ins) : FromSentencePiece(tokens[token]);
    }
  }
  return std::make_shared<const Vocabulary>(std::move(tokens), std::move(eos), std::move(special), byte_level);
}

}  // namespace onpolicy::grammar
