#include "apps/jobs/service.h"
#include "otp/application/run.h"
#include "otp/io/guardian.h"

int main(int argc, char** argv) {
  if (otp::io::is_guardian(argc, argv)) return otp::io::guardian_main();
  return otp::run({jobs::application()}, argc, argv);
}
