#include "apps/counter/counter.h"
#include "apps/counter/demonstration.h"
#include "otp/application/run.h"

int main(int argc, char** argv) {
  otp::Application counter;
  counter.name = "counter";
  counter.servers = otp::servers<counter::Counter, counter::Demonstration>();
  counter.type = otp::ApplicationType::transient;  // it ends when the demonstration has ended
  return otp::run({counter}, argc, argv);
}
