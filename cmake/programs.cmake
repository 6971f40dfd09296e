# A program per file: apps, examples, benchmarks, tests, fuzz targets.
#
# In a directory of tests, test_*.c is a test program, *_run.c and *_main.c are programs that tests start; every other
# file is linked into all of them.
# SPDX-License-Identifier: MIT

function(pccl_program name directory)
    cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} pccl_flags)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${directory})
endfunction()

# Public programs see the public interface only.
foreach(pair apps:bin:pccl_static examples/c:examples:pccl bench:bench:pccl_internal)
    string(REPLACE ":" ";" pair ${pair})
    list(POP_FRONT pair from to library)
    file(GLOB files CONFIGURE_DEPENDS ${from}/*.c)
    foreach(file IN LISTS files)
        get_filename_component(name ${file} NAME_WE)
        pccl_program(${name} ${to} SOURCES ${file} LIBRARIES ${library})
    endforeach()
endforeach()

foreach(kind unit kernel sim fault e2e)
    file(GLOB files CONFIGURE_DEPENDS tests/${kind}/*.c)
    set(programs ${files})
    list(FILTER programs INCLUDE REGEX "/(test_[^/]*|[^/]*_(run|main))\\.c$")
    set(helpers ${files})
    list(FILTER helpers EXCLUDE REGEX "/(test_[^/]*|[^/]*_(run|main))\\.c$")
    foreach(file IN LISTS programs)
        get_filename_component(name ${file} NAME_WE)
        pccl_program(${name} tests/${kind} SOURCES ${file} ${helpers} LIBRARIES pccl_internal)
        if(name MATCHES "^test_")
            add_test(NAME ${kind}/${name} COMMAND ${name})
            set_tests_properties(${kind}/${name} PROPERTIES LABELS ${kind}
                ENVIRONMENT "PCCL_BUILD_DIR=${PROJECT_BINARY_DIR}")
        endif()
    endforeach()
endforeach()

if(PCCL_FUZZ)
    file(GLOB files CONFIGURE_DEPENDS fuzz/fuzz_*.c fuzz/canary.c)
    foreach(file IN LISTS files)
        get_filename_component(name ${file} NAME_WE)
        pccl_program(${name} fuzz SOURCES ${file} LIBRARIES pccl_internal)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer,address)
    endforeach()
endif()
