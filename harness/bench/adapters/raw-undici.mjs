// The floor with undici's own client, which costs less than the fetch that is built on it. The rest as in raw fetch.
import { Agent, request } from "undici"
import { headers, loop } from "./raw-fetch.mjs"

export const meta = { name: "raw undici" }

const dispatcher = new Agent()

export async function run({ baseURL, signal, ...rest }) {
  const ask = async (body, hear) => {
    const options = { method: "POST", headers, body, signal, dispatcher }
    const response = await request(`${baseURL}/chat/completions`, options)
    if (response.statusCode !== 200) throw new Error(`HTTP ${response.statusCode}`)
    const decoder = new TextDecoder()
    for await (const bytes of response.body) hear(decoder.decode(bytes, { stream: true }))
  }
  return loop({ ask, ...rest })
}
