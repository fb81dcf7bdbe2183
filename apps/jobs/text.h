#pragma once

#include <string>
#include <string_view>

namespace jobs {

/// `bytes` as UTF-8: each byte that is not part of a letter becomes U+FFFD.
std::string valid_utf8(std::string_view bytes);

/// Removes an unfinished letter from the end: for text that was cut at a number of bytes. Bytes
/// that were no UTF-8 to begin with stay.
void drop_unfinished_letter(std::string& bytes);

}  // namespace jobs
