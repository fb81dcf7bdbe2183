// EXPECT: a class whose fields cannot be seen: specialise otp::Shareable for it
// EXPECT: image
#include <optional>
#include <vector>

#include "otp/base/shareable.h"

class Image {
 public:
  explicit Image(int width) : width_(width) {}
  int width() const { return width_; }

 private:
  int width_;
};

struct Show {
  int at = 0;
  std::vector<std::optional<Image>> images;
};

void send() { otp::require_shareable<Show>(); }
