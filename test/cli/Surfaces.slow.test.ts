/**
 * The program against the servers of `@copilotkit/aimock`, which imitates each vendor independently of our reading of its
 * documentation.
 */
import { assert, describe, it } from "@effect/vitest"
import { LLMock } from "@copilotkit/aimock"
import { Effect, Schema } from "effect"
import { AgentEvent } from "effect-agent"
import * as Program from "./program.ts"

Program.bundled()

interface Surface {
  /** The model, with its provider. */
  readonly model: string
  /** The path of the API. */
  readonly path: string
  /** Where the API begins on the server (default: at its root). */
  readonly base?: string
  readonly env: Readonly<Record<string, string>>
  /** Why an answer ends that is refused or cut, in the words of the vendor as far as aimock knows them, and the exit code. */
  readonly ending: readonly [finishReason: string, code: number]
}

const aws = { AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "AKIDUSER", AWS_SECRET_ACCESS_KEY: "secret" }

const surfaces: ReadonlyArray<Surface> = [
  {
    model: "openai/gpt-5-mini",
    path: "/v1/responses",
    base: "/v1",
    env: { OPENAI_API_KEY: "k" },
    ending: ["length", 1]
  },
  {
    model: "openai-chat/gpt-5-mini",
    path: "/v1/chat/completions",
    base: "/v1",
    env: { OPENAI_API_KEY: "k" },
    ending: ["content_filter", 1]
  },
  {
    model: "anthropic/claude-sonnet-4-5",
    path: "/v1/messages",
    env: { ANTHROPIC_API_KEY: "k" },
    ending: ["refusal", 5]
  },
  {
    model: "google/gemini-2.5-flash",
    path: "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
    env: { GEMINI_API_KEY: "k" },
    ending: ["content_filter", 1]
  },
  {
    model: "openrouter/moonshotai/kimi-k2.6",
    path: "/api/v1/chat/completions",
    base: "/api/v1",
    env: { OPENROUTER_API_KEY: "k" },
    ending: ["content_filter", 1]
  },
  {
    model: "ollama/qwen3",
    path: "/v1/chat/completions",
    base: "/v1",
    env: {},
    ending: ["content_filter", 1]
  },
  {
    model: "amazon-bedrock/us.amazon.nova-pro-v1:0",
    path: "/model/us.amazon.nova-pro-v1%3A0/converse-stream",
    env: aws,
    ending: ["guardrail_intervened", 1]
  }
]

const answer = "The note says: buy milk, bread and cheese before the shops close."

/** A server with these answers. */
const mocked = (setUp: (mock: LLMock) => void) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const mock = new LLMock({ port: 0, chunkSize: 6 })
      setUp(mock)
      await mock.start()
      return mock
    }),
    (mock) => Effect.promise(() => mock.stop())
  )

/** Runs the program on a prompt, in a folder with a note. */
const asks = ({ base = "", env, model }: Surface, mock: LLMock, flags: ReadonlyArray<string> = ["--print"]) =>
  Program.run(["--model", model, "--base-url", `${mock.url}${base}`, ...flags, "What does note.txt say?"], {
    cwd: Program.folder({ "note.txt": "milk, bread, cheese\n" }),
    env
  })

const statuses = (mock: LLMock) => mock.getRequests().map(({ response }) => response.status)

const eventsOf = (stdout: string) =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => Schema.decodeUnknownSync(Schema.toCodecJson(AgentEvent.AgentEvent))(JSON.parse(line)))

describe.concurrent.each(surfaces)("$model", { timeout: 60_000 }, (surface) => {
  it.effect("runs the tool that the model calls, and streams the answer", () =>
    Effect.gen(function* () {
      const mock = yield* mocked((mock) => {
        mock.on(
          { hasToolResult: false, toolName: "read" },
          { content: "Let me look.", toolCalls: [{ name: "read", arguments: { path: "note.txt" } }] }
        )
        mock.on({ hasToolResult: true, toolResultContains: "milk, bread, cheese" }, { content: answer })
      })
      const { code, stderr, stdout } = yield* asks(surface, mock, ["--json"])
      assert.strictEqual(code, 0, stderr)
      const events = eventsOf(stdout)
      const deltas = events.flatMap((event) => (AgentEvent.isTextDelta(event) ? [event.delta.delta] : []))
      assert.strictEqual(deltas.join(""), `Let me look.${answer}`)
      assert.isAbove(deltas.length, 8)
      assert.isTrue(events.every((event) => event._tag !== "ToolExecutionEnd" || event.outcome === "success"))
      assert.deepStrictEqual(
        mock.getRequests().map(({ path, response }) => [path, response.status]),
        [
          [surface.path, 200],
          [surface.path, 200]
        ]
      )
    })
  )

  it.effect("waits as long as a rate limit says, and asks again where an answer breaks off", () =>
    Effect.gen(function* () {
      const mock = yield* mocked((mock) => {
        const limited = {
          error: { message: "Slow down", type: "rate_limit_error" },
          status: 429,
          retryAfter: 2
        }
        mock.on({ sequenceIndex: 0 }, limited)
        mock.on({ sequenceIndex: 1 }, { content: answer }, { truncateAfterChunks: 4 })
        mock.on({ sequenceIndex: 2 }, { content: answer })
      })
      const { code, stderr, stdout } = yield* asks(surface, mock)
      assert.strictEqual(stdout, `${answer}\n`, stderr)
      assert.strictEqual(code, 0)
      const [limited, broken, whole] = mock.getRequests()
      assert.deepStrictEqual(statuses(mock), [429, 200, 200])
      assert.isAtLeast((broken?.timestamp ?? 0) - (limited?.timestamp ?? 0), 1900)
      assert.isTrue(broken?.response.interrupted)
      assert.deepStrictEqual(whole?.body, broken?.body)
    })
  )

  it.effect("gives up on a server that fails in one way after another, and says how", () =>
    Effect.gen(function* () {
      const mock = yield* mocked((mock) => {
        mock.on({ sequenceIndex: 0 }, { error: { message: "on fire", type: "server_error" }, status: 500 })
        mock.on({ sequenceIndex: 1 }, { content: answer }, { chaos: { disconnectRate: 1 } })
        mock.on({ sequenceIndex: 2 }, { content: answer }, { chaos: { malformedRate: 1 } })
      })
      const { code, stderr, stdout } = yield* asks(surface, mock)
      assert.deepStrictEqual([code, stdout], [1, ""], stderr)
      assert.match(stderr, /ServerError: on fire[^]*Transport: [^]*(?:StreamTruncated|Protocol): /)
      assert.deepStrictEqual(statuses(mock), [500, 0, 200])
    })
  )

  it.effect("does not repeat a request that the vendor rejects", () =>
    Effect.gen(function* () {
      const rejected = { message: "The content violates a policy", type: "invalid_request_error" }
      const mock = yield* mocked((mock) => mock.on({}, { error: rejected, status: 400 }))
      const { code, stderr, stdout } = yield* asks(surface, mock)
      assert.deepStrictEqual([code, stdout], [1, ""])
      assert.match(stderr, /The content violates a policy/)
      assert.deepStrictEqual(statuses(mock), [400])
    })
  )

  it.effect("tells an answer that was refused or cut from a whole one", () =>
    Effect.gen(function* () {
      const [finishReason, expected] = surface.ending
      const mock = yield* mocked((mock) => mock.on({}, { content: "I cannot help", finishReason }))
      const { code, stderr } = yield* asks(surface, mock)
      assert.strictEqual(code, expected, stderr)
      assert.deepStrictEqual(statuses(mock), [200])
    })
  )
})
