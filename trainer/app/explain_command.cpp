#include "trainer/app/explain_command.h"

#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/http.h"
#include "contract/exit_codes.h"
#include "trainer/app/explain_html.h"
#include "trainer/app/explain_text.h"
#include "trainer/app/explain_view.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::size_t kMaxFileBytes = 16u << 20;  // of local --report: a job in full, with its report
constexpr std::string_view kHttp = "http://";

struct Address {
  std::string host, path;
  std::uint16_t port = 0;
};

Result<Address> address_of(const std::string& url) {
  const Error bad{
      ErrorCode::kInvalidInput,
      "\"" + url + "\" is no address of a coordinator: want http://host:port, e.g. http://127.0.0.1:9400"};
  std::string rest = url.substr(kHttp.size());
  Address address;
  const std::size_t slash = rest.find('/');
  address.path =
      slash == std::string::npos || slash + 1 == rest.size() ? contract::kReportPath : rest.substr(slash);
  rest = rest.substr(0, slash);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad;
  address.host = rest.substr(0, colon);
  if (address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  const char* end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data() + colon + 1, end, address.port);
  if (error != std::errc() || stop != end || address.port == 0 || address.host.empty()) return bad;
  return address;
}

// What cannot be read is one thing to a caller, whatever the reason.
Error unreadable(Error error) {
  error.code = ErrorCode::kIo;
  return error;
}

Result<std::string> text_of(const std::string& source, base::Files& files, const Fetch& fetch) {
  if (source.starts_with("https://")) {
    return Error{ErrorCode::kInvalidInput,
                 "a coordinator speaks plain HTTP inside the cluster: use kubectl port-forward and "
                 "http://127.0.0.1:PORT"};
  }
  if (source.starts_with(kHttp)) {
    EVENKEEL_ASSIGN(const Address address, address_of(source));
    Result<std::string> body = fetch(address.host, address.port, address.path);
    if (!body.ok()) return unreadable(std::move(body).error());
    return body;
  }
  Result<std::string> text = files.read(source, kMaxFileBytes);
  if (!text.ok() && text.error().code != ErrorCode::kInvalidInput) return unreadable(std::move(text).error());
  return text;
}

Result<contract::JobReport> load(const std::string& source, base::Files& files, const Fetch& fetch) {
  EVENKEEL_ASSIGN(const std::string text, text_of(source, files, fetch));
  Result<base::Json> json = base::parse_json(text, {kMaxFileBytes, 64});
  if (!json.ok()) return base::with_context(source, std::move(json).error());
  Result<contract::JobReport> report = report_of(*json);
  if (!report.ok()) return base::with_context(source, std::move(report).error());
  return report;
}

int fail(std::ostream& err, const Error& error) {
  err << "evenkeel-trainer explain: " << error.message << "\n";
  return static_cast<int>(contract::exit_code_of(error.code));
}

}  // namespace

Result<std::string> fetch_by_http(const std::string& host, std::uint16_t port, const std::string& path) {
  const std::string url = std::string(kHttp) + host + ":" + std::to_string(port) + path;
  Result<base::HttpResponse> response =
      base::http_get(host, port, path, std::chrono::seconds(10), contract::kMaxReportBytes);
  if (!response.ok()) return base::with_context(url, std::move(response).error());
  if (response->status != 200) {
    return Error{ErrorCode::kIo, url + " answers " + std::to_string(response->status) +
                                     ": is this the coordinator's metrics port?"};
  }
  return response->body;
}

void add_explain_command(CLI::App& app, ExplainCommand& chosen) {
  chosen.command = app.add_subcommand(
      "explain",
      "Why N ranks are not N times faster: the waterfall, the verdict, remedies and what they gained");
  chosen.command
      ->add_option(
          "REPORT", chosen.source,
          "A coordinator's report, the file of local --report, a TrainingJob as JSON, or the address of "
          "a running coordinator's metrics port, http://host:port")
      ->required();
  chosen.command->add_option("--html", chosen.html,
                             "Also write one page with the same as pictures to this file");
}

int run_explain(const ExplainCommand& chosen, base::Files& files, const Fetch& fetch, std::ostream& out,
                std::ostream& err) {
  const Result<contract::JobReport> report = load(chosen.source, files, fetch);
  if (!report.ok()) return fail(err, report.error());
  out << explain_text(*report);
  if (chosen.html.empty()) return 0;
  base::Status written = base::write_atomic(files, chosen.html, explain_html(*report));
  if (!written.ok()) return fail(err, base::with_context("--html", unreadable(std::move(written).error())));
  out << "\nThe same as pictures: " << chosen.html << "\n";
  return 0;
}

}  // namespace evenkeel::trainer
