import { assert, describe, it } from "@effect/vitest"
import * as VendorText from "../src/http/VendorText.ts"

// Put together here, so that nobody takes them for keys.
const body = "abcdef0123456789"
const heads =
  "sk- sk-proj- sk-ant-api03- sk-or-v1- sk_live_ rk_live_ gsk_ csk- nvapi- fw_ xai- hf_ ghp_ gho_ github_pat_ glpat- xoxb- npm_ pypi- AIza ya29."
const keys = [...heads.split(" ").map((head) => head + body), "AKIA" + "IOSFODNN7EXAMPLE"]

describe("keys in texts", () => {
  it("cuts keys out of a text", () => {
    for (const key of keys) {
      assert.strictEqual(VendorText.cutOut(`{"key":"${key}"} is bad`), `{"key":"[redacted]"} is bad`, key)
      assert.strictEqual(VendorText.cutOut(`${key} and ${key}`), "[redacted] and [redacted]", key)
    }
    assert.strictEqual(VendorText.cutOut(`authorization: Bearer ${body}`), "authorization: [redacted]")
  })

  it("knows a key when it sees one", () => {
    for (const key of keys) assert.isTrue(VendorText.isKey(key), key)
  })

  it("leaves alone what only begins like one", () => {
    for (const word of [
      "npm_lifecycle_event",
      "npm_config_user_agent",
      "fw_update_available",
      "hf_hub_download_url",
      "ASIA-PACIFIC-REGION",
      "task-oriented-programming",
      "/home/me/sk-tools/bin",
      "sk_SK.UTF-8"
    ]) {
      assert.strictEqual(VendorText.cutOut(`a ${word} b`), `a ${word} b`)
      assert.isFalse(VendorText.isKey(word), word)
    }
  })
})
