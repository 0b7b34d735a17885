#include "driver/page/page.h"

#include <fmt/format.h>

#include <iterator>

#include "device/embedded_header.h"

namespace sinter {
namespace {

constexpr EmbeddedHeader kFiles[] = {
#include "driver/page/files.inc"
};

std::string_view file(std::string_view name) {
  for (const EmbeddedHeader& one : kFiles)
    if (one.name.substr(one.name.rfind('/') + 1) == name) return one.text;
  return {};
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  return out;
}

}  // namespace

std::string json_in_html(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = json.substr(i);
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (json[i] == '>') {
      out += "\\u003e";
    } else if (json[i] == '&') {
      out += "\\u0026";
    } else if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
      out += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

std::string page(std::string_view title, std::string_view script, std::string_view data) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>\n{}</style></head>\n"
      "<body><noscript>This page draws its data with a script of its own.</noscript>\n"
      "<script type=\"application/json\" id=\"sinter-data\">{}</script>\n"
      "<script type=\"application/json\" id=\"sinter-sources\">{{}}</script>\n"
      "<script>\n\"use strict\";\n{}{}</script></body></html>\n",
      escaped(title), file("page.css"), json_in_html(data), file("page.js"), file(script));
}

}  // namespace sinter
