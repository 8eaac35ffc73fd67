import { assert, describe, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Duration, Effect, Schema } from "effect"
import { AgentEvent, ProviderError } from "effect-agent"
import * as Outcome from "../../src/cli/agent/Outcome.ts"
import * as Inert from "../../src/cli/terminal/Inert.ts"
import * as Output from "../../src/cli/terminal/Output.ts"
import * as Preview from "../../src/cli/terminal/Preview.ts"
import { Screen, paintOf } from "../../src/cli/terminal/Screen.ts"
import { active, hostile, splits } from "./sequences.ts"

const stamp = { runId: "run_1", seq: 1, timestamp: 0 }
const tool = { toolCallId: "call_1" }

const delta = (text: string): AgentEvent.AgentEvent => ({
  ...stamp,
  _tag: "MessageDelta",
  messageId: "msg_1",
  delta: { _tag: "TextDelta", contentIndex: 0, delta: text }
})

const failure = (text: string) =>
  new ProviderError.ProviderError({
    provider: text,
    reason: new ProviderError.ServerError({ detail: text, body: text })
  })

/** Everything else that others have a say in and that is shown. */
const others = (text: string): ReadonlyArray<AgentEvent.AgentEvent> => [
  { ...stamp, ...tool, _tag: "ToolExecutionStart", toolName: text, params: { path: text } },
  {
    ...stamp,
    _tag: "ModelCallEnd",
    messageId: "msg_1",
    durationMs: 1,
    headers: { "x-request-id": text },
    rateLimits: { tokens: { remaining: 1, resetAfter: Duration.seconds(1) } }
  },
  { ...stamp, ...tool, _tag: "ToolExecutionStart", toolName: "x", params: { [text]: [text] } },
  ...[text, `${text}\n${text}`].flatMap((result) =>
    [true, false].map(
      (isError): AgentEvent.AgentEvent => ({
        ...stamp,
        ...tool,
        _tag: "ToolExecutionEnd",
        toolName: text,
        result: { content: [{ type: "text", text: result }] },
        isError,
        outcome: isError ? "error" : "success",
        durationMs: 1
      })
    )
  ),
  { ...stamp, _tag: "ModelCallRetry", attempt: 1, delayMs: 1, error: failure(text) },
  {
    ...stamp,
    _tag: "HookError",
    hook: "afterTool",
    hookId: text,
    error: text,
    consecutiveErrors: 1,
    disabled: false
  },
  { ...stamp, _tag: "RunError", error: failure(text), retryable: false }
]

/** A screen that keeps what is on it. */
const screen = () => {
  const kept = { out: "", err: "" }
  const write = (to: "out" | "err") => (text: string) =>
    Effect.sync(() => {
      kept[to] += text
    })
  return {
    kept,
    service: Screen.of({
      out: write("out"),
      err: write("err"),
      paint: paintOf(false),
      isInteractive: true,
      rows: () => 24,
      width: () => 0
    })
  }
}

describe("a terminal", () => {
  it("F152: is tried with more than 200 sequences that do something to it", () => {
    assert.isAtLeast(new Set(hostile).size, 200)
    for (const sequence of hostile) assert.isNotEmpty(active(sequence), JSON.stringify(sequence))
  })

  it.effect("F152: shows them of a model as text, also when they come in two pieces", () =>
    Effect.gen(function* () {
      for (const sequence of hostile) {
        for (const pieces of splits(sequence)) {
          const together = screen()
          yield* Output.text(together.service).show(pieces.map(delta))
          const apart = screen()
          const { show } = Output.text(apart.service)
          for (const piece of pieces) yield* show([delta(piece)])
          const { out } = together.kept
          assert.deepStrictEqual(active(out), [], JSON.stringify(sequence))
          assert.strictEqual(apart.kept.out, out)
          // As text: nothing of it is lost, but for carriage returns.
          assert.strictEqual(spelledOut(out), sequence.replaceAll("\r", ""))
        }
      }
    })
  )

  it.effect("F152: shows them of tools, providers and hooks as text", () =>
    Effect.gen(function* () {
      for (const sequence of hostile) {
        const { kept, service } = screen()
        yield* Output.text(service).show(others(`a${sequence}b`))
        assert.deepStrictEqual(active(kept.out + kept.err), [], JSON.stringify(sequence))
        assert.isAbove(kept.err.split("\n").length, 7)
        assert.deepStrictEqual(active(Inert.line(Outcome.explain(failure(sequence)))), [])
      }
    })
  )

  it.effect("F152: is given no colours but our own", () =>
    Effect.gen(function* () {
      for (const sequence of hostile) {
        const [plain, painted] = [screen(), screen()]
        yield* Output.text(plain.service).show(others(sequence))
        yield* Output.text({ ...painted.service, paint: paintOf(true) }).show(others(sequence))
        // oxlint-disable-next-line no-control-regex
        const own = /\u001b\[(?:2m(.*)\u001b\[22m|31m(.*)\u001b\[39m)\n/g
        assert.strictEqual(
          painted.kept.err.replaceAll(own, (_, dim = "", red = "") => `${dim}${red}\n`),
          plain.kept.err
        )
      }
    })
  )

  it.effect("F152: asks about nothing that hides what it is, be it by order or by width", () =>
    Effect.gen(function* () {
      const hidden = [
        "\u202e",
        "\u2066",
        "\u200b",
        "\u200d",
        "\ufeff",
        "\u{e0041}",
        "\u00ad",
        "\u2028",
        "\u00a0"
      ]
      for (const sequence of [...hostile, ...hidden]) {
        const lines = [
          yield* Preview.of("shell", { command: sequence }, "/nowhere"),
          yield* Preview.of("write", { path: sequence, content: sequence }, "/nowhere"),
          yield* Preview.of("edit", { path: sequence, oldText: sequence, newText: sequence }, "/nowhere"),
          yield* Preview.of(sequence, { [sequence]: sequence }, "/nowhere")
        ].flatMap((preview) => [preview.title, ...Preview.brief(preview, paintOf(false))])
        const shown = lines.join("\n")
        assert.deepStrictEqual(active(shown), [], JSON.stringify(sequence))
        assert.notMatch(shown, /[\p{Cf}\p{Zl}\p{Zp}\u00a0]/u, JSON.stringify(sequence))
      }
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("F152: is safe from JSON too, which holds them all the same", () =>
    Effect.gen(function* () {
      const decode = Schema.decodeUnknownEffect(
        Schema.fromJsonString(Schema.toCodecJson(AgentEvent.AgentEvent))
      )
      for (const sequence of hostile) {
        const events = [...splits(sequence).flatMap((pieces) => pieces.map(delta)), ...others(sequence)]
        const { kept, service } = screen()
        yield* Output.json(service)(events)
        assert.deepStrictEqual(active(kept.out), [], JSON.stringify(sequence))
        const lines = kept.out.trimEnd().split("\n")
        assert.deepStrictEqual(yield* Effect.forEach(lines, (line) => decode(line)), events)
      }
    })
  )
})

/** What was written as escapes, as it was. */
const spelledOut = (text: string): string =>
  text.replaceAll(/\\u\{([0-9a-f]+)\}/g, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)))
