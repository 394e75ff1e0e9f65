#include "operator/kube/credentials.h"

#include <gtest/gtest.h>

#include "base/clock_fake.h"
#include "base/files_fake.h"
#include "operator/kube/yaml_reader.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

std::string kubeconfig(const std::string& user,
                       const std::string& cluster = "server: https://10.0.0.1:6443") {
  return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- {name: c, context: {cluster: k, "
         "user: u}}\n"
         "clusters:\n- name: k\n  cluster:\n    " +
         cluster + "\nusers:\n- name: u\n  user:\n    " + user + "\n";
}

std::string error_of(const std::string& text) {
  const auto config = parse_kubeconfig(text, "/d");
  return config.ok() ? "" : config.error().message;
}

TEST(Kubeconfig, reads_the_current_context) {
  const auto config = parse_kubeconfig(
      kubeconfig(
          "token: abc",
          "server: https://10.0.0.1:6443/k8s/\n    tls-server-name: api\n    certificate-authority: ca.crt"),
      "/d");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_TRUE(config->server.tls);
  EXPECT_EQ(config->server.host, "10.0.0.1");
  EXPECT_EQ(config->server.port, 6443);
  EXPECT_EQ(config->server.base_path, "/k8s");
  EXPECT_EQ(config->server.server_name, "api");
  EXPECT_EQ(config->ca.path, "/d/ca.crt");
  EXPECT_EQ(config->token.data, "abc");
}

TEST(Kubeconfig, decodes_inline_data) {
  const auto config =
      parse_kubeconfig(kubeconfig("client-certificate-data: aGVsbG8=\n    client-key-data: d29ybGQh"), "/d");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->certificate.data, "hello");
  EXPECT_EQ(config->key.data, "world!");
}

TEST(Kubeconfig, what_is_not_understood_is_refused_by_name_with_its_entry) {
  for (const std::string field : {"exec", "auth-provider", "username", "as"}) {
    const std::string error = error_of(kubeconfig(field + ": {command: /bin/false}"));
    EXPECT_NE(error.find("'" + field + "'"), std::string::npos) << error;
    EXPECT_NE(error.find("user entry 'u'"), std::string::npos) << error;
  }
  for (const std::string field : {"proxy-url", "insecure-skip-tls-verify"}) {
    const std::string error = error_of(kubeconfig("token: abc", "server: https://h\n    " + field + ": x"));
    EXPECT_NE(error.find("'" + field + "'"), std::string::npos) << error;
    EXPECT_NE(error.find("cluster entry 'k'"), std::string::npos) << error;
  }
}

TEST(Kubeconfig, bad_input_is_one_sentence) {
  EXPECT_NE(error_of("").find("no map"), std::string::npos);
  EXPECT_NE(error_of("a: [").find("YAML"), std::string::npos);
  EXPECT_NE(error_of("a: 1").find("current-context"), std::string::npos);
  EXPECT_NE(error_of(kubeconfig("token: a", "server: ftp://h")).find("ftp://h"), std::string::npos);
  EXPECT_NE(error_of(kubeconfig("token: a", "server: http://example.org")).find("https"), std::string::npos);
  EXPECT_NE(error_of(kubeconfig("token: a", "server: https://h:99999")).find("port"), std::string::npos);
  EXPECT_NE(error_of(kubeconfig("client-certificate: x")).find("client-key"), std::string::npos);
  EXPECT_NE(error_of(kubeconfig("client-key-data: '!!'")).find("base64"), std::string::npos);
}

TEST(Yaml, aliases_merge_keys_and_duplicates_are_refused) {
  EXPECT_FALSE(read_yaml("a: &x 1\nb: *x").ok());
  EXPECT_FALSE(read_yaml("&a [*a]").ok());
  EXPECT_FALSE(read_yaml("<<: {a: 1}").ok());
  const auto twice = read_yaml("a: 1\nb: 2\na: 3");
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().message.find("line 3"), std::string::npos) << twice.error().message;
}

TEST(Yaml, depth_size_and_nodes_are_capped) {
  EXPECT_FALSE(read_yaml(std::string(65, '[') + std::string(65, ']')).ok());
  EXPECT_TRUE(read_yaml(std::string(60, '[') + std::string(60, ']')).ok());
  EXPECT_FALSE(read_yaml(std::string((1u << 20) + 1, 'a')).ok());
  std::string many = "[";
  for (int i = 0; i < 100001; ++i) many += "a,";
  EXPECT_FALSE(read_yaml(many + "]").ok());
}

TEST(Yaml, scalars_stay_text) {
  const auto value = read_yaml("a: yes\nb: 010\nc: \"null\"\nd: null\ne: ''");
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ(base::dump_json(*value), R"({"a":"yes","b":"010","c":"null","d":null,"e":""})");
}

class TokenTest : public ::testing::Test {
 protected:
  void write(const std::string& text) { files.put("/t/token", text); }
  AccessConfig config() const {
    AccessConfig config;
    config.token.path = "/t/token";
    return config;
  }
  base::FakeClock clock;
  base::FakeFiles files;
};

TEST_F(TokenTest, is_read_again_after_a_minute_less_the_leeway_not_before) {
  write("one\n");
  Credentials credentials(config(), files, clock);
  EXPECT_EQ(credentials.authorization(), "Bearer one");
  write("two");
  clock.advance(49s);
  EXPECT_EQ(credentials.authorization(), "Bearer one");
  clock.advance(1s);
  EXPECT_EQ(credentials.authorization(), "Bearer two");
}

TEST_F(TokenTest, an_empty_or_missing_file_keeps_the_old_token) {
  write("one");
  Credentials credentials(config(), files, clock);
  EXPECT_EQ(credentials.authorization(), "Bearer one");
  write("\n");
  clock.advance(2min);
  EXPECT_EQ(credentials.authorization(), "Bearer one");
  ASSERT_TRUE(files.remove_all("/t/token").ok());
  clock.advance(2min);
  EXPECT_EQ(credentials.authorization(), "Bearer one");
}

TEST_F(TokenTest, a_rejection_reads_at_once) {
  write("one");
  Credentials credentials(config(), files, clock);
  credentials.authorization();
  write("two");
  credentials.rejected();
  EXPECT_EQ(credentials.authorization(), "Bearer two");
}

}  // namespace
}  // namespace evenkeel::oper
