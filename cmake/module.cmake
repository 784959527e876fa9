# hadal_module(NAME [SEPARATE] SOURCES a.cc ... [DEPS module ...] [LIBS target ...])
# A module is a folder of src/ and a static library. DEPS are the modules that its files may include;
# tools/check_layers.py reads the same lists. LIBS are outside libraries that only this module's sources see.
# SEPARATE: sources are never compiled several at once (hadal_join_sources).
function(hadal_module name)
  cmake_parse_arguments(ARG "SEPARATE" "" "SOURCES;DEPS;LIBS" ${ARGN})
  if(ARG_SOURCES)
    add_library(hadal_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(hadal_${name} PRIVATE hadal_options ${ARG_LIBS})
    hadal_use_precompiled(hadal_${name} hadal_precompiled)
    if(NOT ARG_SEPARATE)
      hadal_join_sources(hadal_${name} 8)
    endif()
    set(scope PUBLIC)
  else()
    add_library(hadal_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(hadal_${name} ${scope} ${PROJECT_SOURCE_DIR}/src)
  foreach(dep ${ARG_DEPS})
    target_link_libraries(hadal_${name} ${scope} hadal_${dep})
  endforeach()
endfunction()

# Tests are many and run once: what is tested keeps the build's optimisation.
set(HADAL_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)

# hadal_test(MODULE [SEPARATE] SOURCES a_test.cc ... [DEPS module ...] [LIBS target ...] [LABELS l ...])
# SEPARATE as above, for tests that give names of unnamed namespaces several meanings.
# One binary per module: <module>_test. Further modules that the tests need beside the tested one go into DEPS.
function(hadal_test name)
  cmake_parse_arguments(ARG "SEPARATE" "" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_compile_options(${name}_test PRIVATE ${HADAL_TEST_OPTIONS})
  hadal_use_precompiled(${name}_test hadal_precompiled_test)
  if(NOT ARG_SEPARATE)
    hadal_join_sources(${name}_test 6)
  endif()
  target_link_libraries(${name}_test PRIVATE hadal_options GTest::gtest_main GTest::gmock ${ARG_LIBS})
  if(TARGET hadal_${name})
    target_link_libraries(${name}_test PRIVATE hadal_${name})
  endif()
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${name}_test PRIVATE hadal_${dep})
  endforeach()
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name}_test PRIVATE
    HADAL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HADAL_BINARY_DIR="${PROJECT_BINARY_DIR}")
  gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 120 PROPERTIES LABELS "${name}" TIMEOUT 1200)
endfunction()

# hadal_isa(NAME "-flag;..." SOURCES a.cc ...)
# A kernel set that needs more of the processor than the rest of the program: an object library, compiled with its
# own flags, linked into hadal_kernels, which then has HADAL_KERNELS_<NAME> defined. x86-64 only; absent elsewhere.
# The test isa_symbols_<NAME> holds its objects to the rule that nothing in them can be shared with the rest.
function(hadal_isa name flags)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    return()
  endif()
  add_library(hadal_kernels_${name} OBJECT ${ARG_SOURCES})
  target_link_libraries(hadal_kernels_${name} PRIVATE hadal_options)
  target_compile_options(hadal_kernels_${name} PRIVATE ${flags} -fno-exceptions $<$<CONFIG:Debug>:-O2> $<$<CONFIG:Release>:-O3>)
  if(HADAL_SANITIZE STREQUAL "address")
    # Intrinsics from end to end, unrolled: checks of each of their steps take g++ 12 several times as long to compile.
    target_compile_options(hadal_kernels_${name} PRIVATE -fno-sanitize=undefined)
  endif()
  target_sources(hadal_kernels PRIVATE $<TARGET_OBJECTS:hadal_kernels_${name}>)
  string(TOUPPER ${name} upper)
  target_compile_definitions(hadal_kernels PRIVATE HADAL_KERNELS_${upper})
  set_property(GLOBAL APPEND PROPERTY HADAL_ISA_SETS ${name})
endfunction()
