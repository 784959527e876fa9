// The compiled part of Asio and Beast, once.
#include "server/asio_config.h"
// clang-format off
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
// clang-format on
