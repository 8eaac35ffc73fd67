// The loop by hand, for systems that have steps and no loop.
import { headers, read } from "./raw-fetch.mjs"

export const begin = [
  { role: "system", content: "You are a helpful agent." },
  { role: "user", content: "Go." }
]

const tool = {
  type: "function",
  function: {
    name: "tick",
    description: "The tick tool",
    parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }
  }
}

/** Asks the model, and resolves with its message. */
export const ask = async ({ baseURL, model }, messages) => {
  const body = JSON.stringify({ model, messages, tools: [tool], stream: true })
  const response = await fetch(`${baseURL}/chat/completions`, { method: "POST", headers, body })
  const answer = { text: "", calls: [], rest: "" }
  read(answer, await response.text(), () => {})
  const calls = answer.calls.map(({ args, id, name }) => ({
    id,
    type: "function",
    function: { name, arguments: args }
  }))
  return { role: "assistant", content: answer.text, ...(calls.length === 0 ? {} : { tool_calls: calls }) }
}

export const tick = async ({ n }) => `${n} ${"x".repeat(1000)}`
