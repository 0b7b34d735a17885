#include "driver/explain/html.h"

#include <fmt/format.h>

namespace sinter {
namespace {

constexpr std::string_view kStyle = R"(<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 78em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; position: sticky; top: 0; background: #fff; }
td, th { padding: .15em .8em .15em 0; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
code, pre { font: 12px/1.6 ui-monospace, monospace; }
pre { overflow-x: auto; background: #f8f8f8; padding: .6em; }
a { color: inherit; text-decoration-color: #aaa; }
:target { background: #fff3c4; }
tr.layer td { background: #f4f4f4; font-weight: 600; }
.fused { color: #087f3a; } .refused { color: #b3261e; }
td.links { font-size: 12px; max-width: 14em; } details.cuda p { margin: 0; }
input { font: inherit; width: 30em; max-width: 100%; padding: .3em; margin: .5em 0; }
summary { font-weight: 600; cursor: pointer; margin: .5em 0; }
dl { display: grid; grid-template-columns: max-content auto; gap: 0 1em; } dd { margin: 0; }
</style>)";

constexpr std::string_view kScript = R"(<script>
for (const field of document.querySelectorAll("input")) {
  const rows = [...field.parentElement.querySelectorAll("tbody tr")];
  const texts = rows.map(row => row.textContent.toLowerCase());
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    rows.forEach((row, i) => row.hidden = !words.every(word => texts[i].includes(word)));
  });
}
const open = () => {
  const at = location.hash && document.getElementById(location.hash.slice(1));
  for (let part = at; part; part = part.parentElement) if (part.tagName == "DETAILS") part.open = true;
  if (at) at.scrollIntoView();
};
addEventListener("hashchange", open);
open();
</script>
)";

}  // namespace

std::string html(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string link(std::string_view to, std::string_view text) {
  return fmt::format("<a href=\"#{}\">{}</a>", to, html(text));
}

std::string_view html_style() { return kStyle; }
std::string_view html_script() { return kScript; }

}  // namespace sinter
