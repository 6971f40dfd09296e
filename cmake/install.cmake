# Install rules: headers, both libraries, the CMake package, the pkg-config file, the programs with their manual pages, the
# master's systemd unit, licence, documents and examples.
# SPDX-License-Identifier: MIT
include(CMakePackageConfigHelpers)

install(FILES include/pccl.h include/pccl_backend.h include/pccl_topology.h include/ccoip.h include/ccoip_inet.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS pccl pccl_static EXPORT pccl-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pccl)
install(EXPORT pccl-targets NAMESPACE pccl:: DESTINATION ${package_dir})
file(WRITE ${PROJECT_BINARY_DIR}/pccl-config.cmake
    "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n"
    "include(\${CMAKE_CURRENT_LIST_DIR}/pccl-targets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pccl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pccl-config.cmake ${PROJECT_BINARY_DIR}/pccl-config-version.cmake
    DESTINATION ${package_dir})

# Relative, so that `cmake --install --prefix` and moved trees stay right.
file(RELATIVE_PATH pc_to_prefix /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(cmake/pccl.pc.in ${PROJECT_BINARY_DIR}/pccl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pccl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS ccoip_master pccl_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES apps/ccoip_master.1 apps/pccl.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
set(doc_dir ${CMAKE_INSTALL_DOCDIR})
if(NOT PROJECT_IS_TOP_LEVEL) # that one is named after the parent, whose README is not ours
    set(doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/pccl)
endif()
install(FILES LICENSE README.md DESTINATION ${doc_dir})
# Without what only `make docs` reads, and what an interpreter has left behind.
install(DIRECTORY docs examples DESTINATION ${doc_dir} PATTERN reference EXCLUDE PATTERN conf.py EXCLUDE PATTERN index.rst EXCLUDE
    PATTERN __pycache__ EXCLUDE)
# The unit names the program with its whole path, which is known when it is installed.
set(unit ${PROJECT_BINARY_DIR}/ccoip_master.service)
install(CODE "set(bindir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
    configure_file(\"${PROJECT_SOURCE_DIR}/apps/ccoip_master.service.in\" \"${unit}\" @ONLY)")
install(FILES ${unit} DESTINATION lib/systemd/system)
