/**
 * A conversation with a server on loopback that answers by a script, and what came of it.
 */
import { Effect, type Layer, Schema } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import { Agent, type Message, type Provider, type Run, Tool } from "effect-agent"
import { serve } from "../../../test/providers/server.ts"

/** The body of an answer, or all of it. */
export type Answer = string | Whole

export interface Whole {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

export interface Setting {
  readonly layer: (origin: string) => Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>
  readonly model: string
  /** The last of them comes again and again. */
  readonly answers: ReadonlyArray<Answer>
  readonly prompts?: ReadonlyArray<string>
  readonly tools?: ReadonlyArray<Tool.Runnable>
}

export interface Talked {
  /** The calls that ran, and how each prompt ended, and the requests where they are more or fewer than that. */
  readonly line: string
  /** The bodies of the requests. */
  readonly bodies: ReadonlyArray<any>
  /** The first answer. */
  readonly answer: Message.Assistant | undefined
}

/** Prompts an agent that has the tool `echo`, unless it has others. */
export const talk = Effect.fnUntraced(
  function* ({ answers, layer, model, prompts = ["hi"], tools }: Setting) {
    const { baseUrl, requests } = yield* serve((response, _, count) => {
      const answer = answers[Math.min(count, answers.length) - 1] ?? ""
      const {
        body,
        headers,
        status = 200
      } = typeof answer === "string" ? { body: answer, headers: {} } : answer
      response.writeHead(status, { "content-type": "text/event-stream", ...headers }).end(body)
    })
    const ran: Array<string> = []
    const echo = Tool.make({
      name: "echo",
      description: "Says it again.",
      params: Schema.Struct({ v: Schema.optional(Schema.String) }),
      execute: (params) => Effect.sync(() => `echo ${ran.push(JSON.stringify(params))}`)
    })
    const { ends, messages } = yield* Effect.gen(function* () {
      const agent = yield* Agent.make({ model, tools: tools ?? [echo] })
      const ends = yield* Effect.forEach(prompts, (prompt) =>
        Effect.match(agent.prompt(prompt), { onSuccess: endOf, onFailure: ({ message }) => message })
      )
      return { ends, messages: agent.state.getUnsafe().messages }
    }).pipe(Effect.provide(layer(new URL(baseUrl).origin)))
    const rounds = prompts.length + (ran.length > 0 ? 1 : 0)
    const asked = requests.length === rounds ? "" : ` in ${requests.length} requests`
    return {
      line: [...ran.map((params) => `echo ${params}`), ...ends].join("; ") + asked,
      bodies: requests.map(({ body }) => JSON.parse(body)),
      answer: messages.find((message) => message.role === "assistant")
    } satisfies Talked
  },
  Effect.scoped,
  Effect.provide(FetchHttpClient.layer),
  Effect.orDie
)

/** The text, and why it ended where that is not the usual reason. */
const endOf = ({ message, text }: Run.RunResult): string => {
  const reason = message?.stopReason ?? "stop"
  return reason === "stop" ? JSON.stringify(text) : `${JSON.stringify(text)} (${reason})`
}
