// The schemas of schemas: URI without its fragment -> JSON text, so that documents may refer to them.
#pragma once
#include <string>
#include <string_view>

namespace onpolicy::grammar {

// Empty for any other URI. Those of 2019-09 and 2020-12 are in one piece, without their vocabularies.
std::string MetaSchema(std::string_view uri);

}  // namespace onpolicy::grammar
