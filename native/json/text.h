// Unfinished JSON text -> its last value and the keys of its last object, read backwards from the end.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace onpolicy::grammar {

// Where the JSON value that ends at `end` begins, blanks before `end` skipped, or npos.
// Strings are recognised backwards: inside one, every quote has an odd run of backslashes before it.
size_t FindValueStart(std::string_view text, size_t end);
// The key of the member whose value ends at the end of `text`; false when the text is not of that form.
bool FindMemberKey(std::string_view text, std::string* key);

// Offset of the opening quote of the string that `text` ends inside of, or npos.
size_t FindOpenString(std::string_view text);
// Keys of the members that stand to the left of `open`, the offset of a key's opening quote, in the same object.
std::vector<std::string> KeysBefore(std::string_view text, size_t open);
// Keys of the object that `text` ends inside of, the last one included once it is complete.
std::vector<std::string> KeysSoFar(std::string_view text);
// Whether the key whose closing quote ends `text` is one of some, which are sorted.
bool EndsWithKey(std::string_view text, const std::vector<std::string>& keys);
// Whether the key whose closing quote ends `text` repeats one of the same object.
bool RepeatsKey(std::string_view text);

// A byte of a string as JSON spells it, escaped only where it has to be.
std::string JsonSpelling(uint8_t byte);

}  // namespace onpolicy::grammar
