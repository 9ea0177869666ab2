// Relative paths, and percent-decoding.
#include "json-schema/uri.h"

namespace onpolicy::grammar {

std::string DecodePercent(const std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '%' && i + 2 < text.size()) {
      decoded.push_back(static_cast<char>(std::stoi("0" + text.substr(i + 1, 2), nullptr, 16)));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

std::string ResolveUri(const std::string& base, const std::string& reference) {
  if (reference.empty()) return base;
  if (reference[0] == '#') return base.substr(0, base.find('#')) + reference;
  const size_t colon = reference.find(':');
  if (colon != std::string::npos && reference.find_first_of("/?#") > colon) return reference;
  const size_t scheme = base.find("://");
  if (scheme == std::string::npos) {
    const size_t slash = base.rfind('/');
    if (reference[0] == '/' || slash == std::string::npos) return reference;
    return base.substr(0, slash + 1) + reference;
  }
  const size_t path = base.find('/', scheme + 3);
  const std::string host = base.substr(0, path);
  if (reference[0] == '/') return host + reference;
  const size_t slash = base.rfind('/');
  std::string folder = path == std::string::npos ? host + "/" : base.substr(0, slash + 1);
  std::string rest = reference;
  while (rest.starts_with("../") || rest.starts_with("./")) {
    if (rest.starts_with("../") && folder.size() > host.size() + 1)
      folder = folder.substr(0, folder.rfind('/', folder.size() - 2) + 1);
    rest = rest.substr(rest.find('/') + 1);
  }
  return folder + rest;
}

}  // namespace onpolicy::grammar
