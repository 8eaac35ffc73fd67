import { assert, describe, it } from "@effect/vitest"
import { type AgentEvent, Message, Usage } from "effect-agent"
import { Completion, spliced } from "../../src/runs/internal/Completion.ts"
import { LogProgress } from "../../src/runs/internal/RunProgress.ts"

const of = (seq: number, timestamp: number, turn?: number) => ({
  runId: "r",
  seq,
  timestamp,
  ...(turn === undefined ? {} : { turn })
})

const answer = (id: string, timestamp: number, turn: number): AgentEvent.AgentEvent => ({
  ...of(9, timestamp, turn),
  _tag: "MessageEnd",
  message: Message.assistant([Message.text("Hello.")], { id, timestamp, usage: Usage.zero })
})

/** The log of a run whose first turn is open at 100. */
const begun = (): ReadonlyArray<AgentEvent.AgentEvent> => [
  {
    ...of(1, 90),
    _tag: "RunStart",
    v: 2,
    prompts: [],
    options: { model: "m" },
    model: "m",
    continued: false
  },
  { ...of(2, 100, 1), _tag: "TurnStart" }
]

const timesOf = (events: ReadonlyArray<AgentEvent.AgentEvent>) => events.map(({ timestamp }) => timestamp)

describe("the log of a run that continues", () => {
  it("has the events that it lacked at the time of the fact, not at that of the recovery", () => {
    const log = new LogProgress(begun())
    const completion = new Completion(log, 500)
    completion.addFact(answer("a", 150, 2))
    assert.deepStrictEqual(
      completion.added.map(({ _tag, timestamp }) => [_tag, timestamp]),
      [
        ["TurnEnd", 150],
        ["TurnStart", 150],
        ["ModelCallStart", 150],
        ["MessageStart", 150],
        ["MessageEnd", 150],
        ["ModelCallEnd", 150]
      ]
    )
  })

  it("does not go back in time on a machine whose clock is behind", () => {
    const log = new LogProgress(begun())
    assert.deepStrictEqual(timesOf(spliced(log, answer("a", 60, 1))), [100])
    const delta = { _tag: "TextDelta", contentIndex: 0, delta: "!" } as const
    const event = { ...of(10, 70, 1), _tag: "MessageDelta", messageId: "a", delta } as const
    assert.deepStrictEqual(timesOf(spliced(log, event)), [100])
  })
})
