import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import * as Secrets from "../../src/providers/internal/secrets.ts"
import { drive, leaks } from "./secrets/drive.ts"
import { languages, secrets, ways } from "./secrets/planted.ts"
import { shapes } from "./secrets/shapes.ts"

describe("secrets", () => {
  it("F150: are twenty and more, against more than thirty answers", () => {
    assert.isAtLeast(new Set(secrets.map(({ value }) => value)).size, 20)
    assert.isAtLeast(shapes.length, 30)
  })

  it("F150: are found where a text breaks off in the middle of one", () => {
    const redact = Secrets.make([Redacted.make("sk-planted-0123456789")], {}, "https://acme.test")
    assert.strictEqual(redact("Incorrect key: sk-planted-0123"), "Incorrect key: [redacted]")
    assert.strictEqual(redact("Incorrect key: sk-plan"), "Incorrect key: sk-plan")
    for (const rest of [
      "%",
      "%3",
      "%252",
      "\\",
      "\\u",
      "\\u00",
      "&",
      "&#",
      "&#5",
      "&#x3",
      "&lowb",
      "&amp;lo"
    ]) {
      assert.strictEqual(redact(`Incorrect key: sk-planted${rest}`), "Incorrect key: [redacted]", rest)
    }
    const marked = Secrets.make([Redacted.make("abc&def-0123456789")], {}, "https://acme.test")
    assert.strictEqual(marked("Incorrect key: abc&def-0"), "Incorrect key: [redacted]")
  })

  it("F150: are found in every spelling, and nothing beside them is cut out", () => {
    const key = "sk_live-AbCd/EfGh+IjKl=="
    const redact = Secrets.make([Redacted.make(key)], {}, "https://acme.test")
    const each = (how: (char: string) => string) => Array.from(key, how).join("")
    const code = (char: string) => char.charCodeAt(0)
    const names: Readonly<Record<string, string>> = {
      _: "lowbar",
      "-": "hyphen",
      "/": "sol",
      "+": "plus",
      "=": "equals"
    }
    const named = (before: string) => each((char) => (char in names ? `${before}${names[char]};` : char))
    const again = (times: number, how: (text: string) => string) =>
      Array.from({ length: times }).reduce<string>((text) => how(text), key)
    const spellings = [
      key.toUpperCase(),
      JSON.stringify(key).slice(1, -1).replaceAll("/", "\\/"),
      encodeURIComponent(key),
      named("&"),
      named("&amp;"),
      named("&amp;amp;amp;amp;amp;amp;"),
      named("&").replaceAll("lowbar", "UnderBar"),
      each((char) => `&#${code(char)};`),
      each((char) => `&#${String(code(char)).padStart(12, "0")};`),
      each((char) => `&#x${code(char).toString(16)};`),
      each((char) => `&#X${code(char).toString(16).padStart(9, "0")};`),
      key.replaceAll("_", "&#95").replaceAll("/", "&#47"),
      each((char) => `\\x${code(char).toString(16).padStart(2, "0")}`),
      each((char) => `\\u${code(char).toString(16).padStart(4, "0")}`),
      each((char) => `\\u{${code(char).toString(16)}}`),
      again(9, encodeURIComponent),
      again(5, JSON.stringify),
      encodeURIComponent(JSON.stringify(JSON.stringify(key))),
      encodeURIComponent(named("&")),
      JSON.stringify(encodeURIComponent(named("&amp;")))
    ]
    for (const spelling of spellings) {
      const clean = redact(`{"a":"no ${spelling} b"} c`)
      assert.match(clean, /^{"a":"no \W*(?:%\w\w|\W)*\[redacted\](?:%[\da-f]{2}|\W)* b"} c$/i, spelling)
      assert.notMatch(clean, /AbCd|EfGh|IjKl|&#/i)
    }
    assert.strictEqual(redact("no such key: sk_live"), "no such key: sk_live")
  })

  it("F150: are found with white space in them, as it is, folded and escaped", () => {
    const secret = "first-part\r\n\tsecond-part"
    const redact = Secrets.make([], { "x-api-key": secret }, "https://acme.test")
    const spellings = [
      secret,
      secret.replace(/\s+/, " "),
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret)
    ]
    for (const spelling of [...spellings, encodeURIComponent(JSON.stringify(secret).slice(1, -1))]) {
      assert.strictEqual(redact(`bad: ${spelling}.`), "bad: [redacted].", spelling)
    }
    // A backslash before a letter may also be one of a path.
    const path = Secrets.make([Redacted.make("nvapi-0123456789")], {}, "https://acme.test")
    assert.strictEqual(path("C:\\keys\\nvapi-0123456789"), "C:\\keys[redacted]")
    assert.strictEqual(path('"\\nnvapi-0123456789"'), '"\\n[redacted]"')
  })

  it("F150: of an address and a query are found as words, however short", () => {
    const url = "https://me:pw%401@acme.test/v1?key=k1&deployment=gpt&version=2024-10-21"
    const redact = Secrets.make([], {}, url)
    assert.strictEqual(
      redact("for me: pw@1, k1 or K1"),
      "for [redacted]: [redacted], [redacted] or [redacted]"
    )
    assert.strictEqual(redact("pw%401 pw&commat;1"), "[redacted] [redacted]")
    assert.strictEqual(redact("the method home, k12 and gpt"), "the method home, k12 and gpt")
    assert.strictEqual(redact(`Basic ${btoa("me:pw@1")}`), "Basic [redacted]")
    assert.strictEqual(redact("version 2024-10-21"), "version [redacted]")
    // Nothing but marks would be found everywhere.
    const marks = Secrets.make([Redacted.make("!!!!????....")], {}, "https://acme.test")
    assert.strictEqual(marks("------------ !!!!????...."), "------------ [redacted]")
  })

  it("F150: are found beside what is no character", () => {
    const redact = Secrets.make([Redacted.make("sk-planted-0123456789")], {}, "https://acme.test")
    const odd = [
      "&#x110000;",
      "&#9999999;",
      "\\u{ffffff}",
      "%ff%fe",
      "%c3",
      "\ud800",
      "&constructor;",
      "&__proto__;"
    ]
    for (const before of odd) {
      assert.strictEqual(
        redact(`${before} sk-planted-0123456789 ${before}`),
        `${before} [redacted] ${before}`
      )
    }
  })

  it.live.each(languages)(
    "F150: of a provider of %s are in no event, error, log or span, whatever a server gives back",
    (language) =>
      Effect.gen(function* () {
        const found: Array<string> = []
        for (const [index, shape] of shapes.entries()) {
          // All ways with all answers are the business of chaos.
          const way = ways[index % ways.length] ?? "options"
          const sinks = yield* drive({ language, shape, way }, FetchHttpClient.layer)
          assert.isNotEmpty(sinks.events)
          assert.isNotEmpty(sinks.spans)
          found.push(...leaks(sinks).map((leak) => `${shape.name}, by ${way}: ${leak}`))
        }
        assert.deepStrictEqual(found, [])
      }),
    120_000
  )
})
