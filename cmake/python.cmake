# The Python package: one extension, pccl._native, that carries the whole library; beside it the programs ccoip_master, which
# pccl.distributed starts as a process of its own, and pccl.  Built by `pip install .`, or with -DPCCL_PYTHON=ON.
# SPDX-License-Identifier: MIT
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)

set(native_source ${PROJECT_BINARY_DIR}/pccl_native.c)
file(GLOB public_headers CONFIGURE_DEPENDS include/*.h)
add_custom_command(OUTPUT ${native_source}
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/declarations.py
        ${PROJECT_SOURCE_DIR}/include ${native_source} ${CMAKE_C_COMPILER}
    DEPENDS python/declarations.py ${public_headers} VERBATIM)
add_library(pccl_native MODULE ${native_source} $<TARGET_OBJECTS:pccl_objects>)
target_include_directories(pccl_native PRIVATE include ${Python_INCLUDE_DIRS})
if(Python_SOABI MATCHES "^cpython-[0-9]+t") # free-threaded: it has no stable interface
    set(native_suffix .${Python_SOABI}.so)
    target_compile_definitions(pccl_native PRIVATE _CFFI_NO_LIMITED_API)
else()
    set(native_suffix .abi3.so)
    target_compile_definitions(pccl_native PRIVATE Py_LIMITED_API=0x030A0000)
endif()
target_link_libraries(pccl_native PRIVATE Threads::Threads m ${CMAKE_DL_LIBS})
set(native_map ${PROJECT_BINARY_DIR}/pccl_native.map)
file(WRITE ${native_map} "{ global: PyInit__native; local: *; };\n") # the library's names are not the process's
target_link_options(pccl_native PRIVATE LINKER:--version-script=${native_map} LINKER:--gc-sections)
set_target_properties(pccl_native PROPERTIES
    PREFIX "" OUTPUT_NAME _native SUFFIX ${native_suffix} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/pccl)
add_dependencies(pccl_product pccl_native)

install(TARGETS pccl_native LIBRARY DESTINATION pccl COMPONENT python)
install(TARGETS ccoip_master pccl_command RUNTIME DESTINATION pccl/bin COMPONENT python)

# The package as it lies in the sources, beside what is built: PYTHONPATH for those who work on it.
file(GLOB entries RELATIVE ${PROJECT_SOURCE_DIR}/python/pccl CONFIGURE_DEPENDS python/pccl/*)
list(REMOVE_ITEM entries __pycache__)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python/pccl)
foreach(entry IN LISTS entries)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/pccl/${entry} ${PROJECT_BINARY_DIR}/python/pccl/${entry} SYMBOLIC)
endforeach()
file(CREATE_LINK ${PROJECT_BINARY_DIR}/bin ${PROJECT_BINARY_DIR}/python/pccl/bin SYMBOLIC)
