# The two libraries users see: pccl (shared) and pccl_static.
# SPDX-License-Identifier: MIT

# Version script: the listed names are global, all others local.
set(symbols_file ${PROJECT_SOURCE_DIR}/scripts/exported_symbols.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${symbols_file})
file(STRINGS ${symbols_file} exported REGEX "^[A-Za-z_]")
list(JOIN exported ";\n    " exported)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/pccl.map CONTENT
    "PCCL_0 {\nglobal:\n    @exported@;\nlocal:\n    *;\n};\n" @ONLY)

add_library(pccl SHARED $<TARGET_OBJECTS:pccl_objects>)
add_library(pccl::pccl ALIAS pccl)
target_link_libraries(pccl PRIVATE $<BUILD_INTERFACE:pccl_flags>)
target_link_options(pccl PRIVATE LINKER:--version-script=${PROJECT_BINARY_DIR}/pccl.map)
if(NOT PCCL_SANITIZE AND NOT PCCL_FUZZ) # whose run-time library is in the program
    target_link_options(pccl PRIVATE LINKER:--no-undefined)
endif()
set_target_properties(pccl PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${PROJECT_BINARY_DIR}/pccl.map)

# One object out of all, hidden symbols made local, in an archive.
set(merged ${PROJECT_BINARY_DIR}/pccl_merged.o)
add_custom_command(OUTPUT ${merged}
    COMMAND ${CMAKE_LINKER} -r -o ${merged} $<TARGET_OBJECTS:pccl_objects>
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${merged}
    DEPENDS pccl_objects $<TARGET_OBJECTS:pccl_objects> COMMAND_EXPAND_LISTS VERBATIM)
add_library(pccl_static STATIC ${merged})
add_library(pccl::pccl_static ALIAS pccl_static)
set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
set_target_properties(pccl_static PROPERTIES OUTPUT_NAME pccl LINKER_LANGUAGE C)
target_link_libraries(pccl_static INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})

foreach(library pccl pccl_static)
    target_include_directories(${library} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
