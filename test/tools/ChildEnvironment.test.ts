import { assert, describe, it } from "@effect/vitest"
import { ChildEnvironment } from "effect-agent/tools"

const added = { ...ChildEnvironment.marker, ...ChildEnvironment.unattended }

describe("ChildEnvironment", () => {
  it("F151: leaves out what looks like a secret by its name", () => {
    for (const name of [
      "ANTHROPIC_API_KEY",
      "OPENAI_API_KEY",
      "ANTHROPIC_AUTH_TOKEN",
      "GEMINI_API_KEY",
      "AWS_ACCESS_KEY_ID",
      "AWS_SECRET_ACCESS_KEY",
      "AWS_SESSION_TOKEN",
      "GITHUB_TOKEN",
      "GH_PAT",
      "NPM_TOKEN",
      "npm_config__authToken",
      "PGPASSWORD",
      "DB_PASS",
      "MYSQL_PWD_PASSWD",
      "MYSQL_PWD",
      "GOOGLE_APPLICATION_CREDENTIALS",
      "CI_JOB_JWT",
      "SENTRY_DSN",
      "ANTHROPIC_CUSTOM_HEADERS",
      "OTEL_EXPORTER_OTLP_HEADERS",
      "SLACK_WEBHOOK_URL",
      "STRIPE_SECRET",
      "openai_key",
      "OPENAIKEY",
      "SESSION_COOKIE",
      "DEPLOY_KEY",
      "KEY",
      "AZURE_CONNECTION_STRING",
      "GPG_PASSPHRASE",
      "BASIC_AUTH",
      "DB_PW",
      "MYSQL_ROOT_PW",
      "GPG_PIN",
      "OTP_SEED",
      "SALT",
      "MNEMONIC",
      "WALLET_SEED_PHRASE",
      "RECOVERY_CODE",
      "BACKUP_CODES",
      "SESSION",
      "VAULT_UNSEAL",
      "SIGNING_CERT_P12"
    ]) {
      assert.isTrue(ChildEnvironment.isSecret(name, "value"), name)
    }
  })

  it("F151: leaves out what looks like a secret by its value", () => {
    for (const value of [
      "sk-ant-api03-abcdefgh",
      "sk_live_abcdefgh1234",
      "ghp_abcdefgh12345678",
      "github_pat_abcdefgh12",
      "xoxb-12345678-abc",
      "AKIAIOSFODNN7EXAMPLE",
      "AIzaSyAabcdefgh",
      "-----BEGIN RSA PRIVATE KEY-----\nabc",
      "postgres://u:p@host/db",
      "https://host/v1?api-version=1&key=abcdefgh12",
      "https://host/blob?sv=1&sig=abcdefgh12%3D",
      "https://host/hook?access_token=abcdefgh",
      "redis://:pass@host",
      "Authorization: Bearer abcdefgh",
      "Basic aHVudGVyMg==",
      "eyJhbGciOi.eyJzdWIi.sig",
      "hf_abcdefgh1234"
    ]) {
      assert.isTrue(ChildEnvironment.isSecret("SOME_SETTING", value), value)
    }
  })

  it("keeps what commands need", () => {
    const kept = {
      PATH: "/home/me/sk-tools/bin:/usr/bin",
      HOME: "/home/me",
      PWD: "/home/me/token",
      OLDPWD: "/home/me",
      LANG: "C.UTF-8",
      TERM: "xterm",
      SSH_AUTH_SOCK: "/tmp/agent.1",
      XAUTHORITY: "/home/me/.Xauthority",
      JAVA_HOME: "/usr/lib/jvm",
      NODE_OPTIONS: "--max-old-space-size=4096",
      TOKENIZERS_PARALLELISM: "false",
      KEYBOARD: "us",
      AUTHOR: "me",
      PASSENGER_APP: "x",
      HTTPS_PROXY: "http://proxy:8080",
      BASE_URL: "https://host/v1?api-version=2024-10-21&monkey=no",
      GIT_AUTHOR_NAME: "me",
      XDG_SESSION_ID: "3",
      DESKTOP_SESSION: "gnome",
      SESSION_MANAGER: "local/host:@/tmp/.ICE-unix/1",
      RANDOM_SEED: "7",
      EXIT_CODE: "0",
      COMPILER: "Visual Basic compiler",
      LEVEL: "Basic settings only"
    }
    assert.deepStrictEqual(ChildEnvironment.make(kept), { ...kept, ...added })
  })

  it("passes what it is told to", () => {
    assert.deepStrictEqual(
      ChildEnvironment.make(
        { A_KEY: "1", B_KEY: "2", C: undefined },
        { passed: ["A_KEY"], added: { D_KEY: "3", E: undefined } }
      ),
      { ...added, A_KEY: "1", D_KEY: "3" }
    )
  })

  it("replaces each editor and pager, unless it is passed or added", () => {
    const inherited = {
      HGEDITOR: "vi",
      KUBE_EDITOR: "code -w",
      GH_PAGER: "less",
      VISUAL: "emacs",
      PAGER: "less"
    }
    const all = ChildEnvironment.make(inherited, { passed: ["KUBE_EDITOR"], added: { PAGER: "more" } })
    assert.deepInclude(all, {
      HGEDITOR: "true",
      KUBE_EDITOR: "code -w",
      GH_PAGER: "cat",
      VISUAL: "true",
      PAGER: "more"
    })
    assert.strictEqual(
      ChildEnvironment.make({ GIT_EDITOR: "ed" }, { passed: ["GIT_EDITOR"] })["GIT_EDITOR"],
      "ed"
    )
  })

  it("names what it withholds", () => {
    const inherited = {
      PATH: "/bin",
      DATABASE_URL: "postgres://u:p@h/d",
      GH_TOKEN: "x",
      EMPTY_TOKEN: undefined
    }
    assert.deepStrictEqual(ChildEnvironment.withheld(inherited), ["DATABASE_URL", "GH_TOKEN"])
    assert.deepStrictEqual(ChildEnvironment.withheld(inherited, ["GH_TOKEN"]), ["DATABASE_URL"])
    assert.notProperty(ChildEnvironment.make(inherited), "DATABASE_URL")
  })
})
