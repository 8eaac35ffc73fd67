import { Effect } from "effect"
import { Agent, Hook } from "effect-agent"
import { Compaction } from "effect-agent/context"
import { ScriptedProvider } from "effect-agent/testing"

const before = Hook.beforeCompaction(({ messages, reason }) =>
  Effect.sync(() => {
    console.log(reason, messages.length)
    return { skip: messages.length < 3 } // also there: `tokensBefore`
  })
)
const after = Hook.afterCompaction(({ summary, tokensAfter, tokensBefore }) =>
  Effect.sync(() => console.log(summary, tokensAfter < tokensBefore))
)

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any", hooks: [before, after] })
  yield* agent.prompt("Write a long letter.")
  console.log((yield* agent.prompt("Shorten it.")).text)
  console.log((yield* agent.state.get).messages.length) // the transcript is whole
}).pipe(Effect.scoped)

const script = ["x".repeat(4_000), "The assistant wrote a letter.", "x"].map((text) =>
  ScriptedProvider.text(text)
)
const provider = ScriptedProvider.layer(script)
// Default of `contextWindow`: that of the model in `GenAiPrices.layer()` of `effect-agent/prices`, else 128,000 tokens.
const compaction = Compaction.layer({ contextWindow: 1_000, keepRecent: 100 })
await Effect.runPromise(Effect.provide(program, [provider, compaction]))
// => threshold 3
// => The assistant wrote a letter. true
// => x
// => 4
