import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import * as Secrets from "../../src/providers/internal/secrets.ts"

const key = "sk-PLANTED_ab+cd/ef=0123456789~x.y"
const redact = Secrets.make([Redacted.make(key)], {}, "https://acme.test")
const each = (how: (char: string) => string) => Array.from(key, how).join("")
const base64 = (text: string) => Buffer.from(text).toString("base64")

describe("a key in an error", () => {
  it.each(Array.from({ length: key.length - 8 }, (_, index) => index + 8))(
    "is cut out where %i of its characters are left, at either end",
    (left) => {
      assert.strictEqual(redact(`Wrong key (${key.slice(0, left)}) given`).match(/PLANT|\d{4}/), null)
      // Vendors show the last four.
      const end = redact(`Wrong key (${key.slice(-left)}) given`)
      if (left > 10) assert.notMatch(end, /\d{4}/)
      const middle = redact(`Wrong key (${key.slice(2, left)}) given`)
      if (left > 22) assert.notMatch(middle, /PLANT|\d{4}/)
    }
  )

  it.each([
    ["a line end", `${key.slice(0, 12)}\n${key.slice(12)}`],
    ["a line end of Windows and spaces", `${key.slice(0, 12)}\r\n  ${key.slice(12)}`],
    ["an escaped line end", JSON.stringify(`${key.slice(0, 12)}\n${key.slice(12)}`)],
    ["spaces", each((char) => `${char} `)],
    ["characters without a width", each((char) => `${char}\u200b`)],
    ["NUL", each((char) => `${char}\0`)],
    ["escaped NUL", JSON.stringify(each((char) => `${char}\0`))],
    ["a soft hyphen", `${key.slice(0, 10)}\u00ad${key.slice(10)}`],
    ["base64", base64(key)],
    ["base64 of user and key", `Basic ${base64(`user:${key}`)}`],
    ["base64 with something before and after it", base64(`ab${key}cdef`)],
    ["base64 of URLs", Buffer.from(`x${key}`).toString("base64url")],
    ["base64 that breaks lines", base64(`abc${key}`).replace(/(.{20})/g, "$1\n")]
  ])("is cut out with %s", (_, form) => {
    assert.match(
      redact(`Wrong key (${form}) given`),
      /^Wrong key \("?(Basic )?[\w+/=-]*\[redacted\]\S{0,6} ?"?\) given$/
    )
  })

  it("is cut out whole where there are two", () => {
    assert.strictEqual(redact(`abc${key}def ${key}${key}`), "abc[redacted]def [redacted]")
  })

  it.each([
    ["sk-ant-api03-PLANTED0123456789abcdef", "Keys begin with sk-ant-api03- here"],
    ["sk-proj-PLANTED0123456789abcdef", "Keys begin with sk-proj- here"],
    ["password-0123", "Wrong password given"],
    ["0123-production", "in production"],
    ["acme-team-key-0123", "the team of acme has no such key"]
  ])("leaves what others share with %s", (key, text) => {
    assert.strictEqual(Secrets.make([Redacted.make(key)], {}, "https://acme.test")(text), text)
  })

  it("is cut out as the password of a header in base64", () => {
    const header = { authorization: `Basic ${base64("me:hunter2-planted")}` }
    assert.strictEqual(Secrets.make([], header, "https://acme.test")("not hunter2-planted"), "not [redacted]")
  })
})
