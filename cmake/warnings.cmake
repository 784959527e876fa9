# Warnings of all our code. -ffp-contract=off and no -ffast-math: the order and the fusing of operations are part
# of the contract (a token's bits do not depend on its company), so a fused multiply-add is written out where wanted.
add_library(hadal_options INTERFACE)
# g++ 12 warns of overlapping copies, and with -O2 and -O3 of endless ones and of places around a text, inside its own
# std::string (GCC bug 105651). The other presets keep the last three.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(hadal_options INTERFACE -Wno-restrict $<$<CONFIG:Release>:-Wno-stringop-overflow$<SEMICOLON>-Wno-stringop-overread$<SEMICOLON>-Wno-array-bounds>)
endif()
target_compile_options(hadal_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -ffp-contract=off)
option(HADAL_WERROR "Treat warnings as errors" ON)
if(HADAL_WERROR)
  target_compile_options(hadal_options INTERFACE -Werror)
endif()
target_include_directories(hadal_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
