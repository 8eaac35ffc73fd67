import { assert, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { Message, RunOptions, Session } from "effect-agent"
import { MemorySessionStore, type SessionStorage, SessionStore } from "effect-agent/sessions"
import { Random } from "../../harness/chaos/Random.ts"
import { runEnd, runStart, said } from "./records.ts"

type Restored = Session.Restored

/** What a record means, as the interface says it. */
const after = (state: Restored, record: Session.Record): Restored => {
  const { messages, queues } = state
  switch (record._tag) {
    case "Event": {
      const { event } = record
      if (event._tag === "RunStart") return { ...state, lostRun: event.runId }
      if (event._tag === "RunEnd") return withoutRun(state)
      if (event._tag !== "MessageEnd") return state
      const { message } = event
      const others = (queue: ReadonlyArray<Message.Message>) => queue.filter(({ id }) => id !== message.id)
      return {
        ...state,
        messages: [...messages, message],
        queues: { steering: others(queues.steering), followUp: others(queues.followUp) }
      }
    }
    case "RunLost":
      return withoutRun(state)
    case "Queued":
      return {
        ...state,
        queues: { ...queues, [record.queue]: [...queues[record.queue], ...record.messages] }
      }
    case "QueueCleared":
      return {
        ...state,
        queues: {
          steering: record.queue === "followUp" ? queues.steering : [],
          followUp: record.queue === "steering" ? queues.followUp : []
        }
      }
    case "OptionsChanged":
      return { ...state, options: RunOptions.patch(state.options, record.options) }
    case "MessagesReplaced":
      return { ...withoutCompaction(state), messages: record.messages }
    case "Noted":
      return { ...state, notes: new Map(state.notes).set(record.messageId, record.note) }
    case "Compacted": {
      const madeAfter = messages.at(-1)?.id ?? ""
      const made = Struct.pick(record, ["summary", "firstKept", "summarizesFirst"])
      return { ...state, compaction: { ...made, madeAfter } }
    }
  }
}

const withoutRun = (state: Restored): Restored => Struct.omit(state, ["lostRun"])
const withoutCompaction = (state: Restored): Restored => Struct.omit(state, ["compaction"])

/** Records that may follow a state. */
const next = (state: Restored, random: Random, step: number): Session.Record => {
  const text = (kind: string) => Message.user(`${kind} ${step}`)
  const run = `r${step}`
  const { messages, queues } = state
  const queue = random.pick<"steering" | "followUp">("steering", "followUp")
  const [queued] = queues[queue]
  const kept = messages[random.upTo(Math.max(0, messages.length - 1))]
  return random.pick<() => Session.Record>(
    () => said(queued !== undefined && random.once(2) ? queued : text("prompt")),
    () => said(Message.assistant(`answer ${step}`)),
    () => (state.lostRun === undefined ? runStart(run) : runEnd(state.lostRun)),
    () => (state.lostRun === undefined ? runStart(run) : { _tag: "RunLost", runId: state.lostRun }),
    () => ({
      _tag: "Queued",
      queue,
      messages: [text("queued"), text("also queued")].slice(0, 1 + random.upTo(1))
    }),
    () => ({
      _tag: "QueueCleared",
      queue: random.pick<"all" | "steering">("all", queue === "steering" ? queue : "all")
    }),
    () => ({
      _tag: "OptionsChanged",
      options: random.pick<Partial<RunOptions.RunOptions>>(
        { model: `m${step}` },
        { toolTimeout: step },
        { limits: { maxTurns: 1 + step } },
        { limits: { maxToolCalls: 1 + step }, model: `n${step}` }
      )
    }),
    () => ({
      _tag: "MessagesReplaced",
      messages: [...messages.slice(0, random.upTo(messages.length)), ...random.some(2, () => text("other"))]
    }),
    () =>
      kept === undefined
        ? said(text("prompt"))
        : {
            _tag: "Compacted",
            reason: "threshold",
            entryId: `c${step}`,
            summary: `summary ${step}`,
            firstKept: kept.id,
            ...(random.once(2) ? { summarizesFirst: true } : {}),
            tokensBefore: 2,
            tokensAfter: 1
          }
  )()
}

/** A storage some of whose appends fail, after some of their lines are written. */
const failing = (storage: SessionStorage.SessionStorage, random: Random): SessionStorage.SessionStorage => ({
  ...storage,
  open: (sessionId) =>
    Effect.map(storage.open(sessionId), (writer) => ({
      append: (lines) =>
        Effect.suspend(() => {
          if (!random.once(4)) return writer.append(lines)
          const [first, ...rest] = lines.slice(0, random.upTo(lines.length))
          const reason = new Session.StorageFailed({ operation: "append", detail: "the disk is full" })
          const failure = Effect.fail(new Session.SessionError({ sessionId, reason }))
          return first === undefined ? failure : Effect.andThen(writer.append([first, ...rest]), failure)
        })
    }))
})

describe("the fold of the entries of records", () => {
  const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31))

  it.live(`is the state that the records lead to, also with writes that fail, seed ${seed}`, () =>
    Effect.gen(function* () {
      for (let round = 0; round < 30; round++) {
        const random = new Random(seed + round)
        const whole = MemorySessionStore.storage()
        const store = SessionStore.make(round % 2 === 0 ? whole : failing(whole, random))
        yield* Effect.scoped(SessionStore.make(whole).create({ sessionId: "s1" }))
        let state: Restored = { messages: [], options: {}, queues: { steering: [], followUp: [] } }
        for (let opening = 0; opening < 3; opening++) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* store.open("s1")
              assert.deepStrictEqual(session.restored, state, `round ${round}, seed ${seed}`)
              state = session.restored
              for (let step = 0; step < 20; step++) {
                const records: Array<Session.Record> = []
                for (let index = 0; index <= random.upTo(3); index++) {
                  const record = next(state, random, round * 1_000 + opening * 100 + step * 4 + index)
                  records.push(record)
                  state = after(state, record)
                }
                const [first, ...rest] = records
                if (first !== undefined) yield* Effect.retry(session.record([first, ...rest]), { times: 99 })
              }
            })
          )
        }
      }
    })
  )
})
