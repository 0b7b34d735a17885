// The compiled half of fmt, from its installed headers: Debian ships it only as a shared library,
// and Sinter's programs take no shared library that is not part of every Linux.
#include <fmt/format-inl.h>

static_assert(FMT_VERSION / 10000 == 9, "the instantiations below are those of fmt 9");

FMT_BEGIN_NAMESPACE
namespace detail {

// Instantiations that <fmt/format.h> declares and leaves to its library.
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
