import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { Message, ProviderError, Usage } from "effect-agent"
import type { AgentEvent } from "../../src/AgentEvent.ts"
import * as Requests from "../../src/cli/terminal/Requests.ts"
import * as Mode from "../../src/cli/agent/Mode.ts"
import * as Outcome from "../../src/cli/agent/Outcome.ts"
import type { Refusal } from "../../src/ModelEvent.ts"

const base = { runId: "r", seq: 1, timestamp: 0, turn: 1 }

const verdictOf = (refusal?: Refusal) => {
  const message = { ...Message.assistant(""), stopReason: "refusal" } as const
  const events: ReadonlyArray<AgentEvent> = [
    { ...base, _tag: "MessageEnd", message },
    { ...base, _tag: "ModelCallEnd", messageId: "m", durationMs: 1, ...(refusal && { refusal }) }
  ]
  const outcome = events.reduce(Outcome.fold, Outcome.initial)
  return Outcome.verdict({ ...outcome, status: "completed" }, {})
}

describe("the verdict on a refusal", () => {
  it("says why the model refused, as far as its vendor does, on one line without control characters", () => {
    assert.deepStrictEqual(
      verdictOf({
        category: "cyber",
        explanation: "It could\nenable \u001b[31mharm.",
        recommendedModel: "claude-opus-4-8"
      }),
      {
        code: 5,
        remark:
          "The model refused to answer. Its policy: cyber. It could enable \\u{1b}[31mharm. Its vendor recommends the model claude-opus-4-8."
      }
    )
    assert.deepStrictEqual(verdictOf({ category: "bio" }), {
      code: 5,
      remark: "The model refused to answer. Its policy: bio."
    })
    assert.deepStrictEqual(verdictOf(), { code: 5 })
  })
})

const ended = (usage: Partial<Usage.Usage>): Outcome.Outcome => ({
  ...Outcome.initial,
  status: "completed",
  end: {
    ...base,
    _tag: "RunEnd",
    status: "completed",
    durationMs: 1,
    turns: 1,
    newMessageIds: [],
    usage: Usage.make(usage)
  }
})

describe("the end of a run", () => {
  it("names tokens, cost and session, as far as there are some", () => {
    assert.strictEqual(
      Outcome.summary(ended({ input: 12_345, output: 950, cost: 0.01234 }), "46f546c1-9e4e"),
      "12.3k tokens read, 950 written · $0.0123 · session 46f546c1"
    )
    assert.strictEqual(Outcome.summary(ended({}), undefined), undefined)
  })

  it("says which bound the last call has passed", () => {
    const outcome = ended({ input: 900, output: 200, cost: 0.009 })
    const none = Option.none<number>()
    const bounds = { maxCost: Option.some(0.001), maxTokensTotal: Option.some(1_000) }
    const remarks = Outcome.passedBounds(outcome, bounds)
    assert.match(
      remarks.join(),
      /cost \$0\.0090, more than --max-cost: .*took 1100 tokens, more than --max-tokens-total/
    )
    assert.deepStrictEqual(
      Outcome.passedBounds(outcome, { maxCost: none, maxTokensTotal: Option.some(1_100) }),
      []
    )
  })

  it.each([
    [
      "npm test",
      "1 call was refused. To let it run give --allow 'shell(npm test)', or --yes for every tool."
    ],
    ["rm -r $X; ls", "1 call was refused. To let it run give --allow shell, or --yes for every tool."]
  ])("says how the refused call %j may run", (command, remark) => {
    const outcome = { ...Outcome.initial, refused: [{ toolName: "shell", params: { command } }] }
    const deny = { tools: new Set<string>(), commands: [] }
    const policy = { asked: "deny", isAsked: true, deny, mode: Mode.make("ask") } as const
    assert.strictEqual(Outcome.refusedCalls(outcome, Requests.advice(policy, outcome.refused)), remark)
  })
})

describe("a failure of a provider", () => {
  const refused = new ProviderError.Transport({ detail: "connect ECONNREFUSED", kind: "refused" })
  const wrongKey = new ProviderError.Unauthenticated({ detail: "no such key" })
  it.each([
    [
      "ollama",
      refused,
      "ollama: Transport: connect ECONNREFUSED. Start it with `ollama serve`, or give its address with --base-url."
    ],
    ["groq", refused, "groq: Transport: connect ECONNREFUSED. Check the address and the network."],
    ["openai", wrongKey, "openai: Unauthenticated: no such key. Check OPENAI_API_KEY."]
  ] as const)("of %s has one advice", (provider, reason, text) => {
    assert.strictEqual(Outcome.explain(new ProviderError.ProviderError({ provider, reason })), text)
  })
})
