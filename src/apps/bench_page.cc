#include "apps/bench_page.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/bench_report.h"
#include "apps/units.h"

namespace hadal {
namespace {

constexpr double kWidth = 640, kHeight = 300, kLeft = 64, kBottom = 40, kTop = 16, kRight = 16;

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

using Points = std::vector<std::pair<double, double>>;

struct Series {
  std::string name, color;
  Points points;
};

// A chart with a logarithmic x axis, and y from zero or logarithmic too.
class Chart {
 public:
  Chart(std::string title, std::string x_label, std::string y_label, bool is_log_y)
      : title_(std::move(title)),
        x_label_(std::move(x_label)),
        y_label_(std::move(y_label)),
        is_log_y_(is_log_y) {}

  void Add(Series series) {
    if (!series.points.empty()) series_.push_back(std::move(series));
  }

  // Empty without points.
  std::string Draw() {
    if (series_.empty()) return {};
    FindRange();
    std::string svg =
        fmt::format("<h2>{}</h2>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                    title_, kWidth, kHeight, title_);
    for (const Series& series : series_) {
      for (const auto& [x, y] : series.points) {
        svg += Text(X(x), kHeight - kBottom + 16, "middle", fmt::format("{:.4g}", x));
        (void)y;
      }
      break;  // all series share their x
    }
    for (int i = 0; i <= 4; ++i) {
      const double y = is_log_y_ ? low_ * std::pow(high_ / low_, i / 4.0) : high_ * i / 4.0;
      svg += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>\n",
                         kLeft, kWidth - kRight, Y(y), Y(y));
      svg += Text(kLeft - 6, Y(y) + 4, "end", fmt::format("{:.3g}", y));
    }
    double legend = kTop + 12;
    for (const Series& series : series_) {
      svg += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + series.color + "\" points=\"";
      for (const auto& [x, y] : series.points) svg += fmt::format("{:.1f},{:.1f} ", X(x), Y(y));
      svg += "\"/>\n";
      for (const auto& [x, y] : series.points) {
        svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", X(x),
                           Y(y), series.color);
      }
      svg += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", kLeft + 12, legend,
                         series.color, series.name);
      legend += 16;
    }
    svg += Text(kWidth / 2, kHeight - 6, "middle", x_label_);
    svg += fmt::format(
        "<text x=\"14\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {})\">{}"
        "</text>\n</svg>\n",
        kHeight / 2, kHeight / 2, y_label_);
    return svg;
  }

 private:
  void FindRange() {
    low_ = 1e300;
    for (const Series& series : series_) {
      for (const auto& [x, y] : series.points) {
        left_ = std::min(left_, std::log(x + 1));
        right_ = std::max(right_, std::log(x + 1));
        low_ = std::min(low_, y);
        high_ = std::max(high_, y);
      }
    }
    high_ *= 1.1;
    if (right_ <= left_) right_ = left_ + 1;
  }
  double X(double x) const {
    return kLeft + (std::log(x + 1) - left_) / (right_ - left_) * (kWidth - kLeft - kRight);
  }
  double Y(double y) const {
    const double part = is_log_y_ ? std::log(y / low_) / std::log(high_ / low_) : y / high_;
    return kHeight - kBottom - part * (kHeight - kBottom - kTop);
  }
  static std::string Text(double x, double y, const char* anchor, const std::string& text) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                       anchor, text);
  }

  std::string title_, x_label_, y_label_;
  bool is_log_y_;
  std::vector<Series> series_;
  double left_ = 1e300, right_ = -1e300, low_ = 0, high_ = 0;
};

template <class Pick, class XOf>
void AddMeasuredAndBound(const BenchReport& report, const Pick& pick, const XOf& x_of,
                         Chart* chart) {
  Series measured{"measured", "#1f6feb", {}}, bound{"bound", "#9a6700", {}};
  for (const BenchResult& r : report.results) {
    if (!pick(r)) continue;
    measured.points.emplace_back(x_of(r), r.tokens_per_s);
    bound.points.emplace_back(x_of(r), r.tokens_per_s / r.share_of_bound);
  }
  std::ranges::sort(measured.points);
  std::ranges::sort(bound.points);
  chart->Add(std::move(measured));
  chart->Add(std::move(bound));
}

// Work per byte against work per second; the roof is the machine's.
std::string Roofline(const BenchReport& report) {
  Chart chart("Roofline", "operations a byte", "Gop/s", true);
  Series roof{"machine", "#9a6700", {}}, steps{"steps", "#1f6feb", {}};
  for (const BenchResult& r : report.results) {
    if (r.bytes <= 0 || r.ops <= 0) continue;
    const double intensity = r.ops / r.bytes;
    steps.points.emplace_back(intensity, r.ops / r.median_s / 1e9);
    roof.points.emplace_back(intensity, std::min(intensity * report.limits.read_bytes_per_s,
                                                 report.limits.integer_ops_per_s) /
                                            1e9);
  }
  std::ranges::sort(roof.points);
  std::ranges::sort(steps.points);
  chart.Add(std::move(steps));
  chart.Add(std::move(roof));
  return chart.Draw();
}

}  // namespace

std::string BenchPage(const BenchReport& report) {
  std::string page =
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>hadal bench</title>\n"
      "<style>body{font:15px system-ui,sans-serif;max-width:760px;margin:2em auto;padding:0 1em}"
      "svg{width:100%;font-size:12px}svg .grid{stroke:#8884}svg text{fill:currentColor}"
      "pre{overflow:auto}@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"
      "</style>\n<h1>hadal bench</h1>\n";
  page += "<p>" + Escaped(report.cpu) +
          fmt::format(
              ", {} threads: reading {:.1f} GB/s, float32 {:.0f} Gop/s, integers {:.0f} "
              "Gop/s (medians of the limits measured beside each figure).</p>\n<pre>",
              report.model.num_threads, report.limits.read_bytes_per_s / 1e9,
              report.limits.multiply_add_ops_per_s / 1e9, report.limits.integer_ops_per_s / 1e9);
  page += Escaped(BenchTableHead(report.model));
  for (const BenchResult& result : report.results) page += Escaped(BenchTableRow(result));
  page += "</pre>\n";
  Chart depth("Decoding by depth", "tokens before", "tokens/s", false);
  AddMeasuredAndBound(
      report, [](const BenchResult& r) { return r.what == "decode" && r.batch == 1; },
      [](const BenchResult& r) { return r.depth; }, &depth);
  page += depth.Draw();
  Chart batch("Decoding by batch", "sequences", "tokens/s", false);
  AddMeasuredAndBound(
      report, [](const BenchResult& r) { return r.what == "decode" && r.depth == 0; },
      [](const BenchResult& r) { return r.batch; }, &batch);
  page += batch.Draw();
  Chart prefill("Reading a prompt", "tokens", "tokens/s", false);
  AddMeasuredAndBound(
      report, [](const BenchResult& r) { return r.what == "prefill" && r.depth == 0; },
      [](const BenchResult& r) { return r.tokens; }, &prefill);
  page += prefill.Draw() + Roofline(report) + "</html>\n";
  return page;
}

}  // namespace hadal
