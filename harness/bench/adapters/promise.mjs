// effect-agent without Effect: `createAgent` and `for await`.
import { AgentEvent, Provider } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { optionsOf, runtimeOf } from "../adapter.mjs"

export const meta = { name: "effect-agent, promise" }

let provider
/** One provider for all runs of a process. */
const providerOf = (baseURL) => (provider ??= runtimeOf(baseURL).runPromise(Provider.Provider))

export async function run({ baseURL, onText, prompt, signal, ...rest }) {
  await using agent = createAgent({ provider: await providerOf(baseURL), ...optionsOf(rest) })
  for await (const event of agent.stream(prompt, { signal })) {
    if (AgentEvent.isTextDelta(event)) onText(event.delta.delta)
  }
}
