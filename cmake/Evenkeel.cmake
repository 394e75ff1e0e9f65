# Build rules of the project: one small function for each kind of target, so that a folder's
# CMakeLists.txt says only what the folder is and what it stands on.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)  # where CMAKE_UNITY_BUILD is on
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

option(EVENKEEL_WERROR "Warnings are errors" ON)
set(EVENKEEL_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined")

find_program(EVENKEEL_CCACHE ccache)
if(EVENKEEL_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${EVENKEEL_CCACHE}")
endif()

add_library(evenkeel_flags INTERFACE)
target_compile_options(evenkeel_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  $<$<BOOL:${EVENKEEL_WERROR}>:-Werror>
  # RelWithDebInfo of CMake is -O2 -g; line tables are enough here and halve build time and size.
  $<$<CONFIG:RelWithDebInfo>:-g1>)
target_include_directories(evenkeel_flags INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_definitions(evenkeel_flags INTERFACE EVENKEEL_VERSION="${PROJECT_VERSION}")
option(EVENKEEL_FUZZ "Build the fuzzers themselves (clang); without it their stored inputs are replayed" OFF)
if(EVENKEEL_FUZZ)
  # Undefined behaviour must end the program, or the fuzzer goes on past it.
  target_compile_options(evenkeel_flags INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(evenkeel_flags INTERFACE -fsanitize=address,undefined)
  add_custom_target(fuzzers)
endif()
if(EVENKEEL_SANITIZE)
  # Under sanitizers g++ 12 takes values of Boost's optional for uninitialised that are not.
  # -O1: a quarter less time to compile, which is most of what such a run takes.
  target_compile_options(evenkeel_flags INTERFACE -fsanitize=${EVENKEEL_SANITIZE} -fno-omit-frame-pointer
    -Wno-maybe-uninitialized -O1)
  target_link_options(evenkeel_flags INTERFACE -fsanitize=${EVENKEEL_SANITIZE})
endif()

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_package(OpenSSL REQUIRED)
enable_testing()
include(GoogleTest)

# Layers are part of the build: an include that points up fails it before anything is compiled.
add_custom_target(check_layers ALL
  COMMAND "${CMAKE_SOURCE_DIR}/tools/check_layers"
  WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
  COMMENT "Checking layers and purity")

# evenkeel_fuzz(NAME DEPS target...): NAME_fuzz.cpp of this folder. A program that replays tests/fuzz/NAME/ in every
#   test run, or, with EVENKEEL_FUZZ, the fuzzer NAME_fuzz.
function(evenkeel_fuzz name)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  if(EVENKEEL_FUZZ)
    add_executable(${name}_fuzz ${name}_fuzz.cpp)
    target_link_libraries(${name}_fuzz PRIVATE ${arg_DEPS})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name}_fuzz)
    return()
  endif()
  add_executable(${name}_fuzz_replay ${name}_fuzz.cpp "${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cpp")
  target_link_libraries(${name}_fuzz_replay PRIVATE ${arg_DEPS})
  add_test(NAME Fuzz.${name} COMMAND ${name}_fuzz_replay "${CMAKE_SOURCE_DIR}/tests/fuzz/${name}")
  set_tests_properties(Fuzz.${name} PROPERTIES LABELS unit TIMEOUT 120)
endfunction()

# evenkeel_library(NAME [DEPS target...] [PRIVATE_DEPS target...] [EXCLUDE file...])
#   A static library of all *.cpp in this folder but *_test.cpp, *_fuzz.cpp and main.cpp, one test program
#   NAME_test of all *_test.cpp, where there are any, and a fuzz target of each *_fuzz.cpp. TEST_DEPS are for
#   the tests and fuzz targets alone.
function(evenkeel_library name)
  cmake_parse_arguments(arg "" "" "DEPS;PRIVATE_DEPS;EXCLUDE;TEST_DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main|_fuzz)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  foreach(file ${arg_EXCLUDE})
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    list(REMOVE_ITEM tests "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC evenkeel_flags ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
    add_dependencies(${name} check_layers)
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE evenkeel_flags ${arg_DEPS})
  endif()
  if(tests)
    add_executable(${name}_test ${tests})
    # Tests name their helpers alike, file by file.
    set_target_properties(${name}_test PROPERTIES UNITY_BUILD OFF)
    target_link_libraries(${name}_test PRIVATE ${name} ${arg_TEST_DEPS} GTest::gmock GTest::gtest_main Threads::Threads)
    # Absolute paths only where a test asks for them: all other objects of a clone elsewhere come out of the compiler cache.
    foreach(file ${tests})
      file(STRINGS "${file}" asks REGEX "EVENKEEL_(SOURCE|BIN)_DIR" LIMIT_COUNT 1)
      if(asks)
        set_source_files_properties("${file}" PROPERTIES COMPILE_DEFINITIONS
          "EVENKEEL_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\";EVENKEEL_BIN_DIR=\"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\"")
      endif()
    endforeach()
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 300)
  endif()
  file(GLOB fuzzed CONFIGURE_DEPENDS *_fuzz.cpp)
  foreach(file ${fuzzed})
    get_filename_component(target "${file}" NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" target "${target}")
    evenkeel_fuzz(${target} DEPS ${name} ${arg_TEST_DEPS})
  endforeach()
endfunction()

# evenkeel_program(NAME DEPS target...): main.cpp of this folder as the program NAME.
function(evenkeel_program name)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  add_executable(${name} main.cpp)
  target_link_libraries(${name} PRIVATE evenkeel_flags ${arg_DEPS})
  add_dependencies(${name} check_layers)
endfunction()
