/** Whatever a vendor refuses in a conversation, the next prompt of the user reaches the model: in the same agent and after a restart. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Message } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { refuse, serve } from "../providers/server.ts"
import { signed, type Wire, wires } from "./wires.ts"

/** The data of an image and a document that no check here finds fault with. */
const picture = "UElDVFVSRQ=="
const pages = "JVBERi1QQUdFUw=="
const poison = "POISON"

const prompts: Readonly<Record<string, string | Message.User["content"]>> = {
  [signed]: "and now?",
  [picture]: [Message.text("look"), Message.image(picture, "image/png")],
  [pages]: [
    Message.text("read"),
    { type: "file", source: { data: pages, mediaType: "application/pdf" }, name: "a.pdf" }
  ],
  [poison]: `say ${poison}`
}

/** The content that a server refuses, and the words of the refusal. */
type Refusal = readonly [content: string, status: number, message: string, code?: string]

const refusals: ReadonlyArray<Refusal> = [
  [signed, 400, "messages.1.content.0: Invalid `signature` in `thinking` block"],
  [signed, 400, "The encrypted content gAAA could not be verified.", "invalid_encrypted_content"],
  [signed, 400, "Thought signature is not valid."],
  [signed, 404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."],
  [signed, 422, "history no good"],
  [picture, 400, "image exceeds 5 MB maximum: 5300000 bytes > 5242880 bytes"],
  [picture, 400, "Could not process image"],
  [picture, 404, "No endpoints found that support image input"],
  [picture, 400, "is not a multimodal model"],
  [picture, 400, "history no good"],
  [picture, 413, "Request Entity Too Large"],
  [picture, 415, "nope"],
  [pages, 400, "The PDF specified was not valid."],
  [pages, 400, "The document has no pages."],
  [pages, 404, "File not found: file_01"],
  [pages, 404, "No such File object: file-1"],
  [pages, 403, "You do not have permission to access the File f1 or it may not exist."],
  [pages, 400, "Error while downloading file. Upstream status code: 404."],
  [pages, 422, "history no good"],
  [poison, 400, "history no good"],
  [poison, 400, "Your input was flagged by our content policy", "content_policy_violation"]
]

const store = SessionStore.make(MemorySessionStore.storage())

/** Whether an agent that opens the session answers the prompts, and what it left out of the last request. */
const ask = (
  sessionId: string,
  wire: Wire,
  baseUrl: string,
  asked: ReadonlyArray<string | Message.User["content"]>
) =>
  Effect.gen(function* () {
    const session = yield* store.openOrCreate(sessionId)
    const agent = yield* Agent.make({ model: wire.model, session })
    let adjusted: ReadonlyArray<string> = []
    yield* agent.subscribe((event) =>
      Effect.sync(() => {
        if (event._tag === "ModelCallEnd") adjusted = (event.adjusted ?? []).map(({ option }) => option)
      })
    )
    const answers: Array<string | undefined> = []
    for (const prompt of asked) {
      answers.push(
        yield* Effect.match(agent.prompt(prompt), {
          onSuccess: ({ text }) => text,
          onFailure: () => undefined
        })
      )
    }
    return { answers, adjusted }
  }).pipe(Effect.scoped, Effect.provide(Retry.layer()(wire.layer(baseUrl))))

describe("a conversation with content that a vendor refuses", () => {
  for (const [name, wire] of Object.entries(wires)) {
    for (const [index, [content, status, message, code]] of refusals.entries()) {
      it.live(`goes on over ${name} after ${status} ${JSON.stringify(message)} for ${content}`, () =>
        Effect.gen(function* () {
          const { baseUrl, requests } = yield* serve((response, { body }) => {
            if (body.includes(content))
              refuse(response, status, { error: { type: "invalid_request_error", message, code } })
            else
              response
                .writeHead(200, { "content-type": wire.contentType ?? "text/event-stream" })
                .end(wire.answer("ok"))
          })
          const origin = new URL(baseUrl).origin
          const id = `${name.replace(" ", "-")}-${index}`
          const bad = prompts[content] ?? ""
          const { adjusted, answers } = yield* ask(id, wire, origin, ["first", bad, "next"])
          assert.deepStrictEqual([answers[0], answers[2]], ["ok", "ok"])
          if (content !== poison) {
            // The prompt with the content is answered too, by one more request.
            assert.deepStrictEqual([answers[1], requests.length], ["ok", 4])
            assert.lengthOf(adjusted, 1)
          }
          const before = requests.length
          const later = yield* ask(id, wire, origin, ["later"])
          assert.deepStrictEqual([later.answers, requests.length], [["ok"], before + 1])
          assert.deepStrictEqual(later.adjusted, adjusted)
        })
      )
    }
  }
})
