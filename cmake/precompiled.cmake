# Precompiled headers of what most sources include, shared by all modules and by all tests: HADAL_PRECOMPILE_HEADERS.
# On in the preset release. Off in those for development, where they would hide a missing include, and with sanitizers,
# where they make g++ 12 crash.
option(HADAL_PRECOMPILE_HEADERS "Precompile the headers that most sources include" OFF)

if(HADAL_PRECOMPILE_HEADERS)
  set(headers <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <mutex>
    <optional> <span> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>
    <nlohmann/json.hpp>)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "// Carries precompiled headers.\n")
  add_library(hadal_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_link_libraries(hadal_precompiled PRIVATE hadal_options fmt::fmt)
  target_precompile_headers(hadal_precompiled PRIVATE ${headers})
  if(HADAL_BUILD_TESTS)
    add_library(hadal_precompiled_test OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
    target_link_libraries(hadal_precompiled_test PRIVATE hadal_options fmt::fmt GTest::gtest_main GTest::gmock)
    target_compile_options(hadal_precompiled_test PRIVATE ${HADAL_TEST_OPTIONS})
    target_precompile_headers(hadal_precompiled_test PRIVATE ${headers} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endif()

# hadal_use_precompiled(TARGET hadal_precompiled | hadal_precompiled_test)
function(hadal_use_precompiled target from)
  if(TARGET ${from})
    target_link_libraries(${target} PRIVATE fmt::fmt)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# hadal_join_sources(TARGET NUMBER): so many sources are compiled as one: what their headers cost is paid once. A name in
# an unnamed namespace is then the module's, so modules give each one meaning. Off in the presets for development, where
# a change is to compile one source, and where missing includes are to be seen.
option(HADAL_JOIN_SOURCES "Compile several sources of a module as one" OFF)
function(hadal_join_sources target number)
  if(HADAL_JOIN_SOURCES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${number})
  endif()
endfunction()
