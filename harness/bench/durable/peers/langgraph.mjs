// LangGraph: a graph of two nodes, with the checkpointer of SQLite or PostgreSQL and durability "sync"; a person answers an interrupt.
import { registerHooks } from "node:module"
import { ask, tick } from "./loop.mjs"

// The checkpointer asks for better-sqlite3, whose build fails on Node 24: node:sqlite stands in for it.
const sqlite = new URL("./sqlite.mjs", import.meta.url).href
registerHooks({
  resolve: (name, context, next) =>
    name === "better-sqlite3" ? { url: sqlite, shortCircuit: true } : next(name, context)
})
const { AIMessage, HumanMessage, SystemMessage, ToolMessage } = await import("@langchain/core/messages")
const { Command, END, interrupt, MessagesAnnotation, START, StateGraph } = await import(
  "@langchain/langgraph"
)

const roles = { human: "user", ai: "assistant", system: "system", tool: "tool" }
const wire = ({ content, tool_call_id, tool_calls = [], ...message }) => ({
  role: roles[message.type],
  content,
  ...(tool_call_id === undefined ? {} : { tool_call_id }),
  ...(tool_calls.length === 0
    ? {}
    : {
        tool_calls: tool_calls.map(({ args, id, name }) => ({
          id,
          type: "function",
          function: { name, arguments: JSON.stringify(args) }
        }))
      })
})

const model = (setup) => async (state) => {
  const { content, tool_calls = [] } = await ask(setup, state.messages.map(wire))
  const calls = tool_calls.map(({ function: { arguments: args, name }, id }) => ({
    id,
    name,
    args: JSON.parse(args),
    type: "tool_call"
  }))
  return { messages: [new AIMessage({ content, tool_calls: calls })] }
}

const tools =
  ({ asks }) =>
  async ({ messages }) => {
    const results = []
    for (const { args, id } of messages.at(-1).tool_calls) {
      if (asks) interrupt({ approve: id })
      results.push(new ToolMessage({ content: await tick(args), tool_call_id: id }))
    }
    return { messages: results }
  }

const saverOf = async (url) => {
  if (url.startsWith("sqlite:")) {
    const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite")
    return SqliteSaver.fromConnString(url.slice("sqlite:".length))
  }
  const { PostgresSaver } = await import("@langchain/langgraph-checkpoint-postgres")
  const saver = PostgresSaver.fromConnString(url)
  await saver.setup()
  return saver
}

export const open = async (setup) => {
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", model(setup))
    .addNode("tools", tools(setup))
    .addEdge(START, "model")
    .addConditionalEdges("model", ({ messages }) => (messages.at(-1).tool_calls.length > 0 ? "tools" : END))
    .addEdge("tools", "model")
    .compile({ checkpointer: await saverOf(setup.url) })
  const config = (id) => ({ configurable: { thread_id: id }, recursionLimit: 10_000, durability: "sync" })
  const begin = (id) => {
    const messages = [new SystemMessage("You are a helpful agent."), new HumanMessage("Go.")]
    return graph.invoke({ messages }, config(id))
  }
  return { run: begin, hold: begin, approve: (id) => graph.invoke(new Command({ resume: true }), config(id)) }
}
