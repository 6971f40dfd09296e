# A program per file: apps, examples, benchmarks, tests, fuzz targets.
#
# In a directory of tests, test_*.c is a test program, *_run.c and *_main.c are programs that tests or people start;
# every other file is linked into all of them.  tests_unit and so on build one directory's programs, pccl_product what is
# installed, pccl_examples and pccl_benchmarks what they say.
# SPDX-License-Identifier: MIT

foreach(group product examples benchmarks)
    add_custom_target(pccl_${group})
endforeach()
add_dependencies(pccl_product pccl pccl_static)

function(pccl_program name directory)
    cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} pccl_flags)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${directory})
endfunction()

function(pccl_programs_of from directory library group)
    file(GLOB files CONFIGURE_DEPENDS ${from}/*.c)
    foreach(file IN LISTS files)
        get_filename_component(name ${file} NAME_WE)
        pccl_program(${name} ${directory} SOURCES ${file} LIBRARIES ${library})
        add_dependencies(${group} ${name})
    endforeach()
endfunction()

function(pccl_tests_of kind)
    file(GLOB files CONFIGURE_DEPENDS tests/${kind}/*.c)
    list(FILTER files EXCLUDE REGEX ${pccl_fabric_needs})
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
        set_property(GLOBAL APPEND PROPERTY pccl_tests_${kind} ${name})
        if(name MATCHES "^test_")
            add_test(NAME ${kind}/${name} COMMAND ${name})
            set_tests_properties(${kind}/${name} PROPERTIES LABELS ${kind}
                ENVIRONMENT "PCCL_BUILD_DIR=${PROJECT_BINARY_DIR}")
        endif()
    endforeach()
endfunction()

# The master's program sets what the public interface does not; other public programs see that interface only.
pccl_programs_of(apps bin pccl_internal pccl_product)
target_sources(ccoip_master PRIVATE apps/master/master_status.c)
file(GLOB pccl_command CONFIGURE_DEPENDS apps/pccl/*.c)
pccl_program(pccl_command bin SOURCES ${pccl_command} LIBRARIES pccl_internal)
set_target_properties(pccl_command PROPERTIES OUTPUT_NAME pccl) # the library has the name already
target_include_directories(pccl_command PRIVATE apps)
set_source_files_properties(apps/pccl/pccl_main.c PROPERTIES COMPILE_DEFINITIONS "PCCL_BUILT_AS=\"${CMAKE_SYSTEM_PROCESSOR} $<CONFIG>${PCCL_SANITIZE}\"\
;PCCL_BUILT_WITH_LIBFABRIC=$<AND:$<BOOL:${PCCL_LIBFABRIC}>,$<BOOL:${PCCL_LIBFABRIC_HEADERS}>>")
add_dependencies(pccl_product pccl_command)
if(PCCL_DEVELOPER)
    pccl_programs_of(examples/c examples pccl pccl_examples)
    file(GLOB charlm CONFIGURE_DEPENDS examples/c/charlm/*.c) # one program of several files
    pccl_program(train_charlm examples SOURCES ${charlm} LIBRARIES pccl)
    add_dependencies(pccl_examples train_charlm)
    file(GLOB mesh CONFIGURE_DEPENDS examples/c/backend/*.c) # a library: a back-end of pccl.comms
    add_library(mesh_backend MODULE ${mesh})
    target_include_directories(mesh_backend PRIVATE include)
    target_link_libraries(mesh_backend PRIVATE pccl_flags Threads::Threads)
    set_target_properties(mesh_backend PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    add_dependencies(pccl_examples mesh_backend)
    pccl_programs_of(bench bench pccl_internal pccl_benchmarks)
    foreach(kind unit kernel sim fault e2e)
        pccl_tests_of(${kind})
    endforeach()
    list(FILTER pccl_command EXCLUDE REGEX "/pccl_main\\.c$")
    target_sources(test_bench_figures PRIVATE ${pccl_command}) # which tries the table on figures that no run can be made to give
    target_include_directories(test_bench_figures PRIVATE apps)
    target_sources(bench_quant PRIVATE $<TARGET_OBJECTS:helpers_fault>) # namespaces and slow links
    target_link_libraries(bench_quant PRIVATE m)
    target_link_libraries(bench_many PRIVATE m)
    get_property(sim_programs GLOBAL PROPERTY pccl_tests_sim)
    foreach(name IN LISTS sim_programs) # tests/sim/poison_fault.c fails steps at what they say
        target_link_options(${name} PRIVATE LINKER:--wrap=outbox_add LINKER:--wrap=outbox_send_many)
    endforeach()
    # The chaos runner and its peers know the public interface only: no internal header, no internal library.
    file(GLOB chaos CONFIGURE_DEPENDS tests/chaos/*.c)
    pccl_program(chaos_run tests/chaos SOURCES ${chaos} LIBRARIES m)
    file(GLOB chaos CONFIGURE_DEPENDS tests/chaos/peer/*.c)
    pccl_program(chaos_peer tests/chaos SOURCES ${chaos} tests/chaos/chaos_plan.c LIBRARIES pccl)
    foreach(program chaos_run chaos_peer)
        target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR})
    endforeach()
    add_custom_target(tests_chaos DEPENDS chaos_run chaos_peer ccoip_master)
    add_custom_target(mutant_programs DEPENDS sim_run) # what scripts/mutants.sh asks
    get_property(unit_tests GLOBAL PROPERTY pccl_tests_unit)
    list(FILTER unit_tests INCLUDE REGEX "^test_(session.*|master_.*|bulk_order|exec|exec_wait|fabric|window_step)$")
    foreach(test IN LISTS unit_tests ITEMS ccoip_master pccl_command test_members test_links test_master_hostile test_kill
            test_shared_links test_bench test_windows test_window_lies test_window_kill)
        add_dependencies(mutant_programs ${test})
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
