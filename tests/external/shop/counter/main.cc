#include "counter/cashier.h"
#include "counter/counter.h"
#include "otp/application/run.h"

int main(int argc, char** argv) {
  otp::Application shop{.name = "shop", .servers = otp::servers<shop::Counter, shop::Cashier>()};
  return otp::run({std::move(shop)}, argc, argv);
}
