#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jobs {

/// `bytes` as UTF-8: each byte that is not part of a letter becomes U+FFFD.
///
/// A sequence that is cut short counts once (as Unicode recommends); surrogates, overlong forms and
/// values beyond U+10FFFF are no letters.
std::string valid_utf8(std::string_view bytes);

bool is_valid_utf8(std::string_view bytes);

/// Removes an unfinished letter from the end: for text that was cut at a number of bytes. Bytes
/// that were no UTF-8 to begin with stay.
void drop_unfinished_letter(std::string& bytes);

}  // namespace jobs
