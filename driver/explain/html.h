// Building blocks of HTML pages.
#pragma once

#include <string>
#include <string_view>

namespace sinter {

/// The text, with what HTML would read as markup escaped.
std::string html(std::string_view text);
/// A link to the element of the page with the id `to`.
std::string link(std::string_view to, std::string_view text);
/// The look of the page, for its head.
std::string_view html_style();
/// For the end of its body. A search field filters the rows of the table after it; a link into a
/// closed part of the page opens it.
std::string_view html_script();

}  // namespace sinter
