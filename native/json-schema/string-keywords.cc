// minLength, maxLength, pattern, format.
#include "json-schema/format.h"
#include "json-schema/keywords.h"
#include "json-schema/site.h"

namespace onpolicy::grammar {
namespace {

using namespace meta;

void ReadLength(SchemaSite& site) {
  const uint64_t low = site.FindCount("minLength").value_or(0), high = site.FindCount("maxLength").value_or(kUnlimited);
  RegexPool& pool = site.values().pool();
  const auto repeat = [&](uint64_t from, uint64_t to) {
    if (from > to) return kNothing;
    return pool.Repeat(site.values().free_text().Any(), static_cast<uint32_t>(from), static_cast<uint32_t>(to));
  };
  std::vector<NodeId> outside;
  if (low > 0) outside.push_back(repeat(0, low - 1));
  if (high != kUnlimited) outside.push_back(repeat(high + 1, kUnlimited));
  const NodeId inside = repeat(low, high);
  site.Add(site.values().String(inside, pool.Alternate(std::move(outside))));
}

void ReadPattern(SchemaSite& site) {
  site.Add(site.values().String(site.Pattern(*site.FindText("pattern"), true, "pattern")));
}

void ReadFormat(SchemaSite& site) {
  const std::string& name = *site.FindText("format");
  if (const char* pattern = FormatPattern(name)) {
    site.Add(site.values().String(site.Pattern(pattern, false, "format")));
  } else if (site.options().refuse_unknown) {
    site.Unsupported("format", "unknown format '" + name + "'");
  } else {
    site.Warn("format", "unknown format '" + name + "' is not enforced");
  }
}

constexpr Keyword kKeywords[] = {
    {"minLength", kAllDrafts, kCount, ReadLength},
    {"maxLength", kAllDrafts, kCount, ReadLength},
    {"pattern", kAllDrafts, R"({"type":"string","format":"regex"})", ReadPattern},
    {"format", kAllDrafts, kString, ReadFormat},
};

}  // namespace

std::span<const Keyword> StringKeywords() { return kKeywords; }

}  // namespace onpolicy::grammar
