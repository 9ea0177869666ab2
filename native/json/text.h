// What stands where in JSON text that is not finished: values and keys, read backwards from its end.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace onpolicy::grammar {

// Where the JSON value that ends at `end` begins, blanks before `end` skipped; npos when there is none.
// Strings are recognised backwards: inside one, every quote has an odd run of backslashes before it.
size_t FindValueStart(std::string_view text, size_t end);
// The key of the member whose value ends at the end of `text`; false when the text is not of that form.
bool FindMemberKey(std::string_view text, std::string* key);

// Offset of the opening quote of the string that `text` ends inside of, or npos.
size_t FindOpenString(std::string_view text);
// Keys of the members that stand to the left of `open`, the offset of a key's opening quote, in the same object.
std::vector<std::string> KeysBefore(std::string_view text, size_t open);
// Keys of the object that `text` ends inside of, the one last written too, where that is complete.
std::vector<std::string> KeysSoFar(std::string_view text);
// Whether the object key that ends at the end of `text` (with its closing quote) stands already in the same object.
bool RepeatsKey(std::string_view text);

}  // namespace onpolicy::grammar
