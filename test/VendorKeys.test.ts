import { assert, describe, it } from "@effect/vitest"
import * as VendorKeys from "../src/http/VendorKeys.ts"

// Put together here, so that nobody takes them for keys.
const body = "abcdef0123456789"
const heads =
  "sk- sk-proj- sk-ant-api03- sk-or-v1- sk_live_ rk_live_ gsk_ csk- nvapi- fw_ xai- hf_ ghp_ gho_ github_pat_ glpat- xoxb- npm_ pypi- AIza ya29."
const keys = [...heads.split(" ").map((head) => head + body), "AKIA" + "IOSFODNN7EXAMPLE"]

describe("VendorKeys", () => {
  it("cuts keys out of a text", () => {
    for (const key of keys) {
      assert.strictEqual(VendorKeys.cutOut(`{"key":"${key}"} is bad`), `{"key":"[redacted]"} is bad`, key)
      assert.strictEqual(VendorKeys.cutOut(`${key} and ${key}`), "[redacted] and [redacted]", key)
    }
    assert.strictEqual(VendorKeys.cutOut(`authorization: Bearer ${body}`), "authorization: [redacted]")
  })

  it("knows a key when it sees one", () => {
    for (const key of keys) assert.isTrue(VendorKeys.is(key), key)
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
      assert.strictEqual(VendorKeys.cutOut(`a ${word} b`), `a ${word} b`)
      assert.isFalse(VendorKeys.is(word), word)
    }
  })
})
