// A URI reference and its base -> a URI.
#pragma once
#include <string>

namespace onpolicy::grammar {

// By the rules for URI references; the fragment stays.
std::string ResolveUri(const std::string& base, const std::string& reference);
std::string DecodePercent(const std::string& text);

}  // namespace onpolicy::grammar
