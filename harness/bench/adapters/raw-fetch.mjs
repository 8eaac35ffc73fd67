// The floor with fetch: what is written by hand for one server, without an agent around it. It checks nothing.
export const meta = { name: "raw fetch" }

export async function run({ baseURL, maxTurns, model, onText, prompt, signal, system, tools }) {
  const ask = async (body, hear) => {
    const response = await fetch(`${baseURL}/chat/completions`, { method: "POST", headers, body, signal })
    if (response.status !== 200) throw new Error(`HTTP ${response.status}`)
    const decoder = new TextDecoder()
    for await (const bytes of response.body) hear(decoder.decode(bytes, { stream: true }))
  }
  return loop({ ask, maxTurns, model, onText, prompt, system, tools })
}

export const headers = { "content-type": "application/json", authorization: "Bearer x" }

/** Asks, runs the tools, asks again. `ask(body, hear)` sends the body and has the answer's text heard, piece by piece. */
export async function loop({ ask, maxTurns, model, onText, prompt, system, tools = [] }) {
  const messages = [
    { role: "system", content: system },
    { role: "user", content: prompt }
  ]
  const declared = tools.map(({ description, jsonSchema, name }) => ({
    type: "function",
    function: { name, description, parameters: jsonSchema }
  }))
  const request = { model, messages, stream: true, stream_options: { include_usage: true } }
  if (declared.length > 0) request.tools = declared
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  for (let turn = 0; turn < maxTurns; turn++) {
    const answer = { text: "", calls: [], rest: "" }
    await ask(JSON.stringify(request), (text) => read(answer, text, onText))
    if (answer.calls.length === 0) return { text: answer.text }
    const tool_calls = answer.calls.map(({ args, id, name }) => ({
      id,
      type: "function",
      function: { name, arguments: args }
    }))
    messages.push({ role: "assistant", content: answer.text || null, tool_calls })
    const call = ({ args, name }) => byName.get(name).execute(JSON.parse(args))
    const results = await Promise.all(answer.calls.map(call))
    results.forEach((content, index) =>
      messages.push({ role: "tool", tool_call_id: answer.calls[index].id, content })
    )
  }
}

/** Reads a piece of the text of an answer: `{ text: "", calls: [], rest: "" }` becomes the answer. */
export const read = (answer, text, onText) => {
  const lines = (answer.rest + text).split("\n")
  answer.rest = lines.pop()
  for (const line of lines) {
    if (!line.startsWith("data: ") || line === "data: [DONE]") continue
    const delta = JSON.parse(line.slice(6)).choices[0]?.delta
    if (delta?.content) {
      answer.text += delta.content
      onText(delta.content)
    }
    for (const { function: called, id, index } of delta?.tool_calls ?? []) {
      const call = (answer.calls[index] ??= { id: "", name: "", args: "" })
      if (id) call.id = id
      if (called?.name) call.name = called.name
      if (called?.arguments) call.args += called.arguments
    }
  }
}
