// The known formats, from their RFCs. Parts that a regular expression would only approximate are made stricter: no text that the RFC
// forbids is allowed.
#include "grammar/json-schema/keywords.h"

#include <map>
#include <string>

namespace onpolicy::grammar {

// Regular expressions of ECMA-262 with the flag u, without backreferences and names, with groups nested up to `depth`. Ranges in a class
// are limited to digits, or to letters of one case.
static std::string RegexFormat(int depth) {
  const std::string hex = "[0-9A-Fa-f]";
  const std::string escape = "\\\\(?:[dDwWsSfnrtv^$\\\\.*+?()\\[\\]{}|/]|c[A-Za-z]|x" + hex + "{2}|u[0-9A-Ca-cE-Fe-f]" + hex + "{3})";
  const std::string from_to = "(?:[0-8]-9|0-[1-9]|[a-y]-z|a-[b-z]|[A-Y]-Z|A-[B-Z]|a-f|A-F)";
  const std::string item = "(?:" + from_to + "|" + escape + "|\\\\b|[^\\\\\\]\\[^-])";
  const std::string set = "\\[\\^?(?:" + item + ")*-?\\]";
  const std::string count = "(?:[*+?]|\\{(?:[0-9]{1,3},?|0,[0-9]{1,3}|1,[1-9][0-9]{0,2}|2,[2-9]|3,[3-9]|4,[4-9]|5,[5-9]|6,[6-9]|7,[7-9]|8,[89]|9,9|[2-9],[1-9][0-9]{1,2}|[1-9][0-9],[1-9][0-9]{2})\\})\\??";
  const std::string character = "[^\\\\^$.*+?()\\[\\]{}|]|\\.|" + escape + "|" + set;
  std::string body = "(?:(?:" + character + ")(?:" + count + ")?|[\\^$]|\\\\[bB])*";
  for (int i = 0; i < depth; i++) {
    const std::string choice = body + "(?:\\|" + body + ")*";
    const std::string group = "\\((?:\\?:)?" + choice + "\\)";
    body = "(?:(?:" + character + "|" + group + ")(?:" + count + ")?|[\\^$]|\\\\[bB]|\\(\\?[=!]" + choice + "\\))*";
  }
  return body + "(?:\\|" + body + ")*";
}

static std::map<std::string, std::string, std::less<>> MakeFormats() {
  std::map<std::string, std::string, std::less<>> formats;
  const std::string year = "[0-9]{4}";
  const std::string leap =
      "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[048]|[2468][048]|[13579][26])00|0000)";
  const std::string date = "(?:" + year + "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
                           leap + "-02-29)";
  const std::string offset = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
  // Second 60 exists only at 23:59 universal time; its other offsets are not allowed.
  const std::string time = "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?" + offset +
                           "|23:59:60(?:\\.[0-9]+)?(?:[Zz]|[+-]00:00))";
  formats["date"] = date;
  formats["time"] = time;
  formats["date-time"] = date + "[Tt]" + time;
  formats["duration"] =
      "P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?|"
      "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))";
  const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
  const std::string hostname = label + "(?:\\." + label + ")*";
  const std::string octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  const std::string ipv4 = octet + "(?:\\." + octet + "){3}";
  const std::string h16 = "[0-9A-Fa-f]{1,4}";
  const std::string tail = "(?:" + h16 + ":" + h16 + "|" + ipv4 + ")";
  const std::string ipv6 = "(?:(?:" + h16 + ":){6}" + tail + "|::(?:" + h16 + ":){5}" + tail + "|(?:" + h16 + ")?::(?:" +
                           h16 + ":){4}" + tail + "|(?:(?:" + h16 + ":){0,1}" + h16 + ")?::(?:" + h16 + ":){3}" + tail +
                           "|(?:(?:" + h16 + ":){0,2}" + h16 + ")?::(?:" + h16 + ":){2}" + tail + "|(?:(?:" + h16 +
                           ":){0,3}" + h16 + ")?::" + h16 + ":" + tail + "|(?:(?:" + h16 + ":){0,4}" + h16 + ")?::" +
                           tail + "|(?:(?:" + h16 + ":){0,5}" + h16 + ")?::" + h16 + "|(?:(?:" + h16 + ":){0,6}" + h16 +
                           ")?::)";
  // A label with "--" in places three and four claims to be punycode, which is not checked here, so it is not allowed.
  const std::string safe_label = "(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]{0,1}[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-](?:[A-Za-z0-9][A-Za-z0-9-]|-[A-Za-z0-9])(?:[A-Za-z0-9-]{0,58}[A-Za-z0-9])?|[A-Za-z0-9][A-Za-z0-9-](?:[A-Za-z0-9])[A-Za-z0-9])";
  formats["hostname"] = "(?=.{1,253}$)" + safe_label + "(?:\\." + safe_label + ")*";
  formats["idn-hostname"] = formats["hostname"];
  formats["ipv4"] = ipv4;
  formats["ipv6"] = ipv6;
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  formats["email"] = "(?:" + atom + "(?:\\." + atom + ")*|\"(?:[!#-\\[\\]-~ ]|\\\\[ -~])+\")@(?:" + hostname + "|\\[" + ipv4 + "\\]|\\[IPv6:" + ipv6 + "\\])";
  const std::string idn_atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u00A0-\\uD7FF\\uF900-\\uFDCF\\u{10000}-\\u{1FFFD}-]+";
  formats["idn-email"] = idn_atom + "(?:\\." + idn_atom + ")*@[\\p{L}\\p{N}](?:[\\p{L}\\p{N}-]*[\\p{L}\\p{N}])?(?:\\.[\\p{L}\\p{N}](?:[\\p{L}\\p{N}-]*[\\p{L}\\p{N}])?)*";
  formats["uuid"] = "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}";
  const auto uri = [&](const std::string& extra, bool relative) {
    const std::string percent = "%[0-9A-Fa-f]{2}";
    const std::string unreserved = "A-Za-z0-9._~!$&'()*+,;=" + extra;
    const std::string character = "(?:[" + unreserved + ":@-]|" + percent + ")";
    const std::string user = "(?:(?:[" + unreserved + ":-]|" + percent + ")*@)?";
    const std::string host = "(?:\\[(?:" + ipv6 + "|[vV][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\\]|(?:[" + unreserved + "-]|" + percent + ")*)";
    const std::string absolute_path = "(?:/" + character + "*)*";
    const std::string rootless = character + "+(?:/" + character + "*)*";
    const std::string authority = "//" + user + host + "(?::[0-9]*)?" + absolute_path;
    const std::string hierarchy = "(?:" + authority + "|/(?:" + rootless + ")?|" + rootless + ")?";
    const std::string end = "(?:\\?(?:" + character + "|[/?])*)?(?:#(?:" + character + "|[/?])*)?";
    const std::string full = "[A-Za-z][A-Za-z0-9+.-]*:" + hierarchy + end;
    if (!relative) return full;
    const std::string no_colon = "(?:[" + unreserved + "@-]|" + percent + ")+(?:/" + character + "*)*";
    return "(?:" + full + "|(?:" + authority + "|/(?:" + rootless + ")?|" + no_colon + ")?" + end + ")";
  };
  formats["uri"] = uri("", false);
  formats["uri-reference"] = uri("", true);
  const std::string beyond = "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}";
  formats["iri"] = uri(beyond, false);
  formats["iri-reference"] = uri(beyond, true);
  const std::string name = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*(?::[1-9][0-9]{0,3}|\\*)?";
  formats["uri-template"] = "(?:[!#$&()*+,./0-9:;=?@A-Z\\[\\]_a-z~\\u00A0-\\uD7FF-]|%[0-9A-Fa-f]{2}|\\{[+#./;?&=,!@|]?" + name + "(?:," + name + ")*\\})*";
  formats["json-pointer"] = "(?:/(?:[^~/]|~[01])*)*";
  formats["relative-json-pointer"] = "(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)";
  formats["regex"] = RegexFormat(2);
  return formats;
}

const char* FormatPattern(std::string_view format) {
  static const std::map<std::string, std::string, std::less<>> formats = MakeFormats();
  const auto it = formats.find(format);
  return it == formats.end() ? nullptr : it->second.c_str();
}

}  // namespace onpolicy::grammar
