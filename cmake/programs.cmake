# A program per file: apps, examples, benchmarks, tests, fuzz targets.
#
# In a directory of tests, test_*.c is a test program, *_run.c and *_main.c are programs that tests or people start;
# every other file is linked into all of them.  tests_unit and so on build one directory's programs.
# SPDX-License-Identifier: MIT

function(pccl_program name directory)
    cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} pccl_flags)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${directory})
endfunction()

function(pccl_programs_of from directory library)
    file(GLOB files CONFIGURE_DEPENDS ${from}/*.c)
    foreach(file IN LISTS files)
        get_filename_component(name ${file} NAME_WE)
        pccl_program(${name} ${directory} SOURCES ${file} LIBRARIES ${library})
    endforeach()
endfunction()

function(pccl_tests_of kind)
    file(GLOB files CONFIGURE_DEPENDS tests/${kind}/*.c)
    set(program_regex "/(test_[^/]*|[^/]*_(run|main))\\.c$")
    set(programs ${files})
    list(FILTER programs INCLUDE REGEX ${program_regex})
    set(helpers ${files})
    list(FILTER helpers EXCLUDE REGEX ${program_regex})
    set(parts "")
    if(helpers)
        add_library(helpers_${kind} OBJECT ${helpers})
        target_link_libraries(helpers_${kind} PRIVATE pccl_internal)
        set(parts $<TARGET_OBJECTS:helpers_${kind}>)
    endif()
    add_custom_target(tests_${kind})
    foreach(file IN LISTS programs)
        get_filename_component(name ${file} NAME_WE)
        pccl_program(${name} tests/${kind} SOURCES ${file} ${parts} LIBRARIES pccl_internal)
        add_dependencies(tests_${kind} ${name})
        if(name MATCHES "^test_")
            add_test(NAME ${kind}/${name} COMMAND ${name})
            set_tests_properties(${kind}/${name} PROPERTIES LABELS ${kind}
                ENVIRONMENT "PCCL_BUILD_DIR=${PROJECT_BINARY_DIR}")
        endif()
    endforeach()
endfunction()

# The master's program sets what the public interface does not; other public programs see that interface only.
pccl_programs_of(apps bin pccl_internal)
if(PCCL_DEVELOPER)
    pccl_programs_of(examples/c examples pccl)
    file(GLOB charlm CONFIGURE_DEPENDS examples/c/charlm/*.c) # one program of several files
    pccl_program(train_charlm examples SOURCES ${charlm} LIBRARIES pccl)
    pccl_programs_of(bench bench pccl_internal)
    foreach(kind unit kernel sim fault e2e)
        pccl_tests_of(${kind})
    endforeach()
endif()

if(PCCL_FUZZ)
    add_custom_target(fuzz_targets)
    file(GLOB files CONFIGURE_DEPENDS fuzz/fuzz_*.c fuzz/canary.c)
    foreach(file IN LISTS files)
        get_filename_component(name ${file} NAME_WE)
        pccl_program(${name} fuzz SOURCES ${file} LIBRARIES pccl_internal)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer,address)
        add_dependencies(fuzz_targets ${name})
    endforeach()
endif()
