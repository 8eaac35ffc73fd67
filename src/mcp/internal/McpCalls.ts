/**
 * The tool calls in flight at a server, and the requests that it sends meanwhile.
 */
import type * as Official from "@modelcontextprotocol/client"
import type * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as Loop from "../../Loop.ts"
import * as Message from "../../Message.ts"
import { Provider } from "../../Provider.ts"
import * as Tool from "../../Tool.ts"
import * as ToolRegistry from "../../ToolRegistry.ts"
import { type Sampling, isJson } from "./McpModel.ts"

type Elicitation = Official.ElicitRequest["params"]
type Sample = Official.CreateMessageRequest["params"]

type Item =
  | { readonly _tag: "Progress"; readonly progress: Official.Progress }
  | {
      readonly _tag: "Elicit"
      readonly params: Elicitation
      readonly answer: (result: Official.ElicitResult) => void
    }
  | {
      readonly _tag: "Sample"
      readonly params: Sample
      readonly answer: (result: Official.CreateMessageResult | Error) => void
    }

type Inbox = Queue.Queue<Item, Cause.Done>

const cancelled: Official.ElicitResult = { action: "cancel" }

export class Calls {
  private readonly inboxes = new Set<Inbox>()
  private readonly server: string
  private readonly sampling: Sampling | undefined

  constructor(server: string, sampling: Sampling | undefined) {
    this.server = server
    this.sampling = sampling
  }

  /** A server does not say which of several calls it asks for: it is the newest. */
  private get newest(): Inbox | undefined {
    return [...this.inboxes].at(-1)
  }

  readonly elicit = (params: Elicitation): Promise<Official.ElicitResult> =>
    new Promise((answer) => {
      const { newest } = this
      if (newest === undefined) return answer(cancelled)
      Queue.offerUnsafe(newest, { _tag: "Elicit", params, answer })
    })

  readonly sample = (params: Sample): Promise<Official.CreateMessageResult> =>
    new Promise((resolve, reject) => {
      const { newest } = this
      const answer = (result: Official.CreateMessageResult | Error) =>
        result instanceof Error ? reject(result) : resolve(result)
      if (newest === undefined) return answer(new Error("There is no tool call that this could belong to"))
      Queue.offerUnsafe(newest, { _tag: "Sample", params, answer })
    })

