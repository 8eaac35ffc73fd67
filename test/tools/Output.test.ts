import { assert, describe, it } from "@effect/vitest"
import { Output } from "effect-agent/tools"

describe("Output", () => {
  it("leaves short text as it is", () => {
    assert.strictEqual(Output.cut("hello\nworld", 20), "hello\nworld")
    assert.strictEqual(Output.cut("x".repeat(20), 20), "x".repeat(20))
  })

  it("keeps the head and the tail, and counts what is between", () => {
    const text = `${"a".repeat(50)}${"b".repeat(1_000)}${"c".repeat(50)}`
    assert.strictEqual(
      Output.cut(text, 100),
      `${"a".repeat(50)}\n[... 1000 characters left out ...]\n${"c".repeat(50)}`
    )
  })

  it("gives the same however the text is cut into pieces", () => {
    const text = Array.from({ length: 3_000 }, (_, index) => `line ${index}`).join("\n")
    for (const step of [1, 7, 100, 999, 40_000]) {
      const output = Output.bounded(1_000)
      for (let at = 0; at < text.length; at += step) output.append(text.slice(at, at + step))
      assert.strictEqual(output.text(), Output.cut(text, 1_000))
      assert.strictEqual(output.total(), text.length)
      assert.strictEqual(output.omitted(), text.length - 1_000)
      assert.strictEqual(output.tail(9), "line 2999")
    }
  })

  it("gives an end without gaps, and no more than it holds of it", () => {
    const output = Output.bounded(10)
    output.append("abcdefg")
    assert.strictEqual(output.tail(100), "abcdefg")
    output.append("h".repeat(20) + "ijklmno")
    assert.strictEqual(output.tail(100), "klmno")
    assert.strictEqual(output.tail(2), "no")
    output.append("p")
    assert.strictEqual(output.tail(100), "lmnop")
  })

  it("cuts no character in two", () => {
    // Encoding fails on half a character.
    assert.isString(encodeURIComponent(Output.cut("😀".repeat(100), 51)))
    assert.strictEqual(Output.cutLine("😀".repeat(10), 5), "😀😀 [... 15 characters left out ...]")
  })

  it("shows names on one line", () => {
    assert.strictEqual(Output.visible("a\nb\u001b[31mc"), "a\\u{a}b\\u{1b}[31mc")
    assert.strictEqual(Output.visible("ünï côdé 😀.txt"), "ünï côdé 😀.txt")
  })
})
