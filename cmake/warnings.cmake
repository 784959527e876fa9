# Warnings of all our code. -ffp-contract=off and no -ffast-math: the order and the fusing of operations are part
# of the contract (a token's bits do not depend on its company), so a fused multiply-add is written out where wanted.
add_library(hadal_options INTERFACE)
target_compile_options(hadal_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -ffp-contract=off)
option(HADAL_WERROR "Treat warnings as errors" ON)
if(HADAL_WERROR)
  target_compile_options(hadal_options INTERFACE -Werror)
endif()
target_include_directories(hadal_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
