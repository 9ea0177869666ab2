// The engine's log while one call runs -> its error lines, the only place where the engine reports why a call failed.
#pragma once
#include <algorithm>
#include <exception>
#include <string>

#include "engine-assumptions/library.h"

namespace onpolicy {

class ErrorLog {
 public:
  ErrorLog() {
    id_ = AddLogSink([this](int level, const std::string& text) {
      is_error_ = level == GGML_LOG_LEVEL_ERROR || (level == GGML_LOG_LEVEL_CONT && is_error_);
      if (is_error_) text_ += text;
    });
  }
  ~ErrorLog() { RemoveLogSink(id_); }
  ErrorLog(const ErrorLog&) = delete;
  ErrorLog& operator=(const ErrorLog&) = delete;

  // Runs `call` and returns its result. Returns null if it throws; the log then holds the message.
  template <typename Call>
  auto Run(const Call& call) -> decltype(call()) {
    try {
      return call();
    } catch (const std::exception& error) {
      text_ = error.what();
      return nullptr;
    }
  }

  bool Mentions(const char* words) const { return text_.find(words) != std::string::npos; }
  // Returns the log on one line, without the trailing newline.
  std::string Text() const {
    std::string text = text_;
    std::replace(text.begin(), text.end(), '\n', ' ');
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text.empty() ? "the engine gave no reason" : text;
  }

 private:
  int id_;
  bool is_error_ = false;  // level of the last line, for lines that continue it
  std::string text_;
};

}  // namespace onpolicy
