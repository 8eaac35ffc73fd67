import { assert, describe, it } from "@effect/vitest"
import { ReplyWriter } from "effect-agent/providers"

const written = (write: (reply: ReplyWriter.ReplyWriter) => void) => {
  const reply = new ReplyWriter.ReplyWriter({ name: "lines", provider: "acme" }, { model: "m", seed: "s" })
  write(reply)
  return reply.take()
}

const tags = (write: (reply: ReplyWriter.ReplyWriter) => void) => written(write).map(({ _tag }) => _tag)

describe("ReplyWriter", () => {
  it("opens and ends blocks as their kind changes, and starts once", () => {
    const events = written((reply) => {
      reply.thinking("Hm")
      reply.thinking("m")
      reply.text("Hi")
      reply.text("")
      reply.finish({ stopReason: "stop" })
    })
    assert.deepStrictEqual(
      events.map((event) => [event._tag, "contentIndex" in event ? event.contentIndex : undefined]),
      [
        ["Start", undefined],
        ["ThinkingStart", 0],
        ["ThinkingDelta", 0],
        ["ThinkingDelta", 0],
        ["ThinkingEnd", 0],
        ["TextStart", 1],
        ["TextDelta", 1],
        ["TextEnd", 1],
        ["Finish", undefined]
      ]
    )
  })

  it("gives each call an id of its own, announces it with its name, and ends it at the end", () => {
    const events = written((reply) => {
      reply.openCall("a", "read").write("{}")
      const late = reply.openCall("a", undefined)
      late.write('{"x":')
      late.named("write")
      late.write("1}")
      reply.openCall(undefined, "list")
      reply.finish({ stopReason: "stop" })
    })
    assert.deepStrictEqual(
      events.flatMap((event) => (event._tag === "ToolCallStart" ? [[event.id, event.name]] : [])),
      [
        ["a", "read"],
        ["a_1", "write"],
        ["call_s_2", "list"]
      ]
    )
    assert.deepStrictEqual(
      events.flatMap((event) => (event._tag === "ToolCallEnd" ? [event.rawArguments] : [])),
      ["{}", '{"x":1}', ""]
    )
    assert.deepStrictEqual(events.at(-1), { _tag: "Finish", stopReason: "toolUse" })
  })

  it("leaves out a call that was dropped, and ends a refusal as one", () => {
    assert.deepStrictEqual(
      tags((reply) => {
        reply.openCall("a", "read").drop()
        reply.finish({ stopReason: "contentFilter" })
      }),
      ["Start", "ToolCallStart", "Finish"]
    )
    const [finish] = written((reply) => {
      reply.isRefusal = true
      reply.finish({ stopReason: "stop" })
    }).slice(-1)
    assert.deepStrictEqual(finish, { _tag: "Finish", stopReason: "refusal" })
  })

  it("ends an open block before a source, a file or a hosted tool, and keeps data for the vendor", () => {
    const events = written((reply) => {
      reply.text("See")
      reply.source({ sourceType: "url", url: "https://a.example" }, { signature: "s" })
      const search = reply.hostedTool("h1", "web_search")
      search.end({ params: { query: "x" } })
      search.end({ params: { query: "again" } })
      reply.media({ source: { data: "AA==", mediaType: "image/png" } })
    })
    assert.deepStrictEqual(events.slice(3), [
      { _tag: "TextEnd", contentIndex: 0 },
      {
        _tag: "Source",
        contentIndex: 1,
        source: {
          type: "source",
          sourceType: "url",
          url: "https://a.example",
          opaque: { provider: "acme", signature: "s" }
        }
      },
      { _tag: "HostedToolStart", contentIndex: 2, id: "h1", name: "web_search" },
      { _tag: "HostedToolEnd", contentIndex: 2, params: { query: "x" } },
      {
        _tag: "Media",
        contentIndex: 3,
        media: { type: "media", source: { data: "AA==", mediaType: "image/png" } }
      }
    ])
  })

  it("hides thinking without a text, of which the vendor wants data back", () => {
    const events = written((reply) => {
      reply.openThinking().end()
      const hidden = reply.openThinking()
      hidden.keep({ data: "x" })
      hidden.end()
    })
    assert.deepStrictEqual(
      events.flatMap((event) => (event._tag === "ThinkingEnd" ? [event.redacted] : [])),
      [undefined, true]
    )
  })
})
