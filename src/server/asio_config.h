// How Asio and Beast are compiled; to be included before any of their headers. The macros are set
// in CMakeLists.txt.
#pragma once

#if !defined(BOOST_ASIO_SEPARATE_COMPILATION) || !defined(BOOST_BEAST_SEPARATE_COMPILATION)
#error "BOOST_ASIO_SEPARATE_COMPILATION and BOOST_BEAST_SEPARATE_COMPILATION must be defined"
#endif