  /**
   * Runs a call, with its progress and what the server asks during it. `silence` succeeds with the words for a time in which the server
   * gave no sign. That time does not count while the server waits for a person or the model.
   */
  during<A, E, R>(
    run: (inbox: Inbox, silence: (limit: Duration.Input) => Effect.Effect<string>) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R | Tool.ToolContext> {
    return Effect.scoped(
      Effect.gen({ self: this }, function* () {
        const signs = yield* SubscriptionRef.make<Signs>({ count: 0, waiting: 0 })
        const inbox = yield* Effect.acquireRelease(Queue.unbounded<Item, Cause.Done>(), (inbox) =>
          Effect.andThen(
            Effect.sync(() => this.inboxes.delete(inbox)),
            Effect.map(
              Effect.orElseSucceed(Queue.clear(inbox), () => []),
              (items) => items.forEach(refuse)
            )
          )
        )
        this.inboxes.add(inbox)
        const handling = Effect.forever(Effect.flatMap(Queue.take(inbox), (item) => this.handle(item, signs)))
        const fiber = yield* Effect.forkScoped(Effect.ignore(handling), { startImmediately: true })
        const result = yield* run(inbox, (limit) => silence(signs, limit))
        // Progress that came before the result counts.
        this.inboxes.delete(inbox)
        yield* Queue.end(inbox)
        yield* Fiber.join(fiber)
        return result
      })
    )
  }

  private handle(
    item: Item,
    signs: SubscriptionRef.SubscriptionRef<Signs>
  ): Effect.Effect<void, never, Scope.Scope | Tool.ToolContext> {
    switch (item._tag) {
      case "Progress": {
        const words = wordsOf(item.progress)
        const shown =
          words === undefined
            ? Effect.void
            : Tool.ToolContext.use(({ progress }) => progress(Tool.output(words)))
        return Effect.andThen(sign(signs, 0), shown)
      }
      case "Elicit":
        return inBackground(during(signs, this.asked(item.params)), item.answer, cancelled)
      case "Sample":
        return inBackground(
          during(signs, sampled(item.params, this.sampling)),
          item.answer,
          new Error("The model gave no answer")
        )
    }
  }

  /** Puts the question of the server to the person of the run. */
  private readonly asked = Effect.fnUntraced(function* (this: Calls, params: Elicitation) {
    const { ask } = yield* Tool.ToolContext
    const schema = "requestedSchema" in params ? params.requestedSchema : undefined
    if (ask === undefined || !isJson(schema)) return cancelled
    const answer = yield* ask({ question: `${this.server} asks: ${params.message}`, schema })
    return Option.match(answer, { onNone: () => cancelled, onSome: accepted })
  })
}

/** The signs that a server gave during a call, and the number of its requests that have no answer yet. */
interface Signs {
  readonly count: number
  readonly waiting: number
}

const sign = (signs: SubscriptionRef.SubscriptionRef<Signs>, waiting: -1 | 0 | 1): Effect.Effect<void> =>
  SubscriptionRef.update(signs, (before) => ({ count: before.count + 1, waiting: before.waiting + waiting }))

const during = <A, E, R>(signs: SubscriptionRef.SubscriptionRef<Signs>, work: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    sign(signs, 1),
    () => work,
    () => sign(signs, -1)
  )

/** Succeeds after a time without a sign. */
const silence = (
  signs: SubscriptionRef.SubscriptionRef<Signs>,
  limit: Duration.Input
): Effect.Effect<string> =>
  SubscriptionRef.changes(signs).pipe(
    Stream.switchMap(({ waiting }) => (waiting > 0 ? Stream.never : Stream.fromEffect(Effect.sleep(limit)))),
    Stream.runHead,
    Effect.as(Duration.format(Duration.fromInputUnsafe(limit)))
  )

/** Gives an answer on every path: a server must not wait for a call that is over. */
const inBackground = <A, R>(
  work: Effect.Effect<A, unknown, R>,
  answer: (result: A) => void,
  otherwise: A
): Effect.Effect<void, never, R | Scope.Scope> =>
  work.pipe(
    Effect.map(answer),
    Effect.ensuring(Effect.sync(() => answer(otherwise))),
    Effect.ignoreCause,
    Effect.forkScoped({ startImmediately: true }),
    Effect.asVoid
  )

const refuse = (item: Item): void => {
  if (item._tag === "Elicit") item.answer(cancelled)
  if (item._tag === "Sample") item.answer(new Error("The call is over"))
}

/** What a person reads of progress, if it says more than that the server lives. */
const wordsOf = ({ message, progress, total }: Official.Progress): string | undefined =>
  message ?? (total === undefined ? undefined : `${progress}/${total}`)

type Fields = Record<string, string | number | boolean | Array<string>>

const accepted = (answer: Schema.Json): Official.ElicitResult => {
  const content: Fields = {}
  for (const [name, value] of Predicate.isObject(answer) ? Object.entries(answer) : []) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      content[name] = value
    if (Array.isArray(value)) content[name] = value.map(String)
  }
  return { action: "accept", content }
}

/** Asks the provider of the run, in a run inside of the call: it counts in its usage and its limits. */
const sampled = Effect.fnUntraced(function* (
  { maxTokens, messages, stopSequences, systemPrompt, temperature }: Sample,
  sampling: Sampling | undefined
): Effect.fn.Return<Official.CreateMessageResult | Error, unknown> {
  const provider = yield* Effect.serviceOption(Provider)
  if (Option.isNone(provider) || sampling === undefined) return new Error("There is no model")
  const { model } = sampling
  const { text } = yield* Loop.run(
    messages.map(messageOf),
    { messages: [] },
    {
      model,
      ...(systemPrompt === undefined ? {} : { system: systemPrompt }),
      limits: { maxTurns: 1 },
      modelOptions: {
        maxTokens: Math.min(maxTokens, sampling.maxTokens ?? maxTokens),
        ...(temperature === undefined ? {} : { temperature }),
        ...(stopSequences === undefined ? {} : { stopSequences })
      }
    }
  ).pipe(Effect.provide(Layer.merge(ToolRegistry.layer(), Layer.succeed(Provider, provider.value))))
  const result: Official.CreateMessageResult = { model, role: "assistant", content: { type: "text", text } }
  return result
})

const messageOf = ({ content, role }: Sample["messages"][number]): Message.Message => {
  const blocks = (Array.isArray(content) ? content : [content]).map((block) => {
    if (block.type === "text") return Message.text(block.text)
    return block.type === "image"
      ? Message.image(block.data, block.mimeType)
      : Message.text(`[${block.type}]`)
  })
  return role === "user"
    ? Message.user(blocks)
    : Message.assistant(blocks.filter((block) => block.type === "text"))
}
